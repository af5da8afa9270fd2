"""Figure 2 in small, on made-up posts; and its parts."""

import csv

import numpy as np
import pytest

from experiments import pages, sampling
from experiments._experiment import Options
from experiments._searches import Seen
from experiments.datasets import Dataset, TrainValidTest


def posts(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.gamma(1.0, 3.0, (n, 6))
    comments = rng.poisson(X[:, 0] / 4)
    columns = {"graded": np.log1p(comments)}
    return Dataset(X, (comments > 0).astype(np.int64), pages.FEATURES, columns)


@pytest.mark.heavy
def test_a_small_version_looks_into_the_search_of_pages(tmp_path, monkeypatch):
    data = TrainValidTest(posts(400, 0), posts(150, 1), posts(150, 2))
    options = Options(2, steps=5, out=tmp_path)
    monkeypatch.setattr(sampling, "load_blog", lambda: data)
    text = sampling.main(options)
    assert "0.97" in text and "all 200 candidates" in text and "batch 9" in text
    [kept] = tmp_path.glob("pages/state/*/hinge-*-40-moew-gp-bucb-as-in-the-paper.npz")
    seen = Seen.load(kept)
    assert seen.alphas.shape == (2, 200, 3)
    assert (np.linalg.norm(seen.alphas, axis=2) <= sampling.PAPER_RADIUS * (1 + 1e-6)).all()
    with (tmp_path / "sampling" / "sampling.csv").open() as file:
        lines = list(csv.DictReader(file))
    wanted = np.corrcoef(seen.scores["validation"][1], seen.scores["test"][1])[0, 1]
    assert float(lines[1]["correlation"]) == pytest.approx(wanted, rel=1e-4)
    assert (tmp_path / "sampling" / "sampling.png").stat().st_size > 20_000
    with (tmp_path / "sampling" / "figure-2.csv").open() as file:
        drawn = list(csv.DictReader(file))
    assert len(drawn) == 200 and drawn[-1]["batch"] == "9"
    assert float(drawn[37]["alpha 2"]) == pytest.approx(seen.alphas[0, 37, 1], rel=1e-4)
    assert float(drawn[37]["test"]) == pytest.approx(seen.scores["test"][0, 37], rel=1e-4)
    monkeypatch.setattr(pages.Pages, "problem", None)  # run again, everything is found in the folder
    assert sampling.main(options) == text


def test_distances_are_from_the_winner():
    alphas = np.array([[[0.0, 0.0], [3.0, 4.0], [0.0, 1.0], [0.0, 0.0]]])
    seen = Seen(alphas, {"validation": np.array([[9.0, 1.0, 2.0, 3.0]])})
    np.testing.assert_allclose(sampling.distances(seen, 0, 2), [2.5])
    np.testing.assert_allclose(sampling.distances(seen, 1, 2), [0.5])
