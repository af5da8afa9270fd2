"""Figure 2 in small, on made-up posts; and its parts."""

import csv

import numpy as np
import pytest

from moew.datasets import Dataset, TrainValidTest
from moew.paper import sampling
from moew.paper._experiment import Options, Run
from moew.paper._searches import Seen


def posts(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.gamma(1.0, 3.0, (n, 6))
    comments = rng.poisson(X[:, 0] / 4)
    columns = {"graded": np.log1p(comments)}
    return Dataset(X, (comments > 0).astype(np.int64), sampling.FEATURES, columns)


def test_a_small_version(tmp_path):
    options = Options(2, steps=40, out=tmp_path)
    data = TrainValidTest(posts(400, 0), posts(150, 1), posts(150, 2))
    this = Run("sampling", options)
    seen = sampling.search(this, sampling.Posts(options, data), n_batches=2, batch_size=5)
    assert seen.alphas.shape == (2, 10, 3)
    assert (np.linalg.norm(seen.alphas, axis=2) <= sampling.RADIUS * (1 + 1e-9)).all()
    text = sampling.report(this, seen, batch_size=5)
    assert "0.97" in text and "batch 1" in text and "batch 3" not in text
    with (tmp_path / "sampling" / "sampling.csv").open() as file:
        lines = list(csv.DictReader(file))
    wanted = np.corrcoef(seen.scores["validation"][1], seen.scores["test"][1])[0, 1]
    assert float(lines[1]["correlation"]) == pytest.approx(wanted, rel=1e-4)
    assert (tmp_path / "sampling" / "sampling.png").stat().st_size > 20_000
    # Run again, everything is found in the folder: with other data nothing would change.
    other = sampling.Posts(options, TrainValidTest(posts(400, 5), posts(150, 6), posts(150, 7)))
    again = sampling.search(Run("sampling", options), other, n_batches=2, batch_size=5)
    np.testing.assert_array_equal(again.alphas, seen.alphas)


def test_the_metric_is_the_mean_grade_of_the_top():
    scores = np.array([[[0.1, 0.9, 0.5, -1.0, 0.7], [5.0, 4.0, 3.0, 2.0, 1.0]]])
    grades = np.array([0.0, 1.0, 2.0, 4.0, 8.0])
    np.testing.assert_allclose(sampling.mean_of_top(scores, grades, 0.4), [[4.5, 0.5]])


def test_distances_are_from_the_winner():
    alphas = np.array([[[0.0, 0.0], [3.0, 4.0], [0.0, 1.0], [0.0, 0.0]]])
    seen = Seen(alphas, {"validation": np.array([[9.0, 1.0, 2.0, 3.0]])})
    np.testing.assert_allclose(sampling.distances(seen, 0, 2), [2.5])
    np.testing.assert_allclose(sampling.distances(seen, 1, 2), [0.5])
