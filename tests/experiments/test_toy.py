"""Figure 1 in small: the data are what the docs say, and the run gives its table, numbers and PNG."""

import numpy as np
import pytest

from moew.metrics import precision_at_recall
from moew.paper import toy
from moew.paper._experiment import Options, Run
from moew.paper._searches import OutOfTimeError


def test_the_bayes_scorer_reaches_a_quarter():
    X, y = toy.draw(np.random.default_rng(0), 2_000_000, 1, 2)
    bayes = precision_at_recall(0.95)(y, toy.probability(X), pos_label=True)
    assert bayes == pytest.approx(0.25, abs=0.002)


def test_the_table_is_returned_and_the_panels_are_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr(toy, "N_TEST", 5_000)
    monkeypatch.setattr(toy, "N_BATCHES", 2)
    monkeypatch.setattr(toy, "BATCH_SIZE", 4)
    text = toy.main(Options(2, out=tmp_path))
    for row in ("select everything", "uniform", "importance (exact)", "moew", "Bayes-optimal", "honest"):
        assert row in text
    assert (tmp_path / "toy" / "figure-1.png").stat().st_size > 20_000
    assert len((tmp_path / "toy" / "toy.csv").read_text().splitlines()) == 3
    for name in ("figure-1.png", "toy.csv"):
        assert text.count(str(tmp_path / "toy" / name)) == 1


def test_repeats_depend_on_seed_and_number_only(monkeypatch):
    monkeypatch.setattr(toy, "N_TEST", 2_000)
    monkeypatch.setattr(toy, "N_BATCHES", 1)

    def run(number):
        return toy.run_repeat(number, Options(9), "logistic", "gp_bucb").precision

    assert run(3) == run(3)
    assert run(3) != run(4)


def test_a_stopped_run_goes_on_to_the_same_numbers(tmp_path, monkeypatch):
    monkeypatch.setattr(toy, "N_TEST", 2_000)
    monkeypatch.setattr(toy, "N_BATCHES", 1)
    monkeypatch.setattr(toy, "BATCH_SIZE", 2)
    whole = toy.run(Run("toy", Options(2, out=tmp_path / "whole")), "logistic", "random")
    with pytest.raises(OutOfTimeError):
        toy.run(Run("toy", Options(2, out=tmp_path / "parts", minutes=1e-9)), "logistic", "random")
    assert len(list(tmp_path.glob("parts/toy/state/*/*.npz"))) == 1
    parts = toy.run(Run("toy", Options(2, out=tmp_path / "parts")), "logistic", "random")
    for one, other in zip(parts, whole, strict=True):
        assert (one.precision, one.best, one.honest) == (other.precision, other.best, other.honest)
        np.testing.assert_array_equal(one.log_weights, other.log_weights)


def test_networks_and_random_search_run_too(tmp_path, monkeypatch):
    monkeypatch.setattr(toy, "N_TEST", 2_000)
    monkeypatch.setattr(toy, "N_BATCHES", 1)
    monkeypatch.setattr(toy, "BATCH_SIZE", 2)
    assert "moew" in toy.main(Options(2, steps=20, out=tmp_path), "network", "random")
