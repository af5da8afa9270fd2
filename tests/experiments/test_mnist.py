"""A small version of the MNIST experiment, on made-up digits; and its parts."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from experiments import OutOfTimeError, mnist
from experiments._beside_paper import Line, table
from experiments._experiment import PAPER_ARM, PI_ALONE, Options, Run
from experiments._posterior_choice import ARGMAX, BEST_TRIAL
from experiments._searches import (
    Fixed,
    Judge,
    Learned,
    Problem,
    RandomRows,
    Seen,
    rows_of_repeats,
    run,
)
from experiments.datasets import Dataset, TrainTest
from experiments.networks import RepeatedNetworks
from moew.exceptions import InvalidInputError, MoewError, UndefinedMetricError
from moew.models.networks import NetworkSpec
from moew.samplers import GpBucb


def digits(n, seed):
    """Ten blobs in 784 pixels."""
    y = np.random.default_rng(seed).integers(0, 10, n)
    centres = np.random.default_rng(0).random((10, 784)) < 0.2
    noise = np.random.default_rng(seed + 1).normal(0, 0.5, (n, 784))
    return Dataset((centres[y] + noise).astype(np.float32), y, tuple(map(str, range(784))), {})


@pytest.fixture(scope="module")
def rows():
    return TrainTest(digits(700, 1), digits(300, 2))


@pytest.mark.heavy
def test_a_small_version_writes_its_table_numbers_and_figure(rows, tmp_path):
    options = Options(repeats=2, steps=60, out=tmp_path)
    this = Run("mnist", options)
    found = mnist.search_all(this, mnist.Mnist(options, rows, 200), (5, 8), (8,), n_batches=2)
    text = mnist.report(this, found, (5, 8))
    assert f"moew − {PAPER_ARM}" in text and f"{mnist.SOFTMAX_OURS} − {mnist.SOFTMAX_UNIFORM}" in text
    assert "784-8-10" in text and "moew − uniform" in text
    with (tmp_path / "mnist" / "mnist.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 2 * (2 * len(mnist.ARMS) + 12)  # the second settings for one size
    seen = found[8, "uniform"]
    best = seen.best(greater_is_better=False)
    one = next(line for line in lines if line["setting"] == "h=8 uniform" and line["repeat"] == "1")
    assert float(one["test"]) == pytest.approx(100 * seen.scores["test"][1, best[1]], rel=1e-5)
    digits_of_first = [seen.scores[f"digit {d}"][0, 0] for d in range(10)]
    assert max(digits_of_first) == pytest.approx(seen.scores["validation"][0, 0])
    assert (tmp_path / "mnist" / "mnist.png").stat().st_size > 10_000
    with (tmp_path / "mnist" / "figure-3b.csv").open() as file:
        of_digits = list(csv.DictReader(file))
    winners = found[8, PAPER_ARM].winners(greater_is_better=False)
    np.testing.assert_allclose([float(x["alpha"]) for x in of_digits], winners.mean(axis=0), rtol=1e-4)
    for how in (BEST_TRIAL, ARGMAX):
        assert f"{PAPER_ARM}, {how} − the choice by validation" in text
    trial = found[8, f"moew, {BEST_TRIAL}"]
    assert all((found[8, "moew"].alphas[r] == trial.alphas[r]).all(axis=1).any() for r in range(2))
    assert trial.scores["test by validation"][0, 0] == pytest.approx(
        found[8, "moew"].at(found[8, "moew"].best(greater_is_better=False))["test"][0]
    )


def small_run(rows, out, *only, repeats=2):
    """Some settings of a small version, and the tables of all that is in the folder."""
    options = Options(repeats=repeats, steps=5, out=out, only=only)
    this = Run("mnist", options)
    found = mnist.search_all(this, mnist.Mnist(options, rows, 200), (5,), (5,), n_batches=1)
    return found, this.conclude(mnist.report(this, found, (5,)))


@pytest.mark.heavy
def test_a_setting_alone_takes_its_place_among_the_others(rows, tmp_path):
    found, text = small_run(rows, tmp_path, "h=5 moew, digit alone*")
    assert set(found) == {(5, name) for name in mnist.DIGIT_ALONE}
    assert "moew, digit alone, R = 1" in text and "uniform" not in text
    path = tmp_path / "mnist" / "mnist.csv"
    before = path.read_text().splitlines()
    found, text = small_run(rows, tmp_path, "h=5 moew, digit alone", "h=5 *, with π(y)", repeats=3)
    assert (5, "uniform") not in found and (5, PI_ALONE) in found  # what it depends on is not entered
    assert "moew, digit alone, R = 1 (2 repeats)" in text and PI_ALONE not in text
    lines = path.read_text().splitlines()
    assert [x for x in lines if "R = 1" in x] == [x for x in before if "R = 1" in x]
    assert len(lines) == 1 + 2 + 3 + 3
    assert small_run(rows, tmp_path)[1] == text  # from the raw numbers alone
    assert path.read_text().splitlines() == lines
    with pytest.raises(InvalidInputError, match=r"no setting of mnist is named 'h=5 other'.*h=5 uniform"):
        small_run(rows, tmp_path, "h=5 other")


@pytest.mark.heavy
def test_the_choice_by_posterior_mean_has_the_embedding_of_its_search(rows, tmp_path, monkeypatch):
    row = f"h=5 moew, {ARGMAX}"
    monkeypatch.setattr(Run, "posterior_choice", end)  # interrupted after the search
    with pytest.raises(OutOfTimeError):
        small_run(rows, tmp_path, row)
    [kept] = tmp_path.rglob("*.embedding.npy")
    monkeypatch.undo()
    monkeypatch.setattr(mnist.Mnist, "difficulty", lambda self, networks: np.ones((2, len(self.y), 1)))
    found, _ = small_run(rows, tmp_path, row)
    assert found[5, f"moew, {ARGMAX}"].n == 1 and not kept.exists()


@pytest.mark.heavy
def test_the_seconds_of_some_settings_stand_beside_those_of_all(rows, tmp_path):
    (tmp_path / "mnist").mkdir()
    whole = {"experiment": "mnist", "options": {}, "seconds": 7.0}
    (tmp_path / "mnist" / "mnist.json").write_text(json.dumps(whole))
    small_run(rows, tmp_path, "h=5 uniform")
    meta = json.loads((tmp_path / "mnist" / "mnist.json").read_text())
    assert meta["seconds"] == 7.0 and meta["only"]["h=5 uniform"]["options"]["repeats"] == 2


def test_with_pi_the_labels_of_validation_are_those_of_training(rows, tmp_path):
    data = mnist.Mnist(Options(repeats=2, steps=1), rows, 200)
    problem = data.problem(data.networks(5))
    weights = data.arm(problem.networks, PI_ALONE, 5, None).weighting(0, problem.data[0])
    pi = weights.training_weights(np.zeros((1, 1)))[0]
    shares = np.bincount(data.y, pi, minlength=10) / pi.sum()
    np.testing.assert_allclose(shares, np.bincount(data.y_val, minlength=10) / 200, atol=1e-6)


@pytest.mark.heavy
def test_rows_with_a_wrong_digit_are_the_hard_ones(rows):
    options = Options(repeats=2, steps=200)
    data = mnist.Mnist(options, rows, 200)
    truth = data.y.copy()
    data.y[:20] = (truth[:20] + 1) % 10
    hard = data.difficulty(data.networks(8))[..., 0]
    assert hard.shape == (2, 500)
    assert (hard[:, :20].mean(axis=1) > 0.7).all() and np.abs(hard).max() <= 3


def small_problem(rows, steps, n_repeats=2):
    """Networks 784-4-10 trained on all training rows and evaluated on the test rows."""
    spec = NetworkSpec((784, 4, 10), "sigmoid", "sigmoid_cross_entropy", steps, 50)
    y = rows.train.y
    networks = RepeatedNetworks(spec, rows.train.X[None], np.eye(10)[y][None], n_repeats, seed=3)
    evaluated = rows_of_repeats(networks.place(rows.test.X[None]), rows.test.y[None], n_repeats)
    return Problem.of(
        networks, np.arange(10), rows_of_repeats(None, y[None], n_repeats), evaluated, evaluated
    )


def end(*_, **more):
    raise OutOfTimeError("time is up")


@pytest.mark.heavy
@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.heavy)])
def test_an_interrupted_run_ends_with_the_same_numbers(rows, tmp_path, n_jobs):
    arm = Learned(np.eye(10)[rows.train.y][None], 1.0, GpBucb(), seed=1)

    def go(path, on_batch=None, jobs=1):
        return run(
            small_problem(rows, 20),
            arm,
            Judge(mnist.EVALUATOR),
            n_batches=3,
            batch_size=4,
            path=path,
            n_jobs=jobs,
            on_batch=on_batch,
        )

    whole = go(tmp_path / "whole.npz")
    for done in (1, 2):
        with pytest.raises(OutOfTimeError):
            go(tmp_path / "parts.npz", end, n_jobs)
        assert Seen.load(tmp_path / "parts.npz").n == 4 * done
    parts = go(tmp_path / "parts.npz")
    np.testing.assert_array_equal(parts.alphas, whole.alphas)
    for name in ("validation", "test"):
        np.testing.assert_array_equal(parts.scores[name], whole.scores[name])


@pytest.mark.heavy
def test_candidates_of_another_embedding_are_not_gone_on_with(rows, tmp_path):
    problem = small_problem(rows, 5)

    def go(Z, n_batches, stop=False):
        arm = Learned(Z[None], 1.0, None, seed=1)
        sizes = {"n_batches": n_batches, "batch_size": 3, "path": tmp_path / "state.npz"}
        return run(problem, arm, Judge(mnist.EVALUATOR), **sizes, on_batch=end if stop else None)

    Z = np.eye(10)[rows.train.y]
    kept = tmp_path / "state.embedding.npy"
    with pytest.raises(OutOfTimeError):
        go(Z, 2, stop=True)
    assert go(2 * Z, 2).n == 6  # with the kept one
    assert not kept.exists()
    with pytest.raises(MoewError, match="another embedding"):
        go(2 * Z, 3)
    assert go(Z, 3).n == 9  # and nothing is lost


@pytest.mark.heavy
@pytest.mark.parametrize("arm", [Fixed(), RandomRows(seed=5)])
def test_repeats_share_rows_but_not_their_chance(rows, tmp_path, arm):
    found = []

    def outputs(problem, repeat, model, predictions):
        found.append(model.decision_function(problem.test[repeat].X).tobytes())
        return {}

    judge = Judge(mnist.EVALUATOR, outputs)
    run(small_problem(rows, 5, 3), arm, judge, n_batches=1, batch_size=2, path=tmp_path / "state.npz")
    assert len(set(found)) == 6


@pytest.mark.heavy
def test_a_score_that_is_undefined_is_missing_and_nothing_else_is_lost(rows, tmp_path):
    problem = small_problem(rows, 5)

    def fails_once(problem, repeat, model, predictions):
        if repeat == 0 and not found:
            found.append(model)
            raise UndefinedMetricError("no such rows")
        return {"test": 1.0}

    found = []
    judge = Judge(mnist.EVALUATOR, fails_once)
    seen = run(problem, Fixed(), judge, n_batches=1, batch_size=2, path=tmp_path / "state.npz")
    np.testing.assert_array_equal(seen.scores["test"], [[np.nan, 1.0], [1.0, 1.0]])


def test_the_choice_never_falls_on_nan_and_takes_the_first_of_equals():
    seen = Seen(
        np.zeros((2, 4, 1)), {"validation": np.array([[np.nan, 2.0, 1.0, 1.0], [3.0, 3.0, np.nan, 9.0]])}
    )
    np.testing.assert_array_equal(seen.best(greater_is_better=False), [2, 0])
    np.testing.assert_array_equal(seen.best(greater_is_better=True), [1, 3])
    np.testing.assert_array_equal(seen.best(greater_is_better=True, first=3), [1, 0])


@pytest.mark.parametrize(
    ("values", "verdict"),
    [([1.0, 1.2], "inside the margin"), ([9.0, 9.1], "worse"), ([-9.0, -9.1], "better")],
)
def test_verdicts(values, verdict):
    line = Line("error", np.array(values), greater_is_better=False, paper=1.0, paper_margin=0.1)
    assert line.verdict == verdict
    assert verdict in table("title", [line])
