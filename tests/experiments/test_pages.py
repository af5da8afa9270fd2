"""A small version of the experiment on page quality, on made-up posts; and its metric."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from experiments import pages
from experiments._experiment import Options, Run
from experiments._searches import Fixed, Judge, run
from experiments.datasets import Dataset, TrainValidTest


def posts(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.exponential(3, (n, 6))
    graded = np.log1p(rng.poisson(X[:, 0]))
    return Dataset(X, (graded > 0).astype(np.int64), pages.FEATURES, {"graded": graded})


@pytest.fixture(scope="module")
def rows():
    return TrainValidTest(posts(300, 1), posts(150, 2), posts(160, 3))


@pytest.mark.heavy
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


@pytest.mark.heavy
def test_the_scores_are_in_0_to_1_and_differ_by_share(rows, tmp_path):
    options = Options(repeats=2, steps=20, out=tmp_path)
    found = pages.search_all(
        Run("pages", options), pages.Pages(options, rows), pages.STATED, ("uniform",), n_batches=1
    )
    tests = {share: found[share, "uniform"].scores["test"] for share in pages.SHARES}
    assert all(((values >= 0) & (values <= 1)).all() for values in tests.values())
    assert (tests[0.05] != tests[0.4]).all()


@pytest.mark.heavy
def test_uniform_models_are_evaluated_at_a_share_as_those_of_its_search(rows, tmp_path):
    data = pages.Pages(Options(repeats=2, steps=20), rows)
    problem = data.problem(pages.STATED, 2)
    for share in pages.SHARES:
        evaluated = run(
            problem,
            Fixed(),
            Judge(pages.EVALUATORS[share]),
            n_batches=1,
            batch_size=3,
            path=tmp_path / f"{share}.npz",
        )
        every = run(
            problem,
            Fixed(),
            Judge(pages.EVALUATORS[0.4], pages.at_every_share),
            n_batches=1,
            batch_size=3,
            path=tmp_path / f"every {share}.npz",
        )
        for name, values in pages.at_share(every.scores, share).items():
            np.testing.assert_array_equal(values, evaluated.scores[name])
