"""A small version of the experiment on page quality, on made-up posts; and its metric."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from moew.datasets import Dataset, TrainValidTest
from moew.decision import ShareSelected
from moew.metrics import mean_of_selected
from moew.paper import pages
from moew.paper._experiment import Options, Run


def posts(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.exponential(3, (n, 6))
    graded = np.log1p(rng.poisson(X[:, 0]))
    return Dataset(X, (graded > 0).astype(np.int64), pages.FEATURES, {"graded": graded})


@pytest.fixture(scope="module")
def rows():
    return TrainValidTest(posts(300, 1), posts(150, 2), posts(160, 3))


def test_a_small_version_writes_its_tables_numbers_and_figure(rows, tmp_path):
    options = Options(repeats=2, steps=20, out=tmp_path)
    this = Run("pages", options)
    data = pages.Pages(options, rows)
    both = {
        training: pages.search_all(this, data, training, arms, n_batches=2)
        for training, arms in pages.ARMS_OF.items()
    }
    text = pages.report(this, both)
    assert "40 % selected, hinge" in text and "moew / uniform" in text and pages.CEILING in text
    with (tmp_path / "pages" / "pages.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 2 * len(pages.SHARES) * 2 * 4
    seen = both[pages.CHOSEN][0.1, "moew"]
    best = seen.best(greater_is_better=True)
    one = next(
        row for row in lines if row["setting"] == f"{pages.CHOSEN}, 10 % moew" and row["repeat"] == "0"
    )
    assert float(one["test"]) == pytest.approx(seen.scores["test"][0, best[0]], rel=1e-5)
    assert (tmp_path / "pages" / "pages.png").stat().st_size > 10_000
    assert both[pages.STATED][0.4, "uniform"].scores["test"].shape == (2, 40)


def test_the_scores_are_in_0_to_1_and_differ_by_share(rows):
    data = pages.Pages(Options(repeats=1, steps=20), rows)
    networks = data.networks(pages.STATED, 1)
    scores = data.evaluate(networks, networks.train(networks.uniform_weights(2), 0))
    assert len(scores) == 2 * len(pages.SHARES)
    assert all(((values >= 0) & (values <= 1)).all() for values in scores.values())
    assert (scores["test 5 %"] != scores["test 40 %"]).all()


@pytest.mark.parametrize("share", pages.SHARES)
def test_the_metric_is_the_packages_own(share):
    rng = np.random.default_rng(0)
    scores, grades = rng.normal(size=(2, 3, 77)), rng.random(77)
    found = pages.mean_of_selected(scores, grades, share)
    for r in range(2):
        for k in range(3):
            decided = ShareSelected(share, on="each").decide(scores[r, k], {})
            assert found[r, k] == pytest.approx(mean_of_selected()(grades, decided.astype(int)))


def test_ties_count_by_their_mean_and_diverged_networks_by_none():
    grades = np.array([1.0, 0.6, 0.2, 0.0, 0.0])
    scores = np.array([[[3.0, 2.0, 2.0, 1.0, 0.0], [np.nan] * 5]])
    found = pages.mean_of_selected(scores, grades, 0.4)
    assert found[0, 0] == pytest.approx((1.0 + 0.4) / 2)
    assert np.isnan(found[0, 1])
