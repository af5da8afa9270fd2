"""Rows evaluated out of fold: every one by a model that has not seen it, nor a row of its group."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import shifted_classes
from scipy.sparse import csr_array, csr_matrix
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from moew.data import LabelledRows, SearchData
from moew.data._rows import stacked_rows
from moew.data._splits import Fold, fold_codes, given_validation, out_of_fold
from moew.metrics import accuracy
from moew.search._evaluate import Evaluator


def alone(rows, task="classification"):
    """Search data without validation rows, before there are folds."""
    every = np.arange(len(rows))
    return SearchData(task, rows, rows, (Fold(every, every),), given_validation=False)


def some_rows(n, seed, n_groups=None, n_columns=1):
    rng = np.random.default_rng(seed)
    y = np.concatenate([[0, 0, 1, 1], rng.integers(0, 2, n - 4)])
    groups = None if n_groups is None else np.arange(n) % n_groups
    return LabelledRows(rng.standard_normal((n, n_columns)), y, groups=groups)


@given(
    n=st.integers(8, 60),
    n_given=st.integers(0, 30),
    n_folds=st.integers(2, 5),
    seed=st.integers(0, 1000),
    share=st.floats(0, 1),
)
def test_every_evaluated_row_is_scored_once_by_a_model_that_was_not_trained_on_it(
    n, n_given, n_folds, seed, share
):
    rng = np.random.default_rng(seed)
    training = some_rows(n, seed)
    data = alone(training)
    if n_given >= 4:
        data = given_validation("classification", training, some_rows(n_given, seed + 1))
    evaluated = np.flatnonzero(rng.random(n) <= share)
    n_before = len(data.validation) if data.given_validation else 0
    if n_before + len(evaluated) == 0:
        return
    made = out_of_fold(data, evaluated, n_folds, 5, rng)
    assert made.n_given_rows == n_before
    np.testing.assert_array_equal(made.validation.X[n_before:], training.X[evaluated])
    for folds in (made.folds, made.finalist_folds):
        scored = np.concatenate([fold.scored for fold in folds])
        np.testing.assert_array_equal(np.sort(scored), np.arange(n_before + len(evaluated)))
        for fold in folds:
            assert len(fold.scored)
            of_training = evaluated[fold.scored[fold.scored >= n_before] - n_before]
            assert not np.isin(of_training, fold.train).any()
            assert set(training.y[fold.train]) == {0, 1}
    assert made.for_finalists.validation is made.validation  # the same rows in the same order
    assert made.for_finalists.folds == made.finalist_folds


@given(
    n=st.integers(12, 60),
    n_groups=st.integers(2, 12),
    n_given=st.integers(6, 20),
    n_given_groups=st.integers(1, 6),
    shared=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_groups_are_whole_and_those_on_both_sides_are_scored_by_models_without_them(
    n, n_groups, n_given, n_given_groups, shared, seed
):
    rng = np.random.default_rng(seed)
    training, validation = some_rows(n, seed, n_groups), some_rows(n_given, seed + 1, n_given_groups)
    if not shared:
        validation = replace(validation, groups=validation.groups + 100)
    data = given_validation("classification", training, validation)
    made = out_of_fold(data, np.arange(n), 2, min(5, n_groups), rng)
    for folds in (made.folds, made.finalist_folds):
        assert sorted(np.concatenate([fold.scored for fold in folds])) == list(range(n + n_given))
        for fold in folds:
            assert not set(training.groups[fold.train]) & set(made.validation.groups[fold.scored])
            assert len(fold.train)


@given(n=st.integers(2, 80), n_strata=st.integers(1, 4), n_folds=st.integers(2, 6), seed=st.integers(0, 99))
def test_folds_have_the_same_share_of_every_class(n, n_strata, n_folds, seed):
    rng = np.random.default_rng(seed)
    strata = rng.integers(0, n_strata, n)
    codes = fold_codes(strata, n_folds, rng)
    for part in (np.ones(n, dtype=bool), *(strata == k for k in np.unique(strata))):
        sizes = np.bincount(codes[part], minlength=n_folds)
        assert sizes.max() - sizes.min() <= 1


def test_fewer_groups_than_folds_are_dealt_to_some_of_the_folds():
    rng = np.random.default_rng(0)
    for n_groups in (1, 2, 3):
        groups = np.arange(12) % n_groups
        codes = fold_codes(np.zeros(12, dtype=int), 5, rng, groups)
        assert (
            len(set(codes.tolist())) == n_groups == len({*zip(codes.tolist(), groups.tolist(), strict=True)})
        )


def test_predictions_are_those_of_cross_val_predict():
    rows = shifted_classes(120)
    training = LabelledRows(rows.X, rows.y)
    data = out_of_fold(alone(training), np.arange(len(rows.y)), 3, 5, np.random.default_rng(0))
    for split in (data, data.for_finalists):
        models = [LogisticRegression().fit(rows.X[f.train], rows.y[f.train]) for f in split.folds]
        found = Evaluator(accuracy(), None, np.array([0, 1])).predictions(models, split)
        # Without given rows the validation rows are the training rows in their order.
        folds = [(fold.train, fold.scored) for fold in split.folds]
        of_sklearn = cross_val_predict(LogisticRegression(), rows.X, rows.y, cv=folds)
        np.testing.assert_array_equal(found.arrays["decision"], of_sklearn)
        scores = cross_val_predict(LogisticRegression(), rows.X, rows.y, cv=folds, method="decision_function")
        np.testing.assert_allclose(found.scores, scores, rtol=2.0**-12)  # they are rounded


def test_columns_of_one_side_alone_are_left_out_and_missing_weights_are_ones():
    first = LabelledRows(np.ones((2, 1)), np.arange(2), np.ones(2), {"a": np.arange(2), "b": np.ones(2)})
    second = LabelledRows(np.zeros((3, 1)), np.arange(3), None, {"a": np.arange(3), "c": np.ones(3)})
    both = stacked_rows(first, second)
    assert both.sample_weight.tolist() == [1, 1, 1, 1, 1]
    assert stacked_rows(second, first).sample_weight.tolist() == [1, 1, 1, 1, 1]
    assert stacked_rows(second, second).sample_weight is None
    assert list(both.columns) == ["a"]
    assert both.columns["a"].tolist() == [0, 1, 0, 1, 2]
    # The mean weights are the same: 3 for both.
    first, second = replace(first, sample_weight=[2.0, 4.0]), replace(second, sample_weight=[1.0, 2.0, 3.0])
    first, second = (replace(rows, sample_weight=np.array(rows.sample_weight)) for rows in (first, second))
    assert stacked_rows(first, second).sample_weight.tolist() == [2, 4, 1.5, 3, 4.5]


def test_rows_without_groups_beside_rows_with_groups_are_groups_of_their_own():
    first = LabelledRows(np.ones((3, 1)), np.arange(3))
    second = LabelledRows(np.ones((3, 1)), np.arange(3), groups=np.array([7, 7, 9]))
    groups = stacked_rows(first, second).groups
    assert groups[3:].tolist() == [7, 7, 9]
    assert len(set(groups.tolist())) == 5
    assert stacked_rows(first, first).groups is None


@pytest.mark.parametrize("kind", [csr_matrix, csr_array])
def test_sparse_rows_stay_sparse(kind):
    rng = np.random.default_rng(0)
    A, B = rng.integers(0, 2, (3, 4)), rng.integers(0, 2, (5, 4))
    rows = [LabelledRows(kind(X), np.arange(len(X))) for X in (A, B)]
    stacked = stacked_rows(*rows).X
    assert hasattr(stacked, "tocsr")
    np.testing.assert_array_equal(stacked.toarray(), np.vstack([A, B]))
    mixed = stacked_rows(LabelledRows(A, np.arange(3)), rows[1]).X
    np.testing.assert_array_equal(mixed.toarray(), np.vstack([A, B]))


def test_categories_of_a_data_frame_stay_those_of_the_training_rows():
    def frame(texts, categories):
        return pd.DataFrame({"kind": pd.Categorical(texts, categories), "number": np.arange(len(texts))})

    first = LabelledRows(frame(["b", "a", "z"], ["z", "b", "a"]), np.arange(3))
    second = LabelledRows(frame(["a", "b"], ["a", "b", "c"]), np.arange(2))
    stacked = stacked_rows(first, second).X
    assert stacked["kind"].dtype == second.X["kind"].dtype
    assert stacked["kind"].astype(object).tolist()[:2] == ["b", "a"]
    assert stacked["kind"].isna().tolist() == [False, False, True, False, False]  # not known in training
    assert stacked.index.tolist() == list(range(5))


def test_numbers_keep_their_fractions_and_gaps_beside_whole_numbers():
    validation = pd.DataFrame({"a": [0.5, np.nan], "flag": [True, False]})
    training = pd.DataFrame({"a": [1, 2, 3], "flag": [False, False, True]})
    parts = [LabelledRows(X, np.arange(len(X))) for X in (validation, training)]
    stacked = stacked_rows(*parts).X
    np.testing.assert_array_equal(stacked["a"], [0.5, np.nan, 1, 2, 3])
    assert stacked["flag"].dtype == bool


def test_polars_frames_are_stacked():
    pl = pytest.importorskip("polars")
    parts = [
        LabelledRows(pl.DataFrame({"a": [0.5]}), np.arange(1)),
        LabelledRows(pl.DataFrame({"a": [1, 2]}), np.arange(2)),
    ]
    assert stacked_rows(*parts).X["a"].to_list() == [0.5, 1.0, 2.0]
