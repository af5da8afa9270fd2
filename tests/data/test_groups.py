"""Rows that belong together stay together: splits, folds, halves, bootstrap samples."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import (
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    LeaveOneGroupOut,
    StratifiedGroupKFold,
    StratifiedKFold,
)

from moew.data import LabelledRows, Rows, labelled_rows
from moew.data._groups import bootstrap_rows, columns_of_names, copies_apart
from moew.data._rows import with_shared_groups
from moew.data._splits import (
    cross_validation,
    given_validation,
    held_out_validation,
    holdout_split,
    set_aside,
    stratified_halves,
)
from moew.exceptions import InvalidInputError, MoewWarning


def rng(seed=0):
    return np.random.default_rng(seed)


@st.composite
def grouped(draw, most_strata=4):
    """Codes of strata and of at least two groups, in any order of rows."""
    sizes = draw(st.lists(st.integers(1, 8), min_size=2, max_size=15))
    groups = np.repeat(np.arange(len(sizes)), sizes)
    shuffled = rng(draw(st.integers(0, 1000))).permutation(groups)
    strata = draw(st.lists(st.integers(0, most_strata - 1), min_size=len(groups), max_size=len(groups)))
    return np.array(strata), shuffled * 7 - 3


def check_parts(groups, *parts):
    assert sorted(np.concatenate(parts)) == list(range(len(groups)))
    assert all(len(part) and (np.diff(part) > 0).all() for part in parts)
    assert not set(groups[parts[0]]) & set(groups[parts[1]])


@given(grouped(), st.integers(0, 1000))
def test_halves_hold_whole_groups_and_every_row_once(rows, seed):
    strata, groups = rows
    pair = stratified_halves(strata, rng(seed), groups)
    check_parts(groups, *pair)
    again = stratified_halves(strata, rng(seed), groups)
    assert all(np.array_equal(one, other) for one, other in zip(pair, again, strict=True))


@given(grouped(), st.floats(0.05, 0.95), st.integers(0, 1000))
def test_a_share_held_out_has_whole_groups_and_every_row_once(rows, share, seed):
    strata, groups = rows
    check_parts(groups, *holdout_split(strata, share, rng(seed), groups=groups))


@given(grouped(most_strata=1), st.integers(0, 1000))
def test_halves_differ_by_no_more_than_the_largest_group(rows, seed):
    strata, groups = rows
    a, b = stratified_halves(strata, rng(seed), groups)
    assert abs(len(a) - len(b)) <= np.unique(groups, return_counts=True)[1].max()


@given(st.lists(st.integers(0, 3), min_size=2, max_size=60), st.integers(0, 1000))
def test_groups_of_one_row_are_as_balanced_as_rows(codes, seed):
    strata = np.array(codes)
    a, b = stratified_halves(strata, rng(seed), np.arange(len(strata)))
    differences = [(strata[a] == code).sum() - (strata[b] == code).sum() for code in set(codes)]
    assert np.abs(differences).max() <= 2 and abs(len(a) - len(b)) <= 2


def test_halves_of_groups_that_are_alike_are_exactly_alike():
    groups = np.repeat(np.arange(12), 5)
    strata = np.tile([0, 0, 0, 1, 2], 12)
    for seed in range(20):
        a, b = stratified_halves(strata, rng(seed), groups)
        assert np.array_equal(np.bincount(strata[a]), np.bincount(strata[b]))


def test_halves_of_groups_of_all_sizes_are_nearly_equal_and_differ_from_draw_to_draw():
    groups = np.repeat(np.arange(30), np.arange(1, 31))
    draw, strata = rng(1), np.zeros(len(groups), dtype=int)
    pairs = [stratified_halves(strata, draw, groups) for _ in range(300)]
    assert max(abs(len(a) - len(b)) for a, b in pairs) <= 5  # of 465 rows
    assert len({tuple(a) for a, _ in pairs}) > 290
    in_first = np.mean([np.isin(np.arange(len(groups)), a) for a, _ in pairs], axis=0)
    assert np.abs(in_first - 0.5).max() < 0.15  # five standard errors


def test_a_class_of_two_groups_is_on_both_sides():
    groups = np.repeat(np.arange(20), 4)
    strata = np.where(np.isin(groups, [3, 11]), 1, 0)
    for seed in range(20):
        parts = holdout_split(strata, 0.1, rng(seed), groups=groups)
        assert all(strata[part].any() for part in (*parts, *stratified_halves(strata, rng(seed), groups)))


def test_classes_are_held_out_as_evenly_as_by_scikit_learn():
    ours, theirs, draw = [], [], rng(2)
    for seed in range(20):
        groups = np.repeat(np.arange(40), draw.integers(2, 12, 40))
        strata = (draw.random(len(groups)) < draw.beta(1, 3, 40)[groups]).astype(int)
        _, held = holdout_split(strata, 0.2, rng(seed), groups=groups)
        splitter = StratifiedGroupKFold(5, shuffle=True, random_state=seed)
        _, test = next(splitter.split(strata, strata, groups))
        for found, rows in ((ours, held), (theirs, test)):
            found.append(np.abs(np.bincount(strata[rows]) / np.bincount(strata) - 0.2).max())
    assert np.mean(ours) <= np.mean(theirs)
    assert np.mean(ours) < 0.03


ROWS = 11
STRATA = np.array([0, 0, 0, 1, 1, 2, 2, 2, 2, 0, 1])
X = np.arange(float(ROWS))[:, None]
CLASSES = LabelledRows(X, STRATA % 2)
NUMBERS = LabelledRows(X, X[:, 0] ** 2)


def test_without_groups_nothing_has_changed():
    a, b = stratified_halves(STRATA, rng(3))
    assert (a.tolist(), b.tolist()) == ([2, 3, 4, 5, 7, 9], [0, 1, 6, 8, 10])
    kept, held = holdout_split(STRATA, 0.3, rng(4))
    assert (kept.tolist(), held.tolist()) == ([0, 1, 2, 3, 6, 7, 8, 10], [4, 5, 9])
    of_classes = held_out_validation("classification", CLASSES, 0.3, rng(5))
    assert of_classes.training_rows.tolist() == [0, 2, 3, 4, 5, 7, 8, 9]
    of_numbers = held_out_validation("regression", NUMBERS, 0.3, rng(5))
    assert of_numbers.training_rows.tolist() == [0, 2, 4, 5, 7, 8, 10]
    for task, rows in (("classification", CLASSES), ("regression", NUMBERS)):
        folds = cross_validation(task, rows, 3, rng(6)).folds
        assert [fold.train.tolist() for fold in folds] == [
            [4, 5, 6, 7, 8, 9, 10],
            [0, 1, 2, 3, 8, 9, 10],
            [0, 1, 2, 3, 4, 5, 6, 7],
        ]
    aside = set_aside(given_validation("classification", CLASSES, CLASSES), 0.3, rng(8))
    assert aside.holdout.X.ravel().tolist() == [3, 5, 9]
    assert bootstrap_rows(11, rng(7)).tolist() == [10, 6, 7, 9, 6, 8, 9, 2, 0, 3, 3]


def many(task="classification", seed=0):
    draw = rng(seed)
    groups = draw.permutation(np.repeat(np.arange(24), 5))
    X = draw.standard_normal((120, 2))
    y = X[:, 0] if task == "regression" else (X[:, 0] > 0.5).astype(int)
    return LabelledRows(X, y, groups=groups)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_rows_that_are_held_out_or_set_aside_are_whole_groups(task):
    rows = many(task)
    data = held_out_validation(task, rows, 0.25, rng())
    assert len(data.validation) == 30
    assert np.array_equal(data.training.groups, rows.groups[data.training_rows])
    assert not set(data.training.groups) & set(data.validation.groups)
    aside = set_aside(data, 0.5, rng())
    assert len(aside.holdout) == 15
    assert not set(aside.validation.groups) & set(aside.holdout.groups)


@pytest.mark.parametrize("n_folds", [None, 3, np.int64(4)])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_a_number_of_folds_is_scikit_learns_splitter_of_groups(task, n_folds):
    rows, kind = many(task), StratifiedGroupKFold if task == "classification" else GroupKFold
    seed = int(rng(9).integers(2**31))
    expected = kind(5 if n_folds is None else n_folds, shuffle=True, random_state=seed)
    data = cross_validation(task, rows, n_folds, rng(9))
    for fold, (train, test) in zip(data.folds, expected.split(rows.X, rows.y, rows.groups), strict=True):
        assert np.array_equal(fold.train, train)
        assert np.array_equal(data.validation_of(fold).X, rows.X[test])
        assert not set(data.validation_of(fold).groups) & set(rows.groups[train])


class OfTwo:
    """A splitter of one's own that knows no groups."""

    def get_n_splits(self, X=None, y=None, groups=None):
        return 2

    def split(self, X, y):
        first = np.arange(len(y)) < len(y) // 2
        yield np.flatnonzero(first), np.flatnonzero(~first)
        yield np.flatnonzero(~first), np.flatnonzero(first)


@pytest.mark.filterwarnings("error")
def test_splitters_get_the_groups():
    rows = many()
    for splitter in (
        LeaveOneGroupOut(),
        GroupKFold(4),
        list(GroupKFold(3).split(rows.X, rows.y, rows.groups)),
    ):
        data = cross_validation("classification", rows, splitter, rng())
        assert sorted(data.validation.X[:, 0]) == sorted(rows.X[:, 0])
    whole = LabelledRows(rows.X, rows.y, groups=np.repeat([1, 2], 60))
    assert len(cross_validation("classification", whole, OfTwo(), rng()).folds) == 2
    assert len(cross_validation("classification", whole, KFold(2), rng()).folds) == 2


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "splitter",
    [StratifiedKFold(3), KFold(2, shuffle=True), OfTwo()],
    ids=lambda splitter: type(splitter).__name__,
)
def test_a_splitter_that_cuts_groups_apart_is_refused(splitter):
    with pytest.raises(InvalidInputError, match=r"cuts \d+ groups apart.*such as GroupKFold"):
        cross_validation("classification", many(), splitter, rng())


def test_a_splitter_that_needs_groups_says_where_they_come_from():
    with pytest.raises(InvalidInputError, match=r"fit\(X, y, groups=…\)"):
        cross_validation("classification", CLASSES, GroupShuffleSplit(2), rng())


def test_too_few_groups():
    one = LabelledRows(X, CLASSES.y, groups=np.zeros(ROWS, dtype=int))
    for split in (
        lambda: stratified_halves(STRATA, rng(), one.groups),
        lambda: holdout_split(STRATA, 0.3, rng(), groups=one.groups),
        lambda: bootstrap_rows(ROWS, rng(), one.groups),
    ):
        with pytest.raises(InvalidInputError, match="all rows belong to one group"):
            split()
    few = LabelledRows(X, CLASSES.y, groups=np.arange(ROWS) % 3)
    for task in ("classification", "regression"):
        with pytest.raises(InvalidInputError, match="evaluate_on=4 .* belong to 3 groups.*fewer folds"):
            cross_validation(task, few, 4, rng())
    alone = LabelledRows(X, CLASSES.y, groups=CLASSES.y)
    with pytest.raises(InvalidInputError, match=r"classes \[0, 1\] have one group each. Give more groups"):
        held_out_validation("classification", alone, 0.3, rng())


@given(grouped(), st.integers(0, 1000))
def test_a_bootstrap_sample_has_whole_groups(rows, seed):
    _, groups = rows
    sample = bootstrap_rows(len(groups), rng(seed), groups)
    drawn = 0
    for group in np.unique(groups):
        members = np.flatnonzero(groups == group)
        times = [(sample == row).sum() for row in members]
        assert len(set(times)) == 1
        drawn += times[0]
    assert drawn == len(np.unique(groups))
    assert sorted(np.unique(sample)) == sorted(np.flatnonzero(np.isin(groups, groups[sample])))


def test_every_group_is_drawn_as_often():
    groups = np.repeat(np.arange(5), [1, 2, 3, 4, 5])
    draw = rng()
    counts = sum(np.bincount(bootstrap_rows(15, draw, groups), minlength=15) for _ in range(2000)) / 2000
    np.testing.assert_allclose(counts, 1, atol=0.12)


@pytest.mark.parametrize("kind", [int, float, str, object], ids=lambda kind: kind.__name__)
def test_a_group_that_is_drawn_twice_is_two_groups(kind):
    groups = np.repeat(np.arange(4), 3)
    columns = {"query": (groups * 10).astype(kind), "cost": np.arange(12), "side": groups // 2}
    assert columns_of_names(columns, groups) == ["query"]
    sample = np.concatenate([np.flatnonzero(groups == g) for g in (2, 0, 2, 2)])
    named = copies_apart(columns, ["query"], sample)["query"]
    assert len(set(named)) == 4
    assert all(len(set(named[at : at + 3])) == 1 for at in range(0, 12, 3))
    assert set(columns["query"][sample]) <= set(named)


def checked(groups, n=4):
    return labelled_rows(Rows(np.ones((n, 1)), np.arange(n) % 2, groups=groups), "classification", "test", ())


@pytest.mark.parametrize(
    "groups",
    [
        [7, 7, -2, 7],
        ["a", "a", "b", "a"],
        [0.5, 0.5, 1.5, 0.5],
        np.array(["a", "a", 3, "a"], dtype=object),
        pd.Series(["a", "a", "b", "a"], dtype="category"),
        pd.Series([1, 1, 2, 1], dtype="Int64"),
        [True, True, False, True],
    ],
    ids=lambda groups: str(getattr(groups, "dtype", type(groups[0]).__name__)),
)
def test_groups_are_numbers_or_texts(groups):
    codes = checked(groups).groups
    assert codes.dtype.kind == "i"
    assert (codes == codes[0]).tolist() == [True, True, False, True]
    assert checked(groups).take(np.array([2, 0])).groups.tolist() == [codes[2], codes[0]]


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        (
            [1.0, np.nan, 2.0, np.nan],
            "2 of the test rows, such as row 1, .* have no group .groups is missing",
        ),
        (["a", "b", None, "a"], "1 of the test rows, such as row 2"),
        (pd.Series([1, None, 2, 3], dtype="Int64"), "missing"),
        ([1, 2, 3], "X has 4, groups has 3"),
        (np.ones((4, 1)), r"got shape \(4, 1\)"),
        ("query", r"groups=X\['query'\]"),
    ],
    ids=str,
)
def test_groups_that_cannot_be_used(groups, words):
    with pytest.raises(InvalidInputError, match=words) as caught:
        checked(groups)
    assert caught.value.argument == "groups"


def pair(training, validation):
    def rows(groups):
        return Rows(np.ones((len(groups), 1)), np.ones(len(groups)), groups=groups)

    return [rows.groups.tolist() for rows in with_shared_groups(rows(training), rows(validation))]


@pytest.mark.filterwarnings("error")
def test_groups_have_the_same_codes_in_training_and_validation_rows():
    assert pair(["b", "a", "b"], ["d", "c"]) == [[1, 0, 1], [3, 2]]
    large = 2**63 + np.arange(2, dtype=np.uint64)  # floats would not tell them apart
    one, other = pair(large, np.array([1, 2]))
    assert len({*one, *other}) == 4


def test_groups_on_both_sides_are_counted():
    with pytest.warns(MoewWarning, match="2 groups have both training and validation rows"):
        assert pair([5, 6, 7], [6, 6, 7, 8]) == [[5, 6, 7], [6, 6, 7, 8]]
    with pytest.raises(InvalidInputError, match="'5' in training and 6 in validation"):
        pair(["5"], [6])
