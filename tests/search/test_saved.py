"""A search in a file: the same answers to the last bit, nothing executed, damage and trust in words."""

import json
import os
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from problems import shifted_classes, skewed_target
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import make_scorer, zero_one_loss
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import moew
from moew import MetricSearch, NetworkClassifier, make_metric
from moew.decision import EqualFalsePositiveRates
from moew.exceptions import InvalidInputError, MissingObjectError, MoewError, MoewWarning, StateError
from moew.metrics import precision_at_recall, worst_class_error
from moew.models import ModelEnsemble
from moew.search._saved import _parameter

QUICK = {"n_candidates": 3, "batch_size": 3, "embedding": "label", "random_state": 0}
LIGHTGBM = {"n_estimators": 5, "verbose": -1, "n_jobs": 1, "min_child_samples": 5}


def classes(model, names=None, n_classes=2, **settings):
    """A fitted search on classes, and test rows."""
    rows = shifted_classes(120, n_classes)
    y, y_val = (y if names is None else np.asarray(names)[y] for y in (rows.y, rows.y_val))
    settings = {"metric": worst_class_error(), **QUICK, **settings}
    return MetricSearch.from_settings(model, **settings).fit(
        rows.X, y, validation=(rows.X_val, y_val)
    ), rows.X_test


def again(search, **how):
    search.save("search.moew", **{k: v for k, v in how.items() if k == "trusted"})
    return moew.load("search.moew", **how)


def assert_alike(search, loaded, X):
    for ask in ("predict", "predict_proba", "decision_function"):
        if hasattr(search.best_estimator_, ask):
            before, after = getattr(search, ask)(X), getattr(loaded, ask)(X)
            assert before.dtype == after.dtype
            np.testing.assert_array_equal(before, after)
    assert type(search.best_estimator_) is type(loaded.best_estimator_)
    for name in ("sample_weight_", "training_rows_", "best_alpha_"):
        np.testing.assert_array_equal(getattr(search, name), getattr(loaded, name))
    for name in ("selected_", "best_score_", "honest_score_", "unweighted_score_"):
        assert getattr(search, name) == getattr(loaded, name) or np.isnan(getattr(search, name))
    assert str(search.result_) == str(loaded.result_)
    if search.unweighted_estimator_ is not None:
        expected = search.unweighted_estimator_.predict(X)
        np.testing.assert_array_equal(loaded.unweighted_estimator_.predict(X), expected)


@pytest.fixture(autouse=True)
def folder(own_folder):
    return own_folder


def lightgbm():
    return pytest.importorskip("lightgbm").LGBMClassifier(**LIGHTGBM)


@pytest.mark.parametrize(
    "make",
    [
        LogisticRegression,
        lightgbm,
        lambda: NetworkClassifier(steps=20),
        lambda: make_pipeline(StandardScaler(), LogisticRegression()),
        lambda: RandomForestClassifier(5, random_state=0),
        lambda: HistGradientBoostingClassifier(max_iter=5),
        GaussianNB,
    ],
)
@pytest.mark.parametrize("strategies", [pytest.param("auto", marks=pytest.mark.heavy), "example weights"])
def test_predictions_are_the_same_bit_for_bit(make, strategies):
    model = make()
    of_step = {"sample_weight_name": "logisticregression__sample_weight"}
    search, X = classes(
        model,
        strategies=strategies,
        **of_step if isinstance(model, Pipeline) else {},
    )
    assert_alike(search, again(search), X)


def test_an_ensemble_of_models_is_the_same():
    for seed in range(5):
        search, X = classes(
            LogisticRegression(), strategies="example weights", n_candidates=9, random_state=seed
        )
        if isinstance(search.best_estimator_, ModelEnsemble):
            break
    assert isinstance(search.best_estimator_, ModelEnsemble)
    loaded = again(search)
    assert_alike(search, loaded, X)
    np.testing.assert_array_equal(loaded.best_estimator_.votes_, search.best_estimator_.votes_)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_tuned_decisions_are_the_same(n_classes):
    search, X = classes(LogisticRegression(), ["no", "yes", "perhaps"], n_classes, decision="tuned")
    loaded = again(search)
    assert loaded.decision_ == search.decision_ is not None
    assert_alike(search, loaded, X)


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["no", "yes"], dtype=object),
        np.array([3, 7], dtype=np.int32),
        np.array([0, 2**64 - 1], dtype=np.uint64),
        [1.0, 2.0],
        [False, True],
    ],
)
def test_labels_of_every_kind_keep_their_dtype(labels):
    search, X = classes(LogisticRegression(), labels, metric="accuracy")
    loaded = again(search)
    assert_alike(search, loaded, X)
    assert loaded.classes_.dtype == search.classes_.dtype


@pytest.mark.parametrize("decision", [None, "tuned"])
def test_regression_is_the_same(decision):
    rows = skewed_target(120)
    settings = {**QUICK, "metric": "r2", "decision": decision}
    search = MetricSearch.from_settings(Ridge(), **settings).fit(rows.X, rows.y)
    loaded = again(search)
    assert_alike(search, loaded, rows.X)
    assert loaded.score(rows.X, rows.y) == search.score(rows.X, rows.y)


def test_weights_scores_and_choices_of_rows_are_the_same():
    search, X = classes(
        LogisticRegression(),
        strategies="example weights",
        embedding="directions",
        metric=precision_at_recall(0.9),
    )
    loaded = again(search)
    y = (X[:, 0] > 0).astype(int)
    np.testing.assert_array_equal(loaded.example_weights(X, y), search.example_weights(X, y))
    assert loaded.metric_value(X, y) == search.metric_value(X, y)
    assert loaded.n_features_in_ == search.n_features_in_


def test_columns_of_a_frame_and_of_a_rule_are_kept():
    rows = shifted_classes(120)
    group = np.where(rows.X[:, 1] > 0, "a", "b")
    frame = pd.DataFrame(rows.X, columns=["u", "v"])
    rule = EqualFalsePositiveRates(0.3, on="train")
    search = MetricSearch.from_settings(LogisticRegression(), metric="accuracy", decision=rule, **QUICK)
    search.fit(frame, rows.y, columns={"group": group})
    loaded = again(search)
    expected = search.predict(frame, columns={"group": group})
    np.testing.assert_array_equal(loaded.predict(frame, columns={"group": group}), expected)
    assert list(loaded.feature_names_in_) == ["u", "v"]
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame[["v", "u"]], columns={"group": group})


def share_right(y_true, decision):
    return float(np.mean(np.asarray(y_true) == decision))


def by_first_column(X, y):
    return np.asarray(X)[:, :1]


def test_what_is_the_users_own_is_passed_in_where_it_is_needed():
    metric = make_metric(share_right)
    search, X = classes(
        LogisticRegression(), metric=metric, embedding=by_first_column, strategies="example weights"
    )
    y = (X[:, 0] > 0).astype(int)
    loaded = again(search)
    assert_alike(search, loaded, X)  # predictions need nothing
    with pytest.raises(MissingObjectError, match=r"objects=\{.*share_right"):
        loaded.metric_value(X, y)
    with pytest.raises(MissingObjectError, match=r"objects=\{.*share_right"):
        loaded.metric_values(X, y, columns={"cost": y})
    with pytest.raises(MissingObjectError, match=r"objects=\{.*by_first_column"):
        loaded.example_weights(X, y)
    own = {f"{f.__module__}:{f.__qualname__}": f for f in (share_right, by_first_column)}
    loaded = moew.load("search.moew", objects=own)
    assert loaded.metric_value(X, y) == search.metric_value(X, y)
    np.testing.assert_array_equal(loaded.example_weights(X, y), search.example_weights(X, y))


class Mine(LogisticRegression):
    """A model of the user's own class."""


def test_code_is_saved_and_loaded_only_when_trusted():
    search, X = classes(Mine())
    with pytest.raises(InvalidInputError, match="Mine can only be saved as code.*trusted=True"):
        search.save("search.moew")
    assert not Path("search.moew").exists()
    search.save("search.moew", trusted=True)
    with pytest.raises(InvalidInputError, match=r"search\.moew/model\.skops holds .*Mine.*trusted=True"):
        moew.load("search.moew")
    assert_alike(search, moew.load("search.moew", trusted=True), X)


class Payload:
    def __reduce__(self):
        return os.mkdir, ("executed",)


def replaced(entry, content):
    """The file with another entry; None takes it out."""
    with zipfile.ZipFile("search.moew") as packed:
        entries = {name: packed.read(name) for name in packed.namelist()}
    entries[entry] = content
    with zipfile.ZipFile("search.moew", "w") as packed:
        for name, data in entries.items():
            if data is not None:
                packed.writestr(name, data)


def test_a_pickle_in_the_file_is_not_executed():
    classes(LogisticRegression())[0].save("search.moew")
    replaced("model.skops", None)
    replaced("model.pickle", pickle.dumps(Payload()))
    with pytest.raises(InvalidInputError, match="runs whatever code its maker put in"):
        moew.load("search.moew")
    assert not Path("executed").exists()


def test_a_bomb_is_refused(monkeypatch):
    classes(LogisticRegression())[0].save("search.moew")
    with zipfile.ZipFile("search.moew", "a", compression=zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("zeros", bytes(20 * 2**20))
    monkeypatch.setattr("moew.saving._files.MOST_UNPACKED", 2**20)
    with pytest.raises(InvalidInputError, match="would take 20"):
        moew.load("search.moew")


def places(content, path=()):
    if path:
        yield path
    entries = content.items() if isinstance(content, dict) else []
    entries = list(enumerate(content))[:1] if isinstance(content, list) else entries
    for key, value in entries:
        yield from places(value, (*path, key))


@pytest.mark.parametrize("results", [pytest.param(True, marks=pytest.mark.heavy), False])
def test_no_change_of_an_entry_ends_in_a_raw_error(results):
    classes(LogisticRegression(), decision="tuned")[0].save("search.moew")
    name = "search.json"
    with zipfile.ZipFile("search.moew") as packed:
        text = packed.read(name).decode()
    n_failed = 0
    for path in places(json.loads(text)):
        if (path[0] in ("result", "parameters")) is not results:
            continue
        for odd in ("deleted", None, "odd", [[1]], -7):
            content = holder = json.loads(text)
            for key in path[:-1]:
                holder = holder[key]
            if odd == "deleted":
                del holder[path[-1]]
            else:
                holder[path[-1]] = odd
            replaced(name, json.dumps(content))
            try:
                moew.load("search.moew")
            except MoewError as error:
                n_failed += 1
                assert "search.moew" in str(error)
            except MoewWarning:
                n_failed += 1
    assert n_failed > 30


@pytest.mark.parametrize("content", [b"", b"PK", b"{}", b"\x00" * 100])
def test_other_files_are_told_in_words(content):
    Path("search.moew").write_bytes(content)
    with pytest.raises(StateError, match=r"search\.moew is damaged.*no zip file"):
        moew.load("search.moew")
    with pytest.raises(InvalidInputError, match="there is no file"):
        moew.load("nowhere.moew")
    with zipfile.ZipFile("search.moew", "w") as packed:
        packed.writestr("hello", "world")
    with pytest.raises(StateError, match=r"search\.moew holds no search\.json"):
        moew.load("search.moew")


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("search.json", {"classes": [0, 2]}, "between 3 classes, and there are 2"),
        ("search.json", {"classes_dtype": "|V8"}, r"classes \[0, 1, 2\] are none of '\|V8'"),
    ],
)
def test_a_decision_of_other_classes_is_refused(name, changes, message):
    search, _ = classes(GaussianNB(), n_classes=3, decision="tuned", honest=None)
    search.save("search.moew")
    with zipfile.ZipFile("search.moew") as packed:
        content = json.loads(packed.read(name))
    replaced(name, json.dumps({**content, **changes}))
    with pytest.raises(StateError, match=message):
        moew.load("search.moew")


def test_other_versions_are_warned_of(monkeypatch):
    search, X = classes(LogisticRegression())
    search.save("search.moew")
    with zipfile.ZipFile("search.moew") as packed:
        content = json.loads(packed.read("search.json"))
    content["versions"]["scikit-learn"] = "0.1"
    replaced("search.json", json.dumps(content))
    with pytest.warns(MoewWarning, match=r"saved with scikit-learn 0\.1 \(here"):
        loaded = moew.load("search.moew")
    assert_alike(search, loaded, X)
    replaced("search.json", json.dumps({**content, "format": 99}))
    with pytest.raises(StateError, match="format 99"):
        moew.load("search.moew")


def test_parameters_come_back_and_those_that_are_objects_are_not_used_in_silence():
    from moew.samplers import GpBucb

    search, X = classes(LogisticRegression(C=0.3), sampler=GpBucb(p=50.0))
    loaded = again(search)
    assert loaded.n_candidates == 3 and loaded.estimator.C == 0.3 and loaded.random_state == 0
    assert "GpBucb" in repr(loaded.settings.sampler)
    with pytest.raises(InvalidInputError, match="not saved: GpBucb"):
        loaded.fit(X, (X[:, 0] > 0).astype(int))
    with pytest.raises(InvalidInputError, match="has no study"):
        loaded.study_.trials()


def test_a_search_that_is_not_fitted_cannot_be_saved():
    with pytest.raises(ValueError, match="not fitted"):
        MetricSearch(LogisticRegression()).save("search.moew")


def test_a_file_is_loaded_in_another_process_and_saved_again():
    search, X = classes(LogisticRegression())
    search.save("search.moew")
    np.save("X.npy", X)
    code = "import moew, numpy as np; s = moew.load('search.moew'); s.save('again.moew');"
    code += "np.save('p.npy', moew.load('again.moew').predict_proba(np.load('X.npy')))"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    np.testing.assert_array_equal(np.load("p.npy"), search.predict_proba(X))


def test_a_search_evaluated_by_a_scorer_object_is_loaded():
    rows = shifted_classes(60)
    search = MetricSearch.from_settings(
        LogisticRegression(),
        metric=make_scorer(zero_one_loss, greater_is_better=False),
        embedding="label",
        n_candidates=2,
        batch_size=2,
        honest=None,
        random_state=0,
    ).fit(rows.X, rows.y)
    loaded = again(search)
    np.testing.assert_array_equal(loaded.predict(rows.X), search.predict(rows.X))
    assert loaded.best_score_ == search.best_score_
    with pytest.raises(MissingObjectError):
        loaded.metric_value(rows.X, rows.y)


def test_no_damaged_byte_ends_in_a_raw_error_or_another_prediction(folder):
    search, X = classes(LogisticRegression(), final="best")
    search.save("search.moew")
    whole, wanted = Path("search.moew").read_bytes(), search.predict(X)
    rng = np.random.default_rng(0)
    for where in rng.integers(len(whole), size=150):
        damaged = bytearray(whole)
        damaged[where] ^= 1 << int(rng.integers(8))
        Path("search.moew").write_bytes(bytes(damaged))
        try:
            found = moew.load("search.moew").predict(X)
        except MoewError:
            continue
        np.testing.assert_array_equal(found, wanted)


def test_names_of_columns_that_are_something_else_are_refused():
    rows = shifted_classes(60)
    frame = pd.DataFrame(rows.X, columns=["a", "b"])
    MetricSearch.from_settings(LogisticRegression(), **QUICK).fit(frame, rows.y).save("search.moew")
    with zipfile.ZipFile("search.moew") as packed:
        content = json.loads(packed.read("search.json"))
    for odd in ("ab", [1, 2], {"a": 1, "b": 2}, 0, True, None):
        content["features"] = odd
        replaced("search.json", json.dumps(content))
        with pytest.raises(StateError, match="its features must be a list of texts or a number"):
            moew.load("search.moew")


def test_a_password_is_not_saved():
    assert _parameter("postgresql://me:secret@host/name") == {"value": "postgresql://me:***@host/name"}
    assert _parameter("columns=a,b") == {"value": "columns=a,b"}
