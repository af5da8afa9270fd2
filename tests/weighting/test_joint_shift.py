"""Which training rows are like the validation rows."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from scipy.stats import ks_2samp

from moew.weighting._density_ratio import joint_density_ratio, rows_like


def plane(n, seed, centre=0.0, share=0.3):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < share).astype(int)
    return np.column_stack([rng.normal(centre, 1, n), rng.standard_normal(n) + y]), y


def ratio_of(training, validation, task="classification", seed=0):
    return joint_density_ratio(*training, *validation, task=task, seed=seed)


def test_without_a_shift_every_row_counts_as_one():
    for seed in range(5):
        ratio = ratio_of(plane(600, seed), plane(200, seed + 50))
        drawn, effective = rows_like(ratio, np.random.default_rng(0), 10**6)
        assert effective > 500
        if (ratio == 1).all():
            assert len(drawn) == effective == 600
    none_seen = [(ratio_of(plane(600, s), plane(200, s + 50)) == 1).all() for s in range(20)]
    assert np.mean(none_seen) >= 0.6


def test_a_shift_of_the_label_alone_is_seen_and_corrected():
    training, validation = plane(3000, 0, share=0.2), plane(1000, 1, share=0.6)
    drawn, effective = rows_like(ratio_of(training, validation), np.random.default_rng(9), 10**6)
    assert 100 < len(drawn) < effective < 3000
    assert training[1][drawn].mean() == pytest.approx(0.6, abs=0.08)


def test_a_shift_of_the_features_alone_is_seen_and_corrected():
    training, validation = plane(3000, 0), plane(1000, 1, centre=0.8)
    drawn, effective = rows_like(ratio_of(training, validation), np.random.default_rng(9), 10**6)
    assert len(drawn) < effective < 3000
    before, after = (
        ks_2samp(training[0][rows, 0], validation[0][:, 0]).statistic for rows in (slice(None), drawn)
    )
    assert after < before / 2


def test_a_shift_of_a_numeric_target_is_seen_and_corrected():
    rng = np.random.default_rng(0)
    X, X_val = rng.standard_normal((2000, 1)), rng.standard_normal((800, 1))
    y, y_val = rng.normal(0, 1, 2000), rng.normal(0.8, 1, 800)
    ratio = ratio_of((X, y), (X_val, y_val), "regression")
    drawn, _ = rows_like(ratio, rng, 10**6)
    assert y[drawn].mean() == pytest.approx(0.8, abs=0.15)


def test_sparse_rows_are_evaluated_by_their_labels():
    training, validation = plane(1000, 0, centre=0.0, share=0.2), plane(500, 1, centre=3.0, share=0.6)
    sparse = ratio_of((csr_matrix(training[0]), training[1]), (csr_matrix(validation[0]), validation[1]))
    assert len(np.unique(sparse)) == 2  # one ratio for each class
    assert sparse[training[1] == 1][0] > sparse[training[1] == 0][0]


def test_tables_with_categories_and_gaps_have_a_ratio():
    rng = np.random.default_rng(0)

    def frame(n, share):
        kind = pd.Categorical(np.where(rng.random(n) < share, "a", "b"))
        return pd.DataFrame({"kind": kind, "number": np.where(rng.random(n) < 0.1, np.nan, rng.random(n))})

    X, X_val = frame(800, 0.2), frame(400, 0.7)
    y, y_val = rng.integers(0, 2, 800), rng.integers(0, 2, 400)
    ratio = ratio_of((X, y), (X_val, y_val))
    assert np.isfinite(ratio).all()
    assert ratio[X["kind"] == "a"].mean() > 1.5 > 0.7 > ratio[X["kind"] == "b"].mean()


def test_a_single_row_on_one_side_shows_no_shift():
    training, validation = plane(50, 0), plane(1, 1)
    assert (ratio_of(training, validation) == 1).all()


def test_the_same_seed_gives_the_same_ratio():
    rows = plane(400, 0), plane(200, 1, centre=1.0)
    np.testing.assert_array_equal(ratio_of(*rows, seed=3), ratio_of(*rows, seed=3))


@given(
    n=st.integers(1, 200),
    spread=st.floats(0, 2),
    most=st.integers(1, 300),
    seed=st.integers(0, 1000),
)
def test_no_more_rows_are_drawn_than_the_shift_leaves(n, spread, most, seed):
    rng = np.random.default_rng(seed)
    ratio = np.exp(spread * rng.standard_normal(n))
    drawn, effective = rows_like(ratio, rng, most)
    assert len(np.unique(drawn)) == len(drawn) <= n
    covered = min(1.0, ratio.mean())
    assert effective == pytest.approx(covered * ratio.sum() ** 2 / (ratio**2).sum())
    assert effective <= n + 1e-6
    expected = min(effective**2 / n, most)
    assert abs(len(drawn) - expected) <= 5 * np.sqrt(expected) + 2
    if spread == 0 and most >= n:
        assert len(drawn) == n


def test_rows_are_drawn_in_proportion_to_their_ratio():
    ratio = np.where(np.arange(4000) < 1000, 2.0, 0.5)
    drawn, _ = rows_like(ratio, np.random.default_rng(0), 400)
    assert np.mean(drawn < 1000) == pytest.approx(2000 / 3500, abs=0.1)


@given(n_groups=st.integers(2, 30), size=st.integers(1, 5), seed=st.integers(0, 100))
def test_groups_are_drawn_whole(n_groups, size, seed):
    rng = np.random.default_rng(seed)
    groups = rng.permutation(np.repeat(np.arange(n_groups), size))
    ratio = np.exp(rng.standard_normal(n_groups))[groups]
    drawn, effective = rows_like(ratio, rng, 10**6, groups)
    assert set(groups[drawn]).isdisjoint(np.delete(groups, drawn))
    assert effective <= len(groups) + 1e-6
    everything, whole = rows_like(np.ones(len(groups)), rng, 10**6, groups)
    assert len(everything) == whole == len(groups)


@pytest.mark.parametrize("unit", [2.0**-1000, 2.0**1010])
def test_targets_of_any_size_give_the_same_ratio(unit):
    rng = np.random.default_rng(0)
    X, y, X_val = rng.normal(size=(60, 2)), rng.normal(size=60), rng.normal(size=(30, 2))
    y_val = rng.normal(1.5, size=30)
    wanted, found = (
        joint_density_ratio(X, k * y, X_val, k * y_val, task="regression", seed=0) for k in (1.0, unit)
    )
    np.testing.assert_array_equal(found, wanted)
    assert np.ptp(wanted) > 1


def n_drawn(training, validation, **columns):
    ratio = joint_density_ratio(*training, *validation, task="classification", seed=0, **columns)
    return len(rows_like(ratio, np.random.default_rng(9), 10**6)[0])


def test_other_spreads_are_seen():
    (X, y), (X_val, y_val) = plane(2000, 0), plane(400, 1)
    assert n_drawn((2 * X, y), (X_val, y_val)) < 1000
    assert n_drawn((X, y), (X_val, y_val)) > 1900


def test_labels_that_mean_something_else_are_seen_although_features_and_labels_are_shared_alike():
    rng = np.random.default_rng(0)
    X, X_val = rng.standard_normal((2000, 1)), rng.standard_normal((400, 1))
    y, y_val = (X[:, 0] > 0).astype(int), (X_val[:, 0] < 0).astype(int)
    wrong = rng.random(2000) < 0.2
    training = X, np.where(wrong, 1 - y, y)
    ratio = ratio_of(training, (X_val, y_val))
    assert ratio[wrong].mean() > 3 * ratio[~wrong].mean()  # the rows that are like the validation rows


def test_columns_of_the_metric_are_looked_at():
    rng = np.random.default_rng(7)
    training, validation = plane(1000, 0), plane(300, 1)
    cost, alike, dearer = rng.random(1000), rng.random(300), 10 * rng.random(300)
    assert n_drawn(training, validation, columns=({"cost": cost}, {"cost": alike})) > 900
    assert n_drawn(training, validation, columns=({"cost": cost}, {"cost": dearer})) < 300


@pytest.mark.parametrize("kind", [int, str])
def test_names_of_queries_need_not_be_the_same(kind):
    training, validation = plane(1000, 0), plane(300, 1)
    names = np.repeat(np.arange(260), 5).astype(kind)
    columns = {"query": names[:1000]}, {"query": names[1000:]}
    assert n_drawn(training, validation, columns=columns) == n_drawn(training, validation)


def test_many_features_have_no_products():
    rng = np.random.default_rng(0)
    X, X_val = rng.standard_normal((400, 290)), rng.standard_normal((100, 290))
    ratio = ratio_of((X, rng.integers(0, 3, 400)), (X_val, rng.integers(0, 3, 100)))
    assert np.isfinite(ratio).all()
