"""Directions: label, columns of the metric, discriminant and principal components."""

import json
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from problems import mixed_frame
from scipy.stats import skew
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tables import QUICK, moew, refused, write_classes

from moew import MetricSearch, Rows
from moew._util.state import load_state
from moew.data import TabularEncoder
from moew.embedding import EMBEDDINGS, DirectionsEmbedding, LabelEmbedding
from moew.exceptions import InvalidInputError
from moew.metrics import fpr_gap, make_metric, worst_class_error
from moew.types import Embedding
from moew.weighting import ExampleWeighting, UniformBaseWeights

RNG = np.random.default_rng(0)
N = 300
X = RNG.normal(size=(N, 6)) @ np.diag([3, 2, 1, 1, 0.5, 0.1]) + RNG.normal(size=6)
BINARY = np.where(X[:, 2] + RNG.normal(size=N) > 1.0, "yes", "no")
CLASSES = np.digitize(X[:, 2] + RNG.normal(size=N), [-1.0, 0.5, 1.5])
SKEWED = np.exp(X[:, 1] + 0.3 * RNG.normal(size=N))
SYMMETRIC = X[:, 0] - X[:, 1] + 0.3 * RNG.normal(size=N)
FRAME, OF_FRAME = mixed_frame(N)
COLUMNS = {
    "group": RNG.choice(["a", "b"], N),
    "region": RNG.choice(["n", "e", "s"], N),
    "cost": RNG.lognormal(2, 1, N),
    "change": RNG.normal(size=N),
    "person": np.array([f"p{i}" for i in range(N)]),
}
TASKS = [
    pytest.param("classification", BINARY, id="binary"),
    pytest.param("classification", CLASSES, id="classes"),
    pytest.param("regression", SKEWED, id="skewed"),
    pytest.param("regression", SYMMETRIC, id="symmetric"),
]
SMALL = {
    "embedding": "directions",
    "n_candidates": 8,
    "batch_size": 4,
    "strategies": "example weights",
    "random_state": 0,
}


def fit(X, y, task="classification", columns=None, **settings):
    return DirectionsEmbedding(**settings).fit(X, y, task=task, columns=columns)


def fit_transform(X, y, task="classification", columns=None, **settings):
    return fit(X, y, task, columns, **settings).transform(X, y, columns)


def through_json(thing):
    return load_state(json.loads(json.dumps(thing.state(), allow_nan=False)))


def scaled(values):
    """Standardised by scikit-learn, and clipped."""
    return np.clip(StandardScaler().fit_transform(np.asarray(values).reshape(N, -1)), -4, 4)


def encoded(rows=X):
    return TabularEncoder().fit(rows).transform(rows)


def components(rows, n):
    """scikit-learn's principal components, the largest loading of each positive."""
    pca = PCA(n, svd_solver="full").fit(rows)
    loadings = pca.components_
    sign = np.sign(loadings[np.arange(n), np.abs(loadings).argmax(axis=1)])
    return pca.transform(rows) * sign


def test_two_classes_have_label_score_their_product_and_components():
    Z = fit_transform(X, BINARY)
    analysis = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto").fit(encoded(), BINARY)
    score = scaled(analysis.decision_function(encoded()))[:, 0]
    sign = np.where(BINARY == "yes", 1.0, -1.0)
    np.testing.assert_array_equal(Z[:, 0], sign)
    expected = np.column_stack([sign, score, score * sign, scaled(components(encoded(), 2))])
    np.testing.assert_allclose(Z, expected, atol=1e-10)


def test_several_classes_have_a_dimension_each_and_the_log_probability_of_their_own():
    embedding = fit(X, CLASSES, n_components=3)
    Z = embedding.transform(X, CLASSES)
    assert embedding.n_label_ == 4
    np.testing.assert_allclose(Z[:, :4], np.sqrt(2) * (np.eye(4)[CLASSES] - 0.25))
    analysis = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto").fit(encoded(), CLASSES)
    own = analysis.predict_log_proba(encoded())[np.arange(N), CLASSES]
    np.testing.assert_allclose(Z[:, 4:5], scaled(np.clip(own, -10, 0)), atol=1e-9)
    np.testing.assert_allclose(Z[:, 5:], scaled(components(encoded(), 3)), atol=1e-9)


@pytest.mark.parametrize(("y", "is_log"), [(SKEWED, True), (SYMMETRIC, False), (-SKEWED, False)])
def test_regression_has_the_target_the_prediction_and_the_error(y, is_log):
    assert bool(skew(y) > 1 and y.min() > 0) is is_log
    embedding = fit(X, y, "regression")
    Z = embedding.transform(X, y)
    assert embedding.n_label_ == 1
    predicted = make_pipeline(StandardScaler(), Ridge()).fit(encoded(), y).predict(encoded())
    error = np.log(np.abs(y - predicted) + 0.1 * y.std())
    expected = [scaled(np.log(y) if is_log else y), scaled(predicted), scaled(error)]
    np.testing.assert_allclose(Z, np.hstack([*expected, scaled(components(encoded(), 2))]), atol=1e-9)


def test_a_log_target_takes_any_number_of_new_rows():
    embedding = fit(X, SKEWED, "regression")
    Z = embedding.transform(X[:3], np.array([-1.0, 0.0, 1e300]))
    assert Z[:, 0].tolist() == [-4.0, -4.0, 4.0]
    assert np.isfinite(Z).all()


def test_columns_come_after_the_label_and_times_the_label_for_two_classes():
    Z = fit_transform(None, BINARY, columns=COLUMNS)
    sign = np.where(BINARY == "yes", 1.0, -1.0)[:, None]
    group = np.where(COLUMNS["group"] == "b", 1.0, -1.0)[:, None]
    region = np.sqrt(1.5) * ((COLUMNS["region"][:, None] == np.array(["e", "n", "s"])) - 1 / 3)
    cost, change = scaled(np.log1p(COLUMNS["cost"])), scaled(COLUMNS["change"])
    each = [part for dims in (group, region, cost, change) for part in (dims, dims * sign)]
    np.testing.assert_allclose(Z, np.hstack([sign, *each]), atol=1e-12)
    several = fit_transform(None, CLASSES, columns=COLUMNS)
    np.testing.assert_allclose(several[:, 4:], np.hstack([group, region, cost, change]), atol=1e-12)
    numbers = fit_transform(None, SKEWED, "regression", COLUMNS)
    np.testing.assert_allclose(numbers[:, 1:], np.hstack([group, region, cost, change]), atol=1e-12)


def test_columns_that_say_nothing_are_left_out_and_not_asked_for():
    columns = {
        "constant": np.ones(N),
        "person": COLUMNS["person"],
        "row": np.arange(N),
        "missing": np.full(N, np.nan),
        "same": BINARY,  # its product with the label is constant
    }
    embedding = fit(None, BINARY, columns=columns)
    Z = embedding.transform(None, BINARY, {"same": BINARY})
    assert Z.shape == (N, 2)
    np.testing.assert_array_equal(Z[:, 0], Z[:, 1])


@pytest.mark.parametrize(
    ("training", "new"),
    [
        (["a", "b", None], ["c", None, np.nan]),
        ([1, 2, 2], [3.0, np.nan, 1.5]),
        ([True, False, True], [2, 3, 4]),
        ([Decimal("1.5"), Decimal(2), None], [None, np.nan, Decimal(3)]),
        (["a", "b", "c"], ["d", None, ""]),
    ],
)
def test_unknown_and_missing_values_give_zeros(training, new):
    values = np.array(training * 4, dtype=object)
    embedding = fit(None, [0, 1] * 6, columns={"group": values})
    assert np.abs(embedding.transform(None, [0, 1] * 6, {"group": values})[:, 1]).max() > 0
    Z = embedding.transform(None, [1, 1, 0], {"group": np.array(new, dtype=object)})
    assert (Z[:, 1:] == 0).all()


def test_a_missing_number_of_a_column_is_its_mean_and_an_infinite_one_is_clipped():
    change = COLUMNS["change"].copy()
    change[:3] = np.nan, np.inf, -np.inf
    Z = fit_transform(None, SYMMETRIC, "regression", {"change": change})
    assert Z[:3, 1].tolist() == [0.0, 4.0, -4.0]
    np.testing.assert_allclose(Z[3:, 1].mean(), 0, atol=1e-2)


def test_columns_must_have_the_rows_and_the_kind_of_training():
    with pytest.raises(InvalidInputError, match=r"'group' has 3 values for 300 rows") as raised:
        fit(X, BINARY, columns={"group": ["a", "b", "a"]})
    assert raised.value.argument == "columns"
    embedding = fit(X, BINARY, columns=COLUMNS)
    with pytest.raises(InvalidInputError, match=r"'region', 'cost' of each row.*columns=") as raised:
        embedding.transform(X, BINARY, {"group": COLUMNS["group"], "change": COLUMNS["change"]})
    assert raised.value.argument == "columns"
    with pytest.raises(InvalidInputError, match=r"'cost' held numbers"):
        embedding.transform(X, BINARY, {**COLUMNS, "cost": COLUMNS["person"]})
    with pytest.raises(InvalidInputError, match=r"'cost' has 2 values"):
        embedding.transform(X, BINARY, {**COLUMNS, "cost": [1.0, 2.0]})


def test_columns_are_taken_from_a_data_frame_whether_they_are_features_or_not():
    frame = pd.DataFrame(X, columns=[*"abcdef"])
    columns = {"group": COLUMNS["group"], "a": frame["a"]}
    embedding = fit(frame, BINARY, columns=columns)
    Z = embedding.transform(frame, BINARY, columns)
    np.testing.assert_array_equal(embedding.transform(frame, BINARY, {"group": COLUMNS["group"]}), Z)
    with_group = frame.assign(group=COLUMNS["group"])
    np.testing.assert_array_equal(embedding.transform(with_group, BINARY), Z)
    with pytest.raises(InvalidInputError, match=r"extra: \['other'\]"):
        embedding.transform(with_group.assign(other=1), BINARY)


@pytest.mark.parametrize("rows", [X, FRAME, None], ids=["array", "frame", "none"])
@pytest.mark.parametrize(("task", "y"), TASKS)
def test_states_give_the_same_bits_and_rows_do_not_depend_on_each_other(task, y, rows):
    embedding = fit(rows, y, task, COLUMNS)
    assert isinstance(embedding, Embedding)
    Z = embedding.transform(rows, y, COLUMNS)
    assert Z.dtype == np.float64
    assert np.isfinite(Z).all()
    assert (np.ptp(Z, axis=0) > 0).all()
    loaded = through_json(embedding)
    np.testing.assert_array_equal(loaded.transform(rows, y, COLUMNS), Z)
    assert loaded.state() == embedding.state()
    assert loaded.n_label_ == embedding.n_label_
    np.testing.assert_array_equal(fit_transform(rows, y, task, COLUMNS), Z)
    for start, stop in [(i, i + 1) for i in range(20)] + [(20, 27), (27, 31), (31, N)]:
        some = {name: values[start:stop] for name, values in COLUMNS.items()}
        part = None if rows is None else rows[start:stop]
        np.testing.assert_array_equal(embedding.transform(part, y[start:stop], some), Z[start:stop])


def test_rows_do_not_depend_on_each_other_across_blocks():
    rng = np.random.default_rng(1)
    rows, y = rng.normal(size=(2_500, 40)), rng.integers(0, 12, 2_500)
    embedding = fit(rows, y)
    Z = embedding.transform(rows, y)
    for numbers in (np.arange(700, 2_300), np.array([2_499]), rng.permutation(2_500)):
        np.testing.assert_array_equal(embedding.transform(rows[numbers], y[numbers]), Z[numbers])


@pytest.mark.parametrize(("task", "y"), [("classification", OF_FRAME), ("regression", SKEWED)])
def test_frames_with_texts_and_missing_values_are_encoded(task, y):
    assert FRAME.isna().any(axis=None)
    embedding = fit(FRAME, y, task)
    Z = embedding.transform(FRAME, y)
    oracle = components(encoded(FRAME), 2)
    np.testing.assert_allclose(Z[:, -2:], scaled(oracle), atol=1e-9)
    gone = FRAME.iloc[:2].copy()
    gone.loc[:, [name for name in FRAME if FRAME[name].dtype.kind == "f"]] = np.nan
    assert np.isfinite(embedding.transform(gone, y[:2])).all()


def test_sparse_rows_have_label_and_columns_only():
    sparse = scipy.sparse.csr_array(X)
    Z = fit_transform(sparse, BINARY, columns={"group": COLUMNS["group"]})
    np.testing.assert_array_equal(Z, fit_transform(None, BINARY, columns={"group": COLUMNS["group"]}))
    assert Z.shape == (N, 3)


@pytest.mark.parametrize(("task", "y"), TASKS)
def test_fewer_rows_than_columns(task, y):
    wide = np.random.default_rng(2).normal(size=(30, 80))
    few = y[:30]
    Z = fit(wide, few, task).transform(wide, few)
    oracle = components(encoded(wide), 2)
    np.testing.assert_allclose(Z[:, -2:], np.clip(StandardScaler().fit_transform(oracle), -4, 4), atol=1e-9)
    assert np.isfinite(Z).all()


@pytest.mark.parametrize(
    ("rows", "n_components", "n_from_x"),
    [
        (np.ones((N, 3)), 2, 0),
        (X[:, :1], 2, 3),
        (np.column_stack([X[:, 0], 2 * X[:, 0], np.zeros(N)]), 2, 3),
        (X, 0, 2),
        (X, 20, 8),
    ],
)
def test_there_are_as_many_components_as_x_has(rows, n_components, n_from_x):
    assert fit_transform(rows, BINARY, n_components=n_components).shape == (N, 1 + n_from_x)


def test_outliers_are_clipped():
    rows = X.copy()
    rows[0] = 1e6
    Z = fit(X, BINARY).transform(rows, BINARY)
    assert np.abs(Z).max() == 4
    Z = fit_transform(rows, SYMMETRIC, "regression")
    assert np.abs(Z).max() == 4


@pytest.mark.parametrize(("task", "y"), [("classification", np.full(N, "a")), ("regression", np.ones(N))])
def test_constant_labels_give_zeros(task, y):
    Z = fit_transform(X, y, task)
    assert (Z[:, 0] == 0).all()
    assert Z.shape == (N, 3)
    assert through_json(fit(X, y, task)).n_label_ == 1


@pytest.mark.parametrize("y", [[0] * 9 + [1], [0] * 7 + [1, 2, 3], list("abcdefghij")])
def test_classes_of_one_row(y):
    assert np.isfinite(fit(X[:10], y).transform(X[:10], y)).all()


def test_many_rows_are_learned_from_some_of_them_and_no_class_is_lost():
    rng = np.random.default_rng(3)
    y = np.zeros(50_000, dtype=int)
    y[[7, 30_000, 49_999]] = 1
    rows = rng.normal(size=(50_000, 3)) + 2 * y[:, None]
    rows[:, 1] += rows[:, 0]
    embedding = fit(rows, y)
    Z = embedding.transform(rows, y)
    assert Z.shape == (50_000, 5)
    # Each class is thinned to its share, so the direction is that of all rows but for chance.
    whole = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto").fit(encoded(rows), y)
    assert np.corrcoef(whole.decision_function(encoded(rows)), encoded(rows) @ embedding.coef_[0])[0, 1] > 0.9
    assert np.corrcoef(components(encoded(rows), 1)[:, 0], Z[:, 3])[0, 1] > 0.999
    numbers = rng.random(50_000)
    assert np.isfinite(fit(rows, numbers, "regression").transform(rows, numbers)).all()


def test_settings_are_checked_and_it_clones():
    for wrong in (-1, 1.5, None):
        with pytest.raises(InvalidInputError, match="n_components"):
            fit(X, BINARY, n_components=wrong)
    with pytest.raises(InvalidInputError, match="task must be"):
        fit(X, BINARY, "ranking")
    with pytest.raises(InvalidInputError, match="300 rows and y has 10"):
        fit(X, BINARY).transform(X, BINARY[:10])
    with pytest.raises(InvalidInputError, match="perhaps"):
        fit(X, BINARY).transform(X[:1], ["perhaps"])
    copy = clone(fit(X, BINARY, n_components=5))
    assert copy.n_components == 5
    assert not hasattr(copy, "kept_")
    assert EMBEDDINGS["directions"] is DirectionsEmbedding


def test_weight_functions_hand_the_columns_on():
    columns = {"group": COLUMNS["group"]}
    weighting = ExampleWeighting(DirectionsEmbedding(), UniformBaseWeights())
    weighting.fit(X, BINARY, task="classification", columns=columns)
    alpha = np.linspace(-1, 1, weighting.n_dims)
    function = weighting.weight_function(alpha)
    np.testing.assert_array_equal(function(X, BINARY, columns), weighting.training_weights(alpha[None])[0])
    np.testing.assert_array_equal(through_json(function)(X, BINARY, columns), function(X, BINARY, columns))
    with pytest.raises(InvalidInputError, match="'group'"):
        function(X, BINARY)
    by_label = ExampleWeighting(LabelEmbedding(), UniformBaseWeights())
    by_label.fit(X, BINARY, task="classification", columns=columns)
    assert by_label.weight_function(np.ones(2))(X, BINARY, columns).shape == (N,)


@pytest.mark.parametrize("y", [BINARY, CLASSES])
def test_a_search_gives_its_training_rows_their_weights(y):
    search = MetricSearch.from_settings(LogisticRegression(), metric=worst_class_error(), **SMALL)
    clone(search).fit(X, y)
    search.fit(X[:150], y[:150], validation=(X[150:], y[150:]))
    np.testing.assert_array_equal(search.example_weights(X[:150], y[:150]), search.sample_weight_)
    parts = search.iter_example_weights((X[:150], y[:150]), chunk_rows=40)
    np.testing.assert_array_equal(np.concatenate(list(parts)), search.sample_weight_)


def test_a_search_of_a_regression_and_of_sparse_rows():
    search = MetricSearch.from_settings(Ridge(), **SMALL).fit(X, SKEWED)
    kept = search.training_rows_
    np.testing.assert_array_equal(search.example_weights(X[kept], SKEWED[kept]), search.sample_weight_)
    sparse = scipy.sparse.csr_array(X)
    search = MetricSearch.from_settings(LogisticRegression(), **SMALL).fit(sparse, CLASSES)
    assert search.study_.weighting.embedding.n_label_ == 4
    assert search.__sklearn_tags__().input_tags.sparse


def value(y_true, decision, cost, bonus=None):
    gain = cost if bonus is None else cost + bonus
    return float((gain * (decision == y_true)).mean())


def searched(rows, columns, metric=None):
    metric = fpr_gap(pos_label="yes") if metric is None else metric
    search = MetricSearch.from_settings(LogisticRegression(), metric=metric, **SMALL)
    return search.fit(rows, BINARY, columns=columns)


def test_a_search_by_groups_weights_by_them():
    columns = {"group": COLUMNS["group"]}
    search = searched(X, columns)
    kept = search.training_rows_
    of_kept = {"group": COLUMNS["group"][kept]}
    assert len(search.best_alpha_) == 7
    weights = search.example_weights(X[kept], BINARY[kept], columns=of_kept)
    np.testing.assert_array_equal(weights, search.sample_weight_)
    every = search.example_weights(X, BINARY, columns=columns)
    parts = search.iter_example_weights((X, BINARY), columns=columns, chunk_rows=77)
    np.testing.assert_array_equal(np.concatenate(list(parts)), every)
    trial = search.result_.trials[1]
    assert search.study_.weights(trial, X, BINARY, columns=columns).shape == (N,)
    for y, more in ((BINARY, {}), (None, {"chunk_rows": 50})):
        source = X if y is not None else (X, BINARY)
        numbers, _ = search.downsample(0.3, source, y, columns=columns, **more)
        assert 60 < len(numbers) < 120


def test_columns_that_are_missing_are_named():
    search = searched(X, {"group": COLUMNS["group"]})
    for call in (
        lambda: search.example_weights(X, BINARY),
        lambda: list(search.iter_example_weights((X, BINARY))),
        lambda: search.downsample(0.5, X, BINARY),
    ):
        with pytest.raises(InvalidInputError, match=r"'group' of each row.*columns=") as raised:
            call()
        assert raised.value.argument == "columns"
    with pytest.raises(InvalidInputError, match="has 301 values, but there are 300 rows"):
        list(search.iter_example_weights((X, BINARY), columns={"group": [*COLUMNS["group"], "a"]}))
    with pytest.raises(InvalidInputError, match="belong to rows X"):
        search.downsample(0.5, columns={"group": COLUMNS["group"]})


def test_columns_of_files_are_found_among_their_columns(tmp_path):
    frame = pd.DataFrame(X, columns=[*"abcdef"])
    search = searched(frame, {"group": COLUMNS["group"]})
    expected = search.example_weights(frame, BINARY, columns={"group": COLUMNS["group"]})
    whole = frame.assign(group=COLUMNS["group"])
    np.testing.assert_array_equal(search.example_weights(whole, BINARY), expected)
    whole.assign(y=BINARY).to_parquet(tmp_path / "rows.parquet")
    parts = search.iter_example_weights(tmp_path / "rows.parquet", label="y", chunk_rows=64)
    np.testing.assert_array_equal(np.concatenate(list(parts)), expected)
    assert len(search.downsample(0.3, tmp_path / "rows.parquet", label="y")[0]) > 60
    features = searched(whole.assign(group=(COLUMNS["group"] == "a") * 1.0), None)
    kept = features.training_rows_
    numbers = whole.assign(group=(COLUMNS["group"] == "a") * 1.0).iloc[kept]
    np.testing.assert_array_equal(features.example_weights(numbers, BINARY[kept]), features.sample_weight_)


def test_optional_columns_count_where_training_rows_have_them():
    metric = make_metric(value)
    columns = {"cost": COLUMNS["cost"], "bonus": COLUMNS["region"] == "n"}
    by_both = searched(X, {**columns, "bonus": columns["bonus"] * 1.0}, metric)
    assert [column.name for column in by_both.study_.weighting.embedding.row_columns_] == ["cost", "bonus"]
    by_one = searched(X, {"cost": COLUMNS["cost"]}, metric)
    assert [column.name for column in by_one.study_.weighting.embedding.row_columns_] == ["cost"]


def test_columns_of_the_validation_rows_alone_are_not_used():
    search = MetricSearch.from_settings(LogisticRegression(), metric=fpr_gap(pos_label="yes"), **SMALL)
    search.fit(
        X[:150],
        BINARY[:150],
        validation=Rows(X[150:], BINARY[150:], columns={"group": COLUMNS["group"][150:]}),
    )
    np.testing.assert_array_equal(search.example_weights(X[:150], BINARY[:150]), search.sample_weight_)
    assert len(search.best_alpha_) == 5


def test_the_command_line_weights_by_the_columns_of_the_file(own_folder):
    write_classes(own_folder)
    for name in ("train", "valid", "test"):
        frame = pd.read_csv(f"{name}.csv")
        frame.assign(who=np.where(frame["amount"] > 1.5, "x", "z")).to_csv(f"{name}.csv", index=False)
    moew(
        *("fit", "train.csv", "--validation", "valid.csv", "--label", "y", "--metric", "fpr_gap"),
        *(
            "--positive",
            "yes",
            "--metric-column",
            "group=who",
            "--id",
            "id",
            "--out",
            "run",
            "--model",
            "logistic",
        ),
        *(*QUICK, "--set", "embedding=directions", "--strategies", "example weights"),
    )
    moew("weights", "run", "train.csv", "--out", "w.parquet")
    expected = pd.read_parquet("run/weights.parquet")
    np.testing.assert_array_equal(pd.read_parquet("w.parquet")["weight"], expected["weight"])
    pd.read_csv("test.csv").drop(columns="who").to_csv("test.csv", index=False)
    assert "test.csv has no column 'who'" in refused("weights", "run", "test.csv")


def test_the_command_line_does_not_weight_by_the_numbers_of_rows(own_folder):
    write_classes(own_folder)
    for name in ("train", "valid"):
        pd.read_csv(f"{name}.csv").drop(columns="id").to_csv(f"{name}.csv", index=False)
    (own_folder / "score.sh").write_text("echo 0.5")
    moew(
        *(
            "fit",
            "train.csv",
            "--validation",
            "valid.csv",
            "--label",
            "y",
            "--out",
            "run",
            "--model",
            "logistic",
        ),
        *("--metric-command", "sh score.sh {predictions}", "--set", "metric.response=decision"),
        *("--higher-is-better", *QUICK, "--set", "embedding=directions", "--strategies", "example weights"),
    )
    moew("weights", "run", "valid.csv")
