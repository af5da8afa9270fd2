"""Figure 1 in small: the data are what the docs say, and the command prints its table and writes its PNG."""

import numpy as np
import pytest

from moew.metrics import precision_at_recall
from moew.paper import toy


def test_the_bayes_scorer_reaches_a_quarter():
    X, y = toy.draw(np.random.default_rng(0), 2_000_000, 1, 2)
    bayes = precision_at_recall(0.95)(y, toy.probability(X), pos_label=True)
    assert bayes == pytest.approx(0.25, abs=0.002)


def test_the_command_prints_the_table_and_draws_the_panels(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(toy, "N_TEST", 5_000)
    monkeypatch.setattr(toy, "N_BATCHES", 2)
    monkeypatch.setattr(toy, "BATCH_SIZE", 4)
    toy.main(["--repeats", "2", "--jobs", "1", "--out", str(tmp_path)])
    text = capsys.readouterr().out
    for row in ("select everything", "uniform", "importance (exact)", "moew", "Bayes-optimal", "honest"):
        assert row in text
    assert (tmp_path / "figure-1.png").stat().st_size > 20_000


def test_repeats_depend_on_seed_and_number_only(monkeypatch):
    monkeypatch.setattr(toy, "N_TEST", 2_000)
    monkeypatch.setattr(toy, "N_BATCHES", 1)

    def run(number):
        return toy.run_repeat(number, 0, "logistic", 0, "gp_bucb").precision

    assert run(3) == run(3)
    assert run(3) != run(4)


def test_networks_and_random_search_run_too(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(toy, "N_TEST", 2_000)
    monkeypatch.setattr(toy, "N_BATCHES", 1)
    monkeypatch.setattr(toy, "BATCH_SIZE", 2)
    settings = ["--model", "network", "--steps", "20", "--search", "random"]
    toy.main(["--repeats", "2", "--jobs", "1", "--out", str(tmp_path), *settings])
    assert "moew" in capsys.readouterr().out


def test_one_repeat_is_refused():
    with pytest.raises(SystemExit):
        toy.main(["--repeats", "1"])
