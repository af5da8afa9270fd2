"""Figure 1 in small: the data are what the docs say, and the run gives its table, numbers and PNG."""

import numpy as np
import pytest

from experiments import OutOfTimeError, figure_1, toy
from experiments._experiment import Options
from experiments.datasets import draw_figure_1, figure_1_probability
from experiments.figure_1 import Figure1Settings, Repeat, run_repeat, run_repeats
from moew.metrics import precision_at_recall


def test_the_bayes_scorer_reaches_a_quarter():
    X, y = draw_figure_1(np.random.default_rng(0), 2_000_000, 1, 2)
    bayes = precision_at_recall(0.95)(y, figure_1_probability(X), pos_label=True)
    assert bayes == pytest.approx(0.25, abs=0.002)


def test_the_table_is_returned_and_the_panels_are_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr(figure_1, "N_TEST", 5_000)
    monkeypatch.setattr(figure_1, "N_BATCHES", 2)
    monkeypatch.setattr(figure_1, "BATCH_SIZE", 4)
    text = toy.main(Options(2, out=tmp_path))
    for row in ("select everything", "uniform", "importance (exact)", "moew", "Bayes-optimal", "honest"):
        assert row in text
    assert (tmp_path / "toy" / "figure-1.png").stat().st_size > 20_000
    assert len((tmp_path / "toy" / "toy.csv").read_text().splitlines()) == 3
    assert len((tmp_path / "toy" / "figure-1-rows.csv").read_text().splitlines()) == 1 + 2 * 1_000
    drawn = np.loadtxt(tmp_path / "toy" / "figure-1-weights.csv", delimiter=",", skiprows=1)
    done = [Repeat.load(path).log_weights for path in tmp_path.glob("toy/state/*/*.npz")]
    mean = np.exp(np.mean(done, axis=0))  # of negatives and positives, by x2 and x1
    np.testing.assert_allclose(drawn[:, :2][7 * 101 + 30], [0.3, 0.07])
    np.testing.assert_allclose(drawn[:, 2:][7 * 101 + 30], [mean[1, 7, 30], mean[0, 7, 30]], rtol=1e-4)
    for name in ("figure-1.png", "toy.csv"):
        assert text.count(str(tmp_path / "toy" / name)) == 1


@pytest.mark.heavy
def test_repeats_depend_on_seed_and_number_only(monkeypatch):
    monkeypatch.setattr(figure_1, "N_TEST", 2_000)
    monkeypatch.setattr(figure_1, "N_BATCHES", 1)

    def run(number):
        return run_repeat(number, Figure1Settings()).precision

    assert run(3) == run(3)
    assert run(3) != run(4)


@pytest.mark.heavy
def test_a_stopped_run_goes_on_to_the_same_numbers(tmp_path, monkeypatch):
    monkeypatch.setattr(figure_1, "N_TEST", 2_000)
    monkeypatch.setattr(figure_1, "N_BATCHES", 1)
    monkeypatch.setattr(figure_1, "BATCH_SIZE", 2)
    settings = Figure1Settings(sampler="random")
    whole = run_repeats(tmp_path / "whole", 2, settings)
    with pytest.raises(OutOfTimeError):
        toy.main(Options(2, out=tmp_path, minutes=1e-9, steps=settings.steps), sampler="random")
    assert len(list(tmp_path.glob("toy/state/*/*.npz"))) == 1
    parts = run_repeats(tmp_path / "toy", 2, settings)
    for one, other in zip(parts, whole, strict=True):
        assert (one.precision, one.best, one.honest) == (other.precision, other.best, other.honest)
        np.testing.assert_array_equal(one.log_weights, other.log_weights)


@pytest.mark.heavy
def test_networks_and_random_search_run_too(tmp_path, monkeypatch):
    monkeypatch.setattr(figure_1, "N_TEST", 2_000)
    monkeypatch.setattr(figure_1, "N_BATCHES", 1)
    monkeypatch.setattr(figure_1, "BATCH_SIZE", 2)
    assert "moew" in toy.main(Options(2, steps=20, out=tmp_path), "network", "random")
