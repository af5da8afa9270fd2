"""Bad input raises at once, before any training, and says what to do."""

import numpy as np
import pandas as pd
import pytest
from problems import mixed_frame, shifted_classes, skewed_target
from scipy.sparse import csr_array
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from moew import MetricSearch, NetworkClassifier, Rows, compare
from moew.decision import EqualFalsePositiveRates, MostAccurate, ShareSelected
from moew.exceptions import InvalidInputError, MoewError, SearchFailedError
from moew.metrics import fpr_gap, precision_at_recall, value_per_harm
from moew.samplers import Ball, GpBucb
from moew.search import WeightStudy

ROWS = shifted_classes(60)
VALIDATION = {"validation": (ROWS.X_val, ROWS.y_val)}


class Untrained(LogisticRegression):
    """Fails the test if it is ever trained."""

    def fit(self, X, y, sample_weight=None):
        pytest.fail("a model was trained before the input was checked")


def small_search(estimator, **settings):
    few = {"embedding": "label", "n_candidates": 2, "batch_size": 2}
    return MetricSearch.from_settings(estimator, **few | settings)


def fit(X=ROWS.X, y=ROWS.y, *, settings=None, estimator=..., **data):
    search = small_search(
        Untrained() if estimator is ... else estimator, **{"random_state": 0, **(settings or {})}
    )
    return search.fit(X, y, **data)


def with_columns(columns):
    return {"validation": Rows(ROWS.X_val, ROWS.y_val, columns=columns)}


def refused(match, *args, **kwargs):
    with pytest.raises((MoewError, ValueError), match=match) as caught:
        fit(*args, **kwargs)
    assert isinstance(caught.value, MoewError)


def test_too_few_rows():
    refused("at least 2 samples", ROWS.X[:0], ROWS.y[:0])
    refused("at least 2 samples", ROWS.X[:1], ROWS.y[:1])
    refused("validation rows need at least 2", validation=(ROWS.X_val[:1], ROWS.y_val[:1]))


def test_lengths_that_differ():
    refused("inconsistent numbers of samples", ROWS.X, ROWS.y[:-1])
    refused("sample_weight has 3", sample_weight=np.ones(3))
    refused("cost has 2", **with_columns({"cost": [1.0, 2.0]}))


def test_validation_rows_and_labels_go_together():
    for one_of_them in ((ROWS.X_val, None), (None, ROWS.y_val), Rows(ROWS.X_val, None)):
        refused("validation needs rows X and their labels y", validation=one_of_them)
    for neither in ({"columns": {"cost": ROWS.y_val}}, {"groups": ROWS.y_val}, {"sample_weight": ROWS.y_val}):
        refused("validation has .* no rows X that they belong to", validation=Rows(None, None, **neither))
    for other in (ROWS.X_val, (ROWS.X_val,), (ROWS.X_val, ROWS.y_val, ROWS.y_val), "rows"):
        refused(r"validation must be \(X, y\) or moew.Rows\(X, y, …\), got", validation=other)


def test_columns_of_the_validation_rows():
    refused("have 1 columns, the training rows have 2", validation=(ROWS.X_val[:, :1], ROWS.y_val))
    X, y = mixed_frame()
    renamed = X.rename(columns={"kind": "sort"})
    refused("missing: .'kind'., extra: .'sort'.", X, y, validation=(renamed, y))


def test_labels():
    refused("NaN or infinity", y=np.where(ROWS.y == 0, np.nan, 1.0))
    refused("NaN or infinity", y=np.where(ROWS.y == 0, np.inf, 1.0), estimator=Ridge())
    refused("nothing to learn", y=np.zeros(len(ROWS.y)))
    refused("nothing to learn", y=np.ones(len(ROWS.y)), estimator=Ridge())
    refused("base_weights='uniform'", validation=(ROWS.X_val, ROWS.y_val + 1))


def test_masked_values_are_refused():
    hidden = np.arange(len(ROWS.y)) == 3
    refused(
        "X is a masked array with 2 masked values", np.ma.array(ROWS.X, mask=hidden[:, None] | [False] * 2)
    )
    refused("y is a masked array with 1 masked", y=np.ma.array(ROWS.y, mask=hidden))
    refused("sample_weight is a masked", sample_weight=np.ma.array(np.ones(len(ROWS.y)), mask=hidden))
    all_there = fit(np.ma.array(ROWS.X), np.ma.array(ROWS.y), estimator=LogisticRegression(), **VALIDATION)
    assert all_there.best_score_ == fit(estimator=LogisticRegression(), **VALIDATION).best_score_


def test_rows_that_cannot_be_evaluated_together():
    dates = np.full(ROWS.X.shape, "2020-01-01", dtype="datetime64[D]")
    sparse = {"validation": (csr_array(ROWS.X_val), ROWS.y_val)}
    refused(
        "csr_array and the training rows a ndarray.*Give both alike",
        dates,
        settings={"evaluate_on": 2},
        **sparse,
    )


class PredictsTexts(Ridge):
    """A regressor by its tags, whose predictions are no numbers."""

    def predict(self, X):
        return np.full(len(X), "high")


def test_a_regressor_must_predict_numbers():
    refused(
        "PredictsTexts is a regressor, and must predict numbers", y=ROWS.X[:, 0], estimator=PredictsTexts()
    )


def test_estimators_that_cannot_take_weights():
    refused("takes no 'sample_weight'", estimator=KNeighborsClassifier())
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    by_step = "leave out sample_weight_name, or set sample_weight_name='logisticregression__sample_weight'"
    refused(by_step, estimator=pipeline, settings={"sample_weight_name": "sample_weight"})
    refused("no step 'model'", estimator=pipeline, settings={"sample_weight_name": "model__sample_weight"})
    refused("neither a classifier nor a regressor", estimator=StandardScaler())
    refused("takes no 'weight'", settings={"sample_weight_name": "weight"})


def test_metric_columns():
    settings = {"metric": value_per_harm(), "decision": ShareSelected(0.2)}
    refused(r"needs .*'harm'.*'harm': …\} in validation=Rows", settings=settings, **VALIDATION)
    short = {"value": np.ones(len(ROWS.y_val)), "harm": np.ones(3)}
    refused("harm has 3", settings=settings, **with_columns(short))


def test_settings():
    for name in ("n_candidates", "batch_size", "alpha_zero_repeats"):
        refused(f"{name} must be a whole number", settings={name: 0})
    refused("radius must be a positive", settings={"radius": -1.0})
    refused("radius must be a positive", settings={"radius": 0.0})
    refused("honest must be", settings={"honest": "surely"})
    refused("random_state must be an integer", settings={"storage": "run.db", "random_state": None})
    refused("gp_bucb", settings={"sampler": "no such sampler"})
    refused("autoencoder", settings={"embedding": "umap"})
    refused("covariate_shift", settings={"base_weights": "balanced"}, **VALIDATION)
    refused("get_scorer_names", settings={"metric": "no such scorer"})
    with pytest.raises(InvalidInputError, match="p is in percent"):
        GpBucb(p=101)
    with pytest.raises(InvalidInputError, match="q is in percent"):
        GpBucb(q=-1)


def test_groups_without_negatives():
    group = np.where(ROWS.y_val == 1, "all positive", "mixed")
    refused("all positive", settings={"metric": fpr_gap()}, **with_columns({"group": group}))
    rule = EqualFalsePositiveRates(0.5)
    both = {"columns": {"group": np.where(ROWS.y == 1, "a", "b")}, **with_columns({"group": group})}
    refused("'a'", settings={"decision": rule}, **both)
    refused("group", settings={"decision": rule}, **VALIDATION)


def test_rules_need_two_classes():
    three = shifted_classes(60, 3)
    refused("two classes", three.X, three.y, settings={"decision": MostAccurate()})
    regression = skewed_target(50)
    settings = {"decision": MostAccurate()}
    refused("two classes", regression.X, regression.y, estimator=Ridge(), settings=settings)


def test_metrics_without_a_value():
    refused("must return one number", settings={"metric": lambda y, d: None}, **VALIDATION)
    refused("must return one number", settings={"metric": lambda y, d: d}, **VALIDATION)
    only_negatives = ROWS.y_val == 0
    refused(
        "positive",
        settings={"metric": precision_at_recall(), "base_weights": "uniform"},
        validation=(ROWS.X_val[only_negatives], ROWS.y_val[only_negatives]),
    )


def test_sparse_rows_where_a_part_cannot_take_them():
    sparse = csr_array(ROWS.X)
    refused("sparse", sparse, settings={"embedding": "autoencoder"})
    refused(
        "sparse",
        sparse,
        validation=(csr_array(ROWS.X_val), ROWS.y_val),
        settings={"base_weights": "covariate_shift"},
    )
    with pytest.raises((InvalidInputError, SearchFailedError, TypeError), match="[Ss]parse"):
        fit(sparse, estimator=NetworkClassifier(steps=1))


def test_holdout_needs_validation_rows():
    refused("needs validation rows", settings={"honest": "holdout", "evaluate_on": 3})


def test_if_every_candidate_fails_the_first_message_is_shown():
    class Broken(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            raise RuntimeError("the disk is full")

    with pytest.raises(SearchFailedError, match="the disk is full"):
        fit(estimator=Broken())


def test_metrics_of_two_classes_and_of_weights():
    three = shifted_classes(60, 3)
    refused("is for two classes, got 3 classes", three.X, three.y, settings={"metric": precision_at_recall()})

    def weighted(y_true, decision, *, sample_weight):
        return float(np.average(y_true == decision, weights=sample_weight))

    refused("sample_weight", settings={"metric": weighted}, **VALIDATION)


TEXTS = np.array(["0", "1"] * 20)


@pytest.mark.parametrize(
    "texts", [TEXTS, pd.Series(TEXTS), TEXTS.astype(object)], ids=["U", "pandas", "object"]
)
@pytest.mark.parametrize("kind", [int, np.uint8, float, bool])
def test_texts_against_numbers_are_refused(texts, kind):
    X = np.random.default_rng(0).normal(size=(40, 2))
    search = small_search(LogisticRegression())
    numbers = TEXTS.astype(int).astype(kind)
    for y, y_val in ((texts, numbers), (numbers, texts)):
        with pytest.raises(InvalidInputError, match="are strings"):
            search.fit(X, y, validation=(X, y_val))


@pytest.mark.parametrize("kind", ["str", "string", "boolean", "Int64", "category"])
def test_missing_labels_of_any_kind_are_refused(kind):
    y = pd.Series([True, False] * 10).astype("category" if kind == "category" else kind)
    y[3] = pd.NA
    search = small_search(LogisticRegression())
    with pytest.raises(InvalidInputError, match="hold NaN or infinity in 1 rows"):
        search.fit(np.zeros((20, 2)), y)


def test_a_negative_seed_is_refused_by_its_name():
    with pytest.raises(InvalidInputError, match="random_state must not be negative, got -1"):
        MetricSearch(LogisticRegression(), random_state=-1).fit(np.eye(4), [0, 1, 0, 1])


def test_a_metric_cannot_write_into_the_rows():
    def in_millimetres(y, prediction):
        y *= 1000
        return -float(np.abs(y - 1000 * prediction).mean())

    rows = skewed_target()
    before = rows.y_val.copy()
    search = small_search(Ridge(), metric=in_millimetres)
    with pytest.raises(MoewError, match="read-only"):
        search.fit(rows.X, rows.y, validation=(rows.X_val, rows.y_val))
    np.testing.assert_array_equal(rows.y_val, before)


NUMBERS = skewed_target(50)
RAGGED = [[1.0, 2.0], [3.0]] * 33
SAME_NAMES = pd.DataFrame(ROWS.X, columns=["a", "a"])
PIPELINE = make_pipeline(StandardScaler(), Untrained())


@pytest.mark.parametrize(
    ("match", "given"),
    [
        ("estimator must be an estimator as .* got None", {"estimator": None}),
        (r"not a class: write Untrained\(\)", {"estimator": Untrained}),
        ("estimator must be an estimator as .* got 'lightgbm'", {"estimator": "lightgbm"}),
        ("sample_weight must hold a value for each of the 66 rows, got 1.0", {"sample_weight": 1.0}),
        ("sample_weight must hold a value for each", {"validation": Rows(ROWS.X_val, ROWS.y_val, 2)}),
        ("sample_weight must be numbers", {"sample_weight": ["a"] * 66}),
        ("more than one column named ..a.", {"X": SAME_NAMES}),
        ("more than one column named ..a.", {"validation": (SAME_NAMES, ROWS.y)}),
        ("columns has more than one column", with_columns(SAME_NAMES)),
        ("gives? no splits", {"settings": {"evaluate_on": iter([])}}),
        (r"evaluate_on must be a plain number.* got array\(2\)", {"settings": {"evaluate_on": np.array(2)}}),
        (r"two dimensions .*, got shape \(66,\)", {"X": csr_array(np.arange(66.0))}),
        ("as a list of splits must hold at least one", {"settings": {"evaluate_on": []}}),
        ("as a list of splits must hold at least one", {"settings": {"evaluate_on": []}, **VALIDATION}),
        ("cannot split these rows", {"settings": {"evaluate_on": [1]}}),
        ("a number of folds or a splitter", {"settings": {"evaluate_on": object()}}),
        (
            "must be numbers for a regressor, got 'a'",
            {"X": NUMBERS.X, "y": ["a", "b"] * 25, "estimator": Ridge()},
        ),
        ("one value for each row: Complex", {"X": NUMBERS.X, "y": NUMBERS.y * 1j, "estimator": Ridge()}),
        ("its rows have different lengths", {"X": RAGGED}),
        ("its rows have different lengths", {"validation": (RAGGED, ROWS.y)}),
        ("labels y must be one value for each row", {"y": RAGGED}),
        ("sample_weight must hold a value|sample_weight must be numbers", {"sample_weight": RAGGED}),
        ("column 'cost' must have one value", {"columns": {"cost": RAGGED}}),
        (
            "sample_weight_name must be the name",
            {"estimator": PIPELINE, "settings": {"sample_weight_name": None}},
        ),
        ("sample_weight_name must be the name", {"settings": {"sample_weight_name": 3}}),
        ("storage must be None, the path of a file", {"settings": {"storage": 3}}),
        ("storage must be None, the path of a file", {"settings": {"storage": ""}}),
        *(
            ("radius must be a positive number between", {"settings": {"radius": radius}})
            for radius in ("4", [4.0], np.array([1.0, 2.0]), True, 1j, 1e-300, 1e300, np.nan)
        ),
        *(
            ("n_jobs must be None, 'auto' or a whole number", {"settings": {"n_jobs": n_jobs}})
            for n_jobs in ("2", 1.5, 0, True)
        ),
        *(
            ("candidate_timeout must be a positive number", {"settings": {"candidate_timeout": seconds}})
            for seconds in ("5", 0, -1.0, np.inf, True, [5])
        ),
        *(
            ("most_failures must be a share from 0 to 1", {"settings": {"most_failures": share}})
            for share in ("0.5", -0.1, 1.5, None, True)
        ),
        *(
            ("random_state must be a whole number", {"settings": {"random_state": random_state}})
            for random_state in ("0", 1.5, [1])
        ),
        *(
            ("embedding as a function is called as function.X, y.", {"settings": {"embedding": function}})
            for function in (lambda X: X, lambda X, y, z: X, lambda: 0, lambda *, X, y: X)
        ),
        (
            "base_weights as a function is called as",
            {"settings": {"base_weights": lambda y: y}, **VALIDATION},
        ),
    ],
)
def test_wrong_arguments_of_fit_are_named_with_what_was_got(match, given):
    with pytest.raises(InvalidInputError, match=match):
        fit(**given)


@pytest.mark.parametrize(
    ("match", "given"),
    [
        ("repeats must be a whole number", {"repeats": "2"}),
        ("repeats must be a whole number", {"repeats": 2.0}),
        ("at least 2 repeats, got 1", {"repeats": 1}),
        ("random_state must be a whole number of 0 or more, got -1", {"random_state": -1}),
        ("random_state must be a whole number of 0 or more, got '0'", {"random_state": "0"}),
    ],
)
def test_wrong_arguments_of_a_comparison_are_named(match, given):
    search = small_search(Untrained())
    with pytest.raises(InvalidInputError, match=match):
        compare(search, ROWS.X, ROWS.y, test=(ROWS.X_test, ROWS.y_test), **VALIDATION, **given)


@pytest.mark.parametrize("k", ["2", 1.5, 0, True, None])
def test_a_study_is_asked_for_a_whole_number_of_candidates(k):
    with pytest.raises(InvalidInputError, match="ask for at least one candidate, as a whole number; got k="):
        WeightStudy(None, Ball(2, 3.0)).ask(k)


@pytest.mark.parametrize("value", [1j, "0.5", "good", {}, object()])
def test_a_study_is_told_real_numbers(value):
    study = WeightStudy(None, Ball(2, 3.0))
    study.ask(1)
    with pytest.raises(InvalidInputError, match="candidate 0 needs a real number as its value, got"):
        study.tell(0, value)
    study.tell(0, 0.5)  # it was not told yet
    with pytest.raises(InvalidInputError, match="there is no candidate '0'"):
        study.tell("0", 0.5)


def test_a_study_needs_a_storage_that_can_be_opened():
    with pytest.raises(InvalidInputError, match="storage must be None, the path of a file"):
        WeightStudy(None, Ball(2, 3.0), storage=3)


def test_what_is_right_is_taken_as_before():
    for settings in ({"radius": np.float32(2.0)}, {"n_jobs": np.int64(1)}, {"radius": 3}):
        fit(settings=settings, estimator=LogisticRegression())
    study = WeightStudy(None, Ball(2, 3.0))
    for trial in study.ask(np.int64(3)):
        study.tell(np.int64(trial.number), [np.array(0.5), np.float32(0.5), [1]][trial.number])


def test_labels_that_cannot_be_classes_are_refused_as_input():
    refused("Unknown label type", y=np.random.default_rng(0).normal(size=len(ROWS.y)))
    refused("bytes", y=ROWS.y.astype(bytes))
    mixed = np.array([1, "x"] * (len(ROWS.y_val) // 2), dtype=object)
    refused("cannot be compared", validation=(ROWS.X_val[: len(mixed)], mixed))


def test_settings_of_other_types_are_refused_as_input():
    for odd in (np.array([1.0, 2.0]), {}, object()):
        refused("honest must be", settings={"honest": odd})
    refused("radius must be a positive", settings={"radius": 10**400})
    refused("stop_when must be a positive", settings={"stop_when": 10**400})


def test_a_transformer_that_cannot_take_the_rows_is_named():
    X, y = mixed_frame()
    refused(r"embedding: PCA.* cannot take these rows: .*Pipeline", X, y, settings={"embedding": PCA(1)})
