"""A small version of the crime experiment, on made-up communities; its thresholds and its measures."""

from __future__ import annotations

import csv
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, confusion_matrix, precision_score

from moew.datasets import Dataset
from moew.decision import EqualFalsePositiveRates
from moew.exceptions import InvalidInputError
from moew.paper import crime
from moew.paper._crime_settings import PAPER, POST, VANILLA
from moew.paper._crime_settings import settings as rows_of
from moew.paper._crime_study import FILE_ORDERS, PARTS, Crime, Searches, Setting
from moew.paper._crime_thresholds import (
    COVERAGE,
    RULES,
    Scored,
    measure,
    most_accurate,
    post_shift,
    thresholds,
)
from moew.paper._experiment import Options, Run

SIZES = ((75, 45), (40, 50), (40, 50))


def communities(n_features=6, n=300):
    rng = np.random.default_rng(0)
    X = rng.random((n, n_features))
    y = (X[:, 0] + X[:, 1] + rng.normal(0, 0.3, n) > 1.1).astype(int)
    columns = {"group": np.digitize(X[:, 1], (0.25, 0.5, 0.75)), "large": rng.permutation(n) < 155}
    return Dataset(X.astype(np.float32), y, tuple(map(str, range(n_features))), columns)


def scored(seed, R=2, K=3, per_group=101):
    """Groups that differ in their scores and in their shares of positives."""
    rng = np.random.default_rng(seed)
    groups = np.stack([rng.permutation(np.repeat(np.arange(4), per_group)) for _ in range(R)])
    positive = rng.random(groups.shape) < 0.1 + 0.2 * groups
    scores = rng.normal(size=(R, K, groups.shape[1])) + (positive + groups)[:, None]
    return Scored(scores, positive, groups)


@pytest.fixture(scope="module")
def searches(tmp_path_factory):
    options = Options(repeats=2, steps=60, out=tmp_path_factory.mktemp("out"))
    data = {"script": communities(), "complete": communities()}
    return Searches(Run("crime", options), data, SIZES, n_batches=2)


def test_a_small_version_writes_its_tables_numbers_and_figure(searches, monkeypatch):
    few = ("violation of FDR", "99 features", "post-shift, accuracy minimised")
    some = {
        name: crime.VARIANTS[name] for name in (*few, "shifted, as above", "shifted post-shift, as above")
    }
    monkeypatch.setattr(crime, "VARIANTS", some)
    text = crime.report(searches.this, searches)
    for part in (
        "iid, vanilla: test accuracy",
        "shifted, post-shift: test violation",
        "moew − Shimodaira",
        *few,
    ):
        assert part in text
    with (searches.this.folder / "crime.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 2 * (2 * 3 + 2 * 4 + 2) + 2 * 2 * len(some)
    seen = searches.of(VANILLA, 2)
    best = seen.scores["training accuracy: validation FPR violation"][1].argmin()
    one = next(x for x in lines if x["setting"].startswith("iid vanilla: moew, GP") and x["repeat"] == "1")
    expected = seen.scores["training accuracy: test accuracy"][1, best]
    assert float(one["accuracy"]) == pytest.approx(expected, rel=1e-5)
    assert (searches.this.folder / "crime.png").stat().st_size > 10_000


def test_fixed_weights_are_trained_once_for_all_aims(searches):
    assert searches.of(VANILLA.fixed, 2).n == 10
    n_files = len(list(searches.this.folder.rglob("*.npz")))
    for aim in (POST, crime.VARIANTS["violation of FDR"]):
        both = searches.result(aim.fixed, 2, aim=aim)
        first = searches.result(aim.fixed, 1, aim=aim)
        np.testing.assert_array_equal(first["accuracy"], both["accuracy"][:1])
    assert len(list(searches.this.folder.rglob("*.npz"))) == n_files


def test_what_is_complete_in_the_folder_is_not_trained_again(searches):
    before = searches.of(VANILLA, 2)
    again = Searches(searches.this, {}, SIZES, n_batches=2)  # without data nothing could be trained
    np.testing.assert_array_equal(again.of(VANILLA, 2).alphas, before.alphas)
    with pytest.raises(KeyError):
        again.of(replace(VANILLA, radius=7.0), 2)


def test_every_setting_has_files_of_its_own():
    every = {s.models for s in crime.VARIANTS.values()} | {s.fixed for s in crime.VARIANTS.values()}
    for key in PAPER:
        every |= {s.models for s in rows_of(*key).values()}
    assert len({s.label for s in every}) == len(every)


@pytest.mark.parametrize("study", ["iid", "shifted"])
def test_splits_are_disjoint_and_shifted_ones_have_the_given_counts(study):
    data = communities()
    problem = Crime(Options(repeats=3), data, study, splits="random", sizes=SIZES)
    together = np.concatenate(problem.rows, axis=1)
    assert all(len(set(row)) == 300 for row in together)
    assert len({row.tobytes() for row in together}) == 3
    assert [rows.shape[1] for rows in problem.rows] == [sum(size) for size in SIZES]
    if study == "shifted":
        for rows, (n_large, _) in zip(problem.rows, SIZES, strict=True):
            np.testing.assert_array_equal(data.columns["large"][rows].sum(axis=1), n_large)
        # Shimodaira's weights bring the training share of large communities to that of validation.
        pi, large = problem.pi["ratio"][0], data.columns["large"][problem.rows[0][0]]
        assert pi[large].sum() / pi.sum() == pytest.approx(40 / 90)


def test_too_few_communities_are_an_error():
    with pytest.raises(InvalidInputError, match="155 large and 145 small"):
        Crime(Options(repeats=2), communities(n=250), "shifted", splits="random", sizes=SIZES)


@pytest.mark.parametrize("order", FILE_ORDERS)
def test_splits_in_the_order_of_the_file(order):
    problem = Crime(Options(repeats=2), communities(), "iid", order, SIZES)
    rows = dict(zip(PARTS, problem.rows, strict=True))
    np.testing.assert_array_equal(np.concatenate([rows[part][1] for part in order.split(", ")]), range(300))
    assert [len(rows[part][0]) for part in PARTS] == [120, 90, 90]


def test_one_split_for_all_repeats():
    problem = Crime(Options(repeats=3), communities(), "iid", splits="one", sizes=SIZES)
    for rows in problem.rows:
        assert (rows == rows[0]).all()


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10_000))
def test_post_shift_is_the_greedy_rule_of_the_package(seed):
    rows = scored(seed)
    cuts = post_shift(rows)
    for r in range(2):
        columns = {"group": rows.groups[r]}
        for k in range(3):
            rule = EqualFalsePositiveRates(COVERAGE, method="greedy")
            fitted = rule.fit(rows.scores[r, k], rows.positive[r], columns)
            expected = fitted.decide(rows.scores[r, k], columns)
            np.testing.assert_array_equal(rows.scores[r, k] > cuts[r, k, rows.groups[r]], expected)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.booleans())
def test_no_threshold_is_more_accurate(seed, with_ties):
    rows = scored(seed, 1, 2, per_group=5)
    scores = np.round(rows.scores) if with_ties else rows.scores
    cuts = most_accurate(Scored(scores, rows.positive, rows.groups))
    for k in range(2):
        every = [((scores[0, k] > t) == rows.positive[0]).mean() for t in (-np.inf, *scores[0, k])]
        assert ((scores[0, k] > cuts[0, k]) == rows.positive[0]).mean() == max(every)


@pytest.mark.parametrize("rule", RULES)
def test_measures_are_those_of_scikit_learn(rule):
    rows, other = scored(1), scored(2)
    cuts = thresholds(rule, other, rows)
    found = measure(rows, cuts)
    for r in range(2):
        for k in range(3):
            y, group = rows.positive[r], rows.groups[r]
            decided = rows.scores[r, k] > cuts[r, k, group]
            fpr, fdr = [], []
            for g in range(4):
                (tn, fp), _ = confusion_matrix(y[group == g], decided[group == g])
                fpr.append(fp / (fp + tn))
                wrong = 1 - precision_score(y[group == g], decided[group == g], zero_division=1.0)
                fdr.append(wrong)
            assert found["accuracy"][r, k] == pytest.approx(100 * accuracy_score(y, decided))
            assert found["FPR violation"][r, k] == pytest.approx(100 * np.ptp(fpr))
            assert found["FDR violation"][r, k] == pytest.approx(100 * np.ptp(fdr))


def test_one_threshold_of_the_wanted_coverage():
    rows = scored(3)
    cuts = thresholds("coverage", rows, rows)
    assert (cuts == cuts[:, :, :1]).all()
    assert (rows.scores > cuts[:, :, :1]).mean() == pytest.approx(COVERAGE, abs=1 / rows.scores.shape[2])
    with pytest.raises(InvalidInputError, match="rule must be one of"):
        thresholds("best", rows, rows)


def test_the_released_script_looks_for_the_worst_model():
    assert POST.greater_is_better and not VANILLA.greater_is_better
    assert not Setting(aim="accuracy", wrong_way=True).greater_is_better
