"""Rows that stand more than once are noticed; rows that are equal by nature are not."""

import time
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from problems import mixed_frame
from scipy.sparse import csr_matrix
from sklearn.model_selection import KFold
from sklearn.tree import DecisionTreeClassifier

from moew import MetricSearch, Rows
from moew.data import LabelledRows
from moew.data._groups import find_copies
from moew.exceptions import MoewWarning


def copy_groups(*tables, labels=None):
    """The codes of equal rows, if they can be groups; None if there are no copies."""
    labels = labels or [np.zeros(table.shape[0], dtype=int) for table in tables]
    found = find_copies(*map(LabelledRows, tables, labels))
    assert found is None or found.as_groups
    return None if found is None else found.codes


def noise(n, seed=0, columns=5):
    return np.random.default_rng(seed).standard_normal((n, columns))


def as_frame(X):
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
    texts = [f"text {value:.6f}" for value in X[:, 0]]
    return frame.assign(c0=texts, kind=pd.Categorical(np.where(X[:, 1] > 0, "b", "a")))


def as_sparse(X):
    return csr_matrix(np.where(np.abs(X) > 0.3, X, 0.0))


KINDS = {"array": np.asarray, "frame": as_frame, "sparse": as_sparse, "float32": np.float32}


def expected(numbers):
    """Groups of equal numbers, each named by its first place."""
    return [numbers.tolist().index(number) for number in numbers]


@given(st.lists(st.integers(0, 60), min_size=4, max_size=80), st.sampled_from(sorted(KINDS)))
def test_copies_of_any_rows_are_found(numbers, kind):
    numbers = np.array(numbers + numbers[: len(numbers) // 10 + 2])  # enough copies to be no accident
    found = copy_groups(KINDS[kind](noise(61, columns=12)[numbers]))
    assert found is None or found.tolist() == expected(numbers)
    times = np.unique(numbers, return_counts=True)[1]
    if np.sum(times > 1) < 3:
        assert found is None
    elif len(numbers) <= 3 * len(times):  # more may be categories
        assert found is not None


@pytest.mark.parametrize("kind", KINDS)
def test_copies_are_found_across_tables(kind):
    X, other = KINDS[kind](noise(200, columns=12)), KINDS[kind](noise(40, 1, columns=12))
    assert copy_groups(X, other) is None
    found = copy_groups(X, X[20:40])
    np.testing.assert_array_equal(found, np.r_[np.arange(200), np.arange(20, 40)])


def test_one_column_of_many_values_is_enough():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.standard_normal(300), rng.integers(0, 2, (300, 4))])
    assert copy_groups(X) is None
    np.testing.assert_array_equal(copy_groups(X, X[:60]), np.r_[np.arange(300), np.arange(60)])


def test_minus_zero_is_zero_and_missing_is_missing():
    X = np.array([[0.0, 1.5, np.nan], [2.0, 3.0, 4.0], [5.0, 6.0, 7.0]])
    again = np.vstack([[-0.0, 1.5, -np.nan], X[1:]])
    assert copy_groups(np.vstack([X, again])).tolist() == [0, 1, 2, 0, 1, 2]


def test_rows_without_any_value_are_no_copies():
    X = noise(200)
    X[::4] = np.nan
    assert copy_groups(X) is None


def test_tables_of_few_values_have_equal_rows_by_nature():
    rng = np.random.default_rng(0)
    for n_values, columns in ((2, 3), (2, 9), (5, 4), (6, 5)):
        table = rng.integers(0, n_values, (800, columns))
        assert len(np.unique(table, axis=0)) < 800
        assert copy_groups(table) is None
    counts = np.column_stack([rng.poisson(2, (1000, 3)), rng.integers(20, 70, 1000)])
    assert len(np.unique(counts, axis=0)) < 1000
    assert copy_groups(counts) is None
    assert copy_groups(np.eye(10)[rng.integers(0, 10, 400)]) is None


def correlated(rng, n):
    of_rows = rng.normal(size=(n, 2)) @ rng.normal(size=(2, 12))
    return of_rows + rng.normal(size=(n, 12)) > rng.normal(size=12)


def people(rng, n):
    """Columns like those of a census: few values, some of them frequent, all related."""
    kind = rng.integers(6, size=n)

    def category(n_values):
        shares = rng.dirichlet(np.full(n_values, 0.4), size=6).cumsum(axis=1)
        return (rng.random(n)[:, None] > shares[kind]).sum(axis=1)

    degree = category(16)
    age = rng.normal(38, 13, n).clip(17, 90).astype(int)
    return np.column_stack([age, degree, degree + 1, category(7), category(14), category(5), category(2)])


BY_NATURE = {
    "independent": lambda rng, n: rng.integers(2, size=(n, rng.integers(3, 16))),
    "correlated": correlated,
    "rare": lambda rng, n: rng.random((n, 30)) < 0.02,
    "people": people,
    "rounded": lambda rng, n: (rng.normal(size=(n, 4)) * 3).astype(int),
    "standardised": lambda rng, n: (rng.integers(12, size=(n, 3)) - 5.5) / 3.45,
    "one-hot": lambda rng, n: np.eye(20)[rng.integers(20, size=n)],
    "few integers": lambda rng, n: rng.integers(rng.integers(5, 5000), size=(n, 1)),
    "incomes": lambda rng, n: np.exp(rng.normal(8, 1.2, (n, 1))).round(-1),
    "heavy tail": lambda rng, n: rng.zipf(1.7, (n, 1)).clip(0, 10**6),
    "prices": lambda rng, n: np.column_stack(
        [np.exp(rng.normal(3, 0.6, n)).round(2), rng.integers(3, size=n)]
    ),
    "a design": lambda rng, n: rng.permutation(
        np.repeat(np.indices((5, 5)).reshape(2, -1).T, n // 25, axis=0)
    ),
    "continuous": lambda rng, n: rng.normal(size=(n, 1)),
}


@given(st.sampled_from(sorted(BY_NATURE)), st.integers(0, 10**6), st.sampled_from([300, 1200]), st.booleans())
def test_rows_equal_by_nature_are_left_alone_also_where_validation_rows_are_distributed_otherwise(
    kind, seed, n, shifted
):
    rng = np.random.default_rng(seed)
    X = BY_NATURE[kind](rng, n).astype(float)
    y = (X[:, 0] + X[:, 0].std() * rng.normal(size=n) > np.median(X[:, 0])).astype(int)
    assert find_copies(LabelledRows(X, y)) is None
    strange = (X[:, -1] - X[:, -1].mean()) / (X[:, -1].std() + 1e-9)
    given = rng.random(n) < (1 / (1 + np.exp(-3 * strange)) if shifted else 0.2)
    assume(5 < given.sum() < n - 5)
    assert find_copies(LabelledRows(X[~given], y[~given]), LabelledRows(X[given], y[given])) is None


def binary(n, columns, seed=0):
    return np.random.default_rng(seed).integers(2, size=(n, columns))


SIX = noise(600)
LABELS = np.random.default_rng(1).integers(2, size=600)
FEW = {
    "one column": SIX[:, :1],
    "binary": binary(600, 12),
    "rounded": (SIX * 3).astype(int),
    "continuous": SIX,
}


@pytest.mark.parametrize("times", [2, 3, 5])
@pytest.mark.parametrize("kind", FEW)
def test_all_rows_several_times_are_copies_whatever_the_columns(kind, times):
    X = np.vstack([FEW[kind]] * times)
    found = copy_groups(X, labels=[np.tile(LABELS, times)])
    _, first, code = np.unique(X, axis=0, return_index=True, return_inverse=True)
    np.testing.assert_array_equal(found, first[code.ravel()])


def test_sixty_rows_twelve_times_are_copies():
    for X in (SIX[:60], SIX[:60, :1]):
        found = copy_groups(np.vstack([X] * 12), labels=[np.tile(LABELS[:60], 12)])
        np.testing.assert_array_equal(found, np.tile(np.arange(60), 12))


@pytest.mark.parametrize("kind", FEW)
def test_validation_rows_among_the_training_rows_are_copies_whatever_the_columns(kind):
    X = FEW[kind]
    found = find_copies(LabelledRows(X, LABELS), LabelledRows(X[:200], LABELS[:200]))
    assert found.across and found.as_groups and found.within == (False, False)
    assert np.isin(found.codes[600:], found.codes[:600]).all()


def test_equal_rows_of_which_most_are_equal_by_nature_are_no_groups():
    X = binary(600, 8)
    twice = find_copies(LabelledRows(np.vstack([X, X]), np.r_[LABELS, LABELS]))
    across = find_copies(LabelledRows(X, LABELS), LabelledRows(X[:200], LABELS[:200]))
    assert twice.within == (True, False) and across.across
    assert not (twice.as_groups or across.as_groups)


def test_copies_in_float32_are_found_in_one_table_and_long_whole_numbers_stay_apart():
    found = copy_groups(np.vstack([SIX, SIX.astype(np.float32)]))
    np.testing.assert_array_equal(found, np.tile(np.arange(600), 2))
    names = 2.0**30 + np.arange(600)
    assert copy_groups(np.column_stack([names, names])) is None


@pytest.mark.parametrize("kind", ["sparse", "frame", "other names", "float32"])
@pytest.mark.parametrize("swapped", [False, True])
def test_copies_are_found_in_tables_of_two_kinds(kind, swapped):
    kinds = {
        "sparse": csr_matrix,
        "frame": lambda X: pd.DataFrame(X, columns=list("abcde")),
        "other names": lambda X: pd.DataFrame(X).to_numpy(dtype=object),
        "float32": lambda X: pd.DataFrame(X.astype(np.float32), columns=list("abcde")),
    }
    first, second = (kinds[kind], np.asarray) if not swapped else (np.asarray, kinds[kind])
    found = copy_groups(first(SIX), second(SIX[:200]))
    np.testing.assert_array_equal(found, np.r_[np.arange(600), np.arange(200)])
    assert copy_groups(first(SIX), second(SIX[:200] + 1)) is None


def test_missing_texts_are_equal():
    texts = np.array([None if j % 3 == 0 else f"text {j}" for j in range(60)], dtype=object)
    X = pd.DataFrame({"text": texts, "number": np.arange(60) / 7})
    again = X.assign(text=[float("nan") if text is None else text for text in texts])
    np.testing.assert_array_equal(copy_groups(X, again), np.tile(np.arange(60), 2))


def test_a_few_equal_rows_of_many_are_no_copies():
    X = noise(1000)
    X[500] = X[7]
    assert copy_groups(X) is None
    assert copy_groups(X, X[7:10]) is not None  # but all validation rows are


def test_rows_that_cannot_be_compared_are_left_alone():
    X = np.empty((4, 2), dtype=object)
    X[:] = [[[1], 2.5], [[1], 2.5], [[3], 4.5], [[5], 6.5]]
    assert copy_groups(X) is None


def test_comparing_takes_little_time():
    X = noise(20_000, columns=20)
    begun = time.perf_counter()
    copy_groups(X, X[:100])
    assert time.perf_counter() - begun < 1


# What a tree makes of noise is worth nothing: 0.5 of accuracy.
X, Y = noise(300), np.random.default_rng(1).integers(0, 2, 300)
TWICE = np.vstack([X, X]), np.r_[Y, Y]


def fitted(X, y, *, words="", **more):
    settings = {name: more.pop(name) for name in ("evaluate_on", "honest") if name in more}
    tree = DecisionTreeClassifier(random_state=0)
    search = MetricSearch.from_settings(tree, n_candidates=4, batch_size=4, random_state=0, **settings)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        search.fit(X, y, **more)
    told = [str(one.message) for one in caught if issubclass(one.category, MoewWarning)]
    assert [words in one for one in told] == ([True] if words else [])
    return search


def test_validation_rows_that_are_training_rows_are_evaluated_by_models_that_did_not_see_them():
    for rows in (slice(None), slice(0, 150)):
        words = f"{len(X[rows])} of the {len(X[rows])} validation rows are training rows, too"
        search = fitted(X, Y, validation=(X[rows], Y[rows]), words=words)
        assert search.honest_score_ == pytest.approx(0.5, abs=0.08)


def test_on_validation_rows_alone_training_rows_among_them_are_a_warning():
    words = "150 of the 150 validation rows are training rows, too"
    assert (
        fitted(X, Y, validation=(X[:150], Y[:150]), evaluate_on="validation", words=words).honest_score_ > 0.9
    )


@pytest.mark.parametrize(
    "more", [{}, {"evaluate_on": 4}, {"evaluate_on": 0.3}, {"evaluate_on": 0.5, "honest": 0.4}]
)
def test_copies_stay_on_one_side_of_every_split(more):
    search = fitted(*TWICE, **more)
    assert search.honest_score_ == pytest.approx(0.5, abs=0.12)
    said = "600 of the 600 training rows stand more than once (all features are equal)"
    assert [note for note in search.result_.notes if said in note] != []


def test_a_splitter_of_the_user_s_that_cuts_copies_apart_is_a_warning():
    words = "600 of the 600 training rows stand more than once"
    assert fitted(*TWICE, evaluate_on=KFold(3), words=words).honest_score_ > 0.6


def test_groups_of_the_user_s_stay():
    groups = np.r_[np.arange(300), np.arange(300)]
    search = fitted(*TWICE, groups=groups)
    assert search.honest_score_ == pytest.approx(0.5, abs=0.08)


def test_a_class_of_one_copied_row_is_searched_with_a_warning():
    y = np.where(np.arange(300) == 0, 2, Y)
    assert fitted(np.vstack([X, X]), np.r_[y, y], words="splits may cut copies apart").honest_score_ > 0.6


def test_rows_without_copies_are_searched_without_a_word():
    assert copy_groups(mixed_frame(240)[0]) is None
    assert not any("more than once" in note for note in fitted(X, Y).result_.notes)


def test_rows_of_weight_0_are_no_copies():
    weights = np.r_[np.ones(300), np.zeros(150)]
    rows = np.vstack([X, X[:150]]), np.r_[Y, Y[:150]]
    search = fitted(*rows, sample_weight=weights)
    assert not any("more than once" in note for note in search.result_.notes)
    others = Rows(*rows, sample_weight=np.r_[np.ones(150), np.zeros(300)])
    fitted(X[150:], Y[150:], validation=others)
    weights = np.repeat([0.0, 1.0], 150)
    fitted(X, Y, sample_weight=weights, validation=(X[:150], Y[:150]), evaluate_on="validation")


ONE = slice(0, 1)  # column


@pytest.mark.parametrize(
    ("rows", "more", "words"),
    [
        ((np.vstack([X[:60]] * 12), np.tile(Y[:60], 12)), {}, ""),
        ((np.vstack([X, X.astype("f4")]), np.r_[Y, Y]), {}, ""),
        ((np.vstack([X, X])[:, ONE], np.r_[Y, Y]), {}, ""),
        ((np.vstack([binary(300, 12)] * 2), np.r_[Y, Y]), {}, ""),
        ((np.vstack([(X * 3).astype(int)] * 2), np.r_[Y, Y]), {}, ""),
        ((X[:, ONE], Y), {"validation": (X[:, ONE], Y)}, "300 of the 300 validation rows are training"),
    ],
    ids=["twelve times", "float32", "one column", "binary", "whole numbers", "one column, validation"],
)
def test_noise_is_worth_nothing_with_copies(rows, more, words):
    assert fitted(*rows, **more, words=words).honest_score_ == pytest.approx(0.5, abs=0.12)


@pytest.mark.parametrize(
    ("X", "given"),
    [(csr_matrix(X), X[:150]), (binary(300, 12), binary(300, 12)[:150])],
    ids=["sparse and dense", "binary"],
)
def test_validation_rows_taken_from_training_rows_are_a_warning(X, given):
    words = "150 of the 150 validation rows are training rows, too"
    fitted(X, Y, validation=(given, Y[:150]), evaluate_on="validation", words=words)


def test_copies_among_many_rows_equal_by_nature_are_a_warning():
    few = np.vstack([binary(300, 6)] * 2), np.r_[Y, Y]
    fitted(*few, words="(all features are equal, more often than by chance), and splits may cut copies apart")


def test_a_frame_and_an_array_without_copies_are_searched():
    given = X[:150] + 0.01, Y[:150]
    fitted(pd.DataFrame(X, columns=list("abcde")), Y, validation=given, words="column names, not both")
