"""What a finished search tells, as numbers."""

import numpy as np
import pandas as pd
import pytest
import searches
from hypothesis import given
from hypothesis import strategies as st
from problems import shifted_classes
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression

from moew import MetricSearch
from moew.data import Rows
from moew.decision import MostAccurate
from moew.exceptions import InvalidInputError
from moew.inspection import (
    effective_size,
    groups_by_label,
    landscape,
    slices_of,
    table_columns,
    trace,
    trained_rows,
)
from moew.metrics import accuracy


def test_the_gain_has_the_standard_error_of_paired_rows():
    rows = shifted_classes(600, 3)
    search = MetricSearch.from_settings(
        LogisticRegression(),
        metric=accuracy(),
        embedding="label",
        base_weights="uniform",
        **searches.SETTINGS,
        **searches.PAPER,
    )
    search.fit(rows.X, rows.y, validation=(rows.X_val, rows.y_val))
    plain = LogisticRegression().fit(rows.X, rows.y)
    right = [np.asarray(model.predict(rows.X_val) == rows.y_val, dtype=float) for model in (search, plain)]
    difference = right[0] - right[1]
    expected = difference.std() / np.sqrt(len(rows.y_val))
    luck = search.result_.honest.optimism  # what is taken off for it is as uncertain as it is large
    assert search.result_.gain_error == pytest.approx(np.hypot(expected, luck), rel=0.25)
    assert luck < search.result_.gain_error


def test_the_gain_of_rows_set_aside_has_an_error_too():
    rows = shifted_classes(300)
    search = MetricSearch.from_settings(
        LogisticRegression(),
        metric="balanced_accuracy",
        embedding=[0, 1],
        honest="holdout",
        decision=MostAccurate("validation"),
        strategies="example weights",
        **{**searches.SETTINGS, "random_state": 1},
    )
    search.fit(rows.X, rows.y, validation=(rows.X_val, rows.y_val))
    assert 0 < search.result_.gain_error < 0.2
    search.set_params(honest=None).fit(rows.X, rows.y, validation=(rows.X_val, rows.y_val))
    assert np.isnan(search.result_.gain_error)


def test_the_trace_follows_the_best_in_the_metrics_direction():
    search, _ = searches.multiclass()
    seen = trace(search.fitted_)
    assert seen.values.tolist() == [told.value for told in search.result_.trials]
    assert seen.best_so_far[-1] == search.result_.best_trial.value == seen.values.min()
    assert (np.diff(seen.best_so_far) <= 0).all()


def test_a_landscape_of_two_dimensions_goes_near_what_was_seen():
    search, _ = searches.binary()
    seen = landscape(search.fitted_)
    assert len(seen.dims) == 2
    assert seen.n_dims == 3
    assert seen.mean.shape == (41, 41)
    spread = np.ptp(seen.values)
    assert seen.mean.min() > seen.values.min() - spread
    assert seen.mean.max() < seen.values.max() + spread
    assert seen.numbers[seen.winner] == search.result_.best_number


def test_a_landscape_is_the_gp_of_all_candidates_where_nothing_is_cut_away():
    search, _ = searches.regression()
    seen = landscape(search.fitted_, points=61)
    assert seen.dims == (0,)
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    from moew.samplers import GpBucb

    values = (seen.values - seen.values.mean()) / seen.values.std()
    kernel = GpBucb().model(seen.alphas, seen.values, search.study_.domain).kernel
    oracle = GaussianProcessRegressor(
        ConstantKernel(kernel.amplitude**2) * RBF(kernel.width) + WhiteKernel(kernel.noise), optimizer=None
    ).fit(seen.alphas, values)
    expected = seen.values.mean() + seen.values.std() * oracle.predict(seen.sides[:, None])
    assert np.allclose(seen.mean, expected, atol=1e-6 * seen.values.std())


def test_a_landscape_shows_the_dimensions_that_were_asked_for_or_says_which_there_are():
    search, _ = searches.binary()
    seen = landscape(search.fitted_, [2, 0])
    assert seen.dims == (2, 0)
    told = search.result_.trials[seen.numbers[3]]
    assert seen.alphas[3].tolist() == told.alpha[[2, 0]].tolist()
    for wrong in ([0, 0], [3], [], [0, 1, 2]):
        with pytest.raises(InvalidInputError, match="from 0 to 2"):
            landscape(search.fitted_, wrong)


def both(rows):
    return Rows(rows.X, rows.y), Rows(rows.X_val, rows.y_val)


def test_candidates_are_trained_again_to_the_same_bits():
    search, rows = searches.binary(**searches.PAPER, base_weights="uniform")
    best = search.result_.best_number
    model = searches.trained_again(search.fitted_, best, rows.X, rows.y)
    assert np.array_equal(model.coef_, search.best_estimator_.coef_)


@pytest.mark.parametrize("settings", [{}, searches.PAPER], ids=["default", "paper"])
def test_weights_and_errors_by_class_are_those_of_the_two_models(settings):
    search, rows = searches.multiclass(**settings)
    found = groups_by_label(search.fitted_, *both(rows))
    plain = LogisticRegression(C=0.1).fit(rows.X, rows.y)
    for c, group in enumerate(found.groups):
        assert group.name == str(c)
        assert group.mean_weight == pytest.approx(search.sample_weight_[rows.y == c].mean())
        scored = rows.y_val == c
        assert group.n_validation == scored.sum()
        assert group.unweighted_error == pytest.approx(np.mean(plain.predict(rows.X_val[scored]) != c))
        assert group.winner_error == pytest.approx(np.mean(search.predict(rows.X_val[scored]) != c))
    if settings:
        assert max(group.winner_error for group in found.groups) == pytest.approx(search.best_score_)


def test_a_decision_rule_is_fitted_for_the_unweighted_model_too():
    search, rows = searches.binary(**searches.PAPER)
    found = groups_by_label(search.fitted_, *both(rows))
    assert 1 - np.mean([group.unweighted_error for group in found.groups]) == pytest.approx(
        search.unweighted_score_
    )


def test_a_numeric_target_is_cut_into_bins():
    search, rows = searches.regression(**searches.PAPER)
    found = groups_by_label(search.fitted_, *both(rows))
    assert not found.is_classes
    assert sum(group.n_rows for group in found.groups) == len(rows.y)
    total = sum(group.winner_error * group.n_validation for group in found.groups)
    assert total / len(rows.y_val) == pytest.approx(-search.best_score_)
    assert found.groups[0].name.startswith("up to")


def test_without_validation_rows_there_are_weights_alone_and_a_reason():
    search, (X, y) = searches.frame(evaluate_on=0.2)
    held_out = groups_by_label(search.fitted_, Rows(X, y))  # a share was held out: its errors are known
    assert all(group.n_validation > 0 for group in held_out.groups)
    rows = shifted_classes(120)
    crossed = MetricSearch.from_settings(
        LogisticRegression(), embedding="label", evaluate_on=3, **searches.SETTINGS
    )
    found = groups_by_label(crossed.fit(rows.X, rows.y).fitted_, Rows(rows.X, rows.y))
    assert "kept out of training" in found.reason
    assert all(np.isnan(group.unweighted_error) for group in found.groups)


def test_rows_that_were_not_fitted_are_refused():
    search, rows = searches.binary()
    with pytest.raises(InvalidInputError, match=f"fitted with, {len(rows.y)}, got 7"):
        trained_rows(search.fitted_, rows.X[:7], rows.y[:7])
    with pytest.raises(InvalidInputError, match="y must have the rows"):
        trained_rows(search.fitted_, rows.X, rows.y[:-1])
    held_out, (X, y) = searches.frame(evaluate_on=0.2)
    with pytest.raises(InvalidInputError, match="at least"):
        trained_rows(held_out.fitted_, X[:5], y[:5])
    assert np.array_equal(trained_rows(held_out.fitted_, X, y).y, y[held_out.training_rows_])


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=30))
def test_the_effective_size_lies_between_one_and_all(weights):
    size = effective_size(np.array(weights))
    assert 1 - 1e-9 <= size <= len(weights) * (1 + 1e-9)
    assert effective_size(np.ones(len(weights))) == pytest.approx(len(weights))


@given(
    st.lists(
        st.one_of(
            st.none(), st.floats(allow_nan=True), st.integers(-5, 5), st.booleans(), st.text(max_size=3)
        ),
        min_size=1,
        max_size=40,
    ),
    st.randoms(use_true_random=False),
)
def test_slices_of_anything_hold_every_row_once_and_keep_the_mean_weight(values, random):
    weights = np.array([random.uniform(0, 2) for _ in values])
    cut = slices_of("any", np.array(values, dtype=object), weights)
    if cut is None:
        assert len({str(value) for value in values}) > 8
        return
    assert sum(part.n_rows for part in cut.slices) == len(values)
    total = sum(part.n_rows * part.mean_weight for part in cut.slices)
    assert total == pytest.approx(weights.sum())
    assert 0 <= cut.explained <= 1


def test_slices_are_named_by_what_is_in_them():
    weights = np.linspace(0.5, 1.5, 1000)
    numbers = slices_of("number", np.arange(1000.0), weights)
    assert [part.name for part in numbers.slices] == [
        "up to 199",
        "199 to 399",
        "399 to 599",
        "599 to 799",
        "above 799",
    ]
    assert [part.n_rows for part in numbers.slices] == [200] * 5
    assert numbers.explained == pytest.approx(0.96, abs=0.01)  # of a line, by five steps: 1 − 1/25
    days = np.datetime64("2024-01-01") + np.arange(1000).astype("timedelta64[D]")
    assert slices_of("day", days, weights).slices[0].name == "up to 2024-07-18"
    kinds = np.array(["b", "a", None, "b"] * 250, dtype=object)
    assert [(part.name, part.n_rows) for part in slices_of("kind", kinds, weights).slices] == [
        ("a", 250),
        ("b", 500),
        ("missing", 250),
    ]
    assert slices_of("id", np.array([f"id{i}" for i in range(1000)]), weights) is None


def test_rare_categories_go_together():
    values = np.array([f"k{i % 12}" for i in range(240)] + ["k0"] * 10)
    cut = slices_of("kind", values, np.ones(250))
    assert cut.slices[-1].name == "5 others"
    assert cut.slices[-1].n_rows == 100
    assert cut.explained == 0


def test_columns_of_any_table():
    dense = np.array([[1.0, 0.0], [0.0, 2.0]])
    for table in (dense, csr_array(dense)):
        found = dict(table_columns(table, {"more": [5, 6]}))
        assert list(found) == ["more", "column 0", "column 1"]
        assert found["column 1"].tolist() == [0, 2]
    frame = pd.DataFrame(dense, columns=["a", "b"])
    assert [name for name, _ in table_columns(frame, {"a": [0, 0]})] == ["a", "b"]
    assert [name for name, _ in table_columns(frame, most=1)] == ["a"]
