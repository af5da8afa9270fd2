"""A small version of the spam experiment, on made-up clients; and its parts against the package's own."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from moew import metrics
from moew._util.margins import margin
from moew.datasets import Dataset
from moew.decision import ShareSelected
from moew.paper import _normalised as normalised
from moew.paper import spam
from moew.paper._experiment import Options, Run

SIZES = (200, 300, 400)


@pytest.fixture(scope="module")
def clients():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 12))
    y = (X[:, :6].sum(axis=1) + rng.normal(size=1500) > 1.7).astype(np.int64)
    money = np.exp(rng.normal(8, 1, (2, 1500)))
    columns = {"BILL_AMT1": money[0], "LIMIT_BAL": money[1], "large": money[1] > np.median(money[1])}
    return Dataset(X, y, tuple(map(str, range(12))), columns)


def test_a_small_version_writes_its_tables_numbers_and_figure(clients, tmp_path):
    this = Run("spam", Options(repeats=2, steps=60, out=tmp_path))
    found = spam.search_all(this, clients, SIZES, n_batches=2)
    text = spam.report(this, found)
    assert "Study 2" in text and "moew / uniform" in text
    with (tmp_path / "spam" / "spam.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 2 * 2 * len(spam.ARMS)
    seen = found[2, "Shimodaira"]
    best = seen.best(greater_is_better=True)
    one = next(row for row in lines if row["setting"] == "study 2 Shimodaira" and row["repeat"] == "1")
    assert float(one["test"]) == pytest.approx(seen.scores["test"][1, best[1]], rel=1e-5)
    assert (tmp_path / "spam" / "spam.png").stat().st_size > 10_000
    again = spam.search_all(this, clients, SIZES, n_batches=2)  # all is in the folder
    assert all((again[key].alphas == found[key].alphas).all() for key in found)


@pytest.mark.parametrize("study", [1, 2])
def test_splits_have_the_shares_of_the_study_and_no_row_twice(clients, study):
    marked = clients.y == 1 if study == 1 else clients.columns["large"]
    parts = spam.draw_split(np.random.default_rng(1), marked, spam.SHARES[study], SIZES)
    assert [len(part) for part in parts] == list(SIZES)
    before, after = spam.SHARES[study]
    assert [marked[part].mean() for part in parts] == pytest.approx([before, after, after])
    assert len(np.unique(np.concatenate(parts))) == sum(SIZES)


@pytest.mark.parametrize("study", [1, 2])
def test_importance_weights_bring_the_training_share_to_that_of_the_test(clients, study):
    rows = spam.Spam(Options(repeats=2), clients, study, SIZES)
    marked = rows.importance < 1  # marked rows are rarer in the test
    shares = (rows.importance * marked).sum(axis=1) / rows.importance.sum(axis=1)
    assert shares == pytest.approx(spam.SHARES[study][1])
    positives = (rows.label_shift * rows.train.y).mean(axis=1)
    np.testing.assert_allclose(positives, rows.validation.y.mean(axis=1), rtol=1e-5)


def test_threshold_and_metric_are_the_packages_own():
    rng = np.random.default_rng(3)
    R, K, m = 2, 3, 90
    scores, y = rng.normal(size=(R, K, m)), (rng.random((R, m)) < 0.3).astype(float)
    part = spam.Part(np.empty((R, m, 0)), y, rng.normal(1, 1, (R, m)), rng.random((R, m)))
    found = spam.value_per_harm(scores, spam.threshold_of(scores, 0.05), part)
    for r in range(R):
        for k in range(K):
            rule = ShareSelected(0.05).fit(scores[r, k], None, {})
            decided = rule.decide(scores[r, k], {}).astype(int)
            expected = metrics.value_per_harm()(y[r], decided, {"value": part.value[r], "harm": part.harm[r]})
            assert found[r, k] == pytest.approx(expected)
    perfect = spam.value_per_harm(y[:, None], np.full((R, 1), 0.5), part)  # harms nobody
    columns = {"value": part.value[0], "harm": part.harm[0]}
    expected = metrics.value_per_harm()(y[0], y[0].astype(int), columns)
    assert perfect[0, 0] == pytest.approx(expected)


def test_normalised_scores_are_ratios_of_means():
    uniform = np.array([1.0, 2.0, 3.0, 6.0])
    scores = {"uniform": uniform, "twice": 2 * uniform, "second": np.array([3.0, 6.0])}
    lines = normalised.lines(scores, {"twice": (2.5, 0.1)})
    assert [line.mean for line in lines] == pytest.approx([1.0, 2.0, 3.0])  # the last over two repeats
    assert lines[0].margin == pytest.approx(margin(uniform) / 3) and lines[1].paper == 2.5
    assert normalised.ratio(2 * uniform, uniform) == pytest.approx((2.0, 0.0))
    scores |= {"moew": 3 * uniform, normalised.PAPER_ARM: 2 * uniform}
    text = normalised.section("title", scores, {})
    assert "better in 4 of 4" in text and f"moew / {normalised.PAPER_ARM}: 1.5000" in text
    assert "second (2 repeats)" in text


def test_the_margin_of_a_ratio_covers_it_as_often_as_it_says():
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(400):
        uniform = rng.normal(5, 1, 50)
        quotient, within = normalised.ratio(1.5 * uniform + rng.normal(0, 1, 50), uniform)
        inside += abs(quotient - 1.5) <= within
    assert 0.91 <= inside / 400 <= 0.985
