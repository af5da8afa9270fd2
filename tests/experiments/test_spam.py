"""A small version of the spam experiment, on made-up clients; and its parts."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from experiments import _normalised as normalised
from experiments import spam
from experiments._experiment import Options, Run
from experiments._searches import label_shift
from experiments.datasets import Dataset
from experiments.networks import TrainedNetworks
from moew._util.margins import margin

SIZES = (200, 300, 400)


@pytest.fixture(scope="module")
def clients():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 12))
    y = (X[:, :6].sum(axis=1) + rng.normal(size=1500) > 1.7).astype(np.int64)
    money = np.exp(rng.normal(8, 1, (2, 1500)))
    columns = {"BILL_AMT1": money[0], "LIMIT_BAL": money[1], "large": money[1] > np.median(money[1])}
    return Dataset(X, y, tuple(map(str, range(12))), columns)


@pytest.mark.heavy
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
    for r in range(2):
        y, y_val = rows.train.y[r], rows.validation.y[r]
        pi = label_shift(r).fit_weights(None, y, None, y_val, task="classification")
        assert (pi * y).mean() == pytest.approx(y_val.mean())


@pytest.mark.heavy
def test_what_is_recorded_is_the_metric_of_models_and_rows_at_hand(clients):
    """The threshold blocks 5 % of the validation rows, and the same threshold decides on the test rows."""
    rows = spam.Spam(Options(repeats=2, steps=30), clients, 1, SIZES)
    problem = rows.problem(2)
    weights = np.ones((2, 3, SIZES[0]), np.float32)
    trained = TrainedNetworks(problem.networks, problem.networks.train(weights, 0), problem.classes)
    model, data = trained.model(1, 2), problem.data[1]
    predictions = spam.JUDGE.evaluator.predictions([model], data)
    found = spam.JUDGE.recorded(problem, 1, model, predictions)["test"]
    threshold = np.sort(model.decision_function(data.validation.X))[-16:-14].mean(dtype=float)  # 15 of 300
    blocked = model.decision_function(problem.test[1].X) > threshold
    y, value, harm = rows.test.y[1], rows.test.value[1], rows.test.harm[1]
    assert found == pytest.approx((value * y)[blocked].sum() / (harm * (1 - y))[blocked].sum())


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
