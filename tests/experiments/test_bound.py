"""The problem of the bound: exact where it says so; and a small version of the experiment."""

import csv

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from experiments import _bound_problem as problem
from experiments import bound
from experiments._experiment import Options, Run
from experiments.theory import Theorem2
from moew.samplers import Ball


@pytest.fixture(scope="module")
def sums():
    return problem.training_sums(0)


def test_training_is_weighted_least_squares():
    rng = np.random.default_rng(1)
    rows = problem.draw_rows(rng, np.array([30, 20, 25, 40]))
    products = [X.sum(axis=0) * y for X, y in zip(rows, problem.GROUPS[:, 0], strict=True)]
    sums = problem.Sums(np.stack([X.T @ X for X in rows]), np.stack(products))
    alpha = np.array([[0.3, -0.5, 0.2]])
    weights = 1 / (1 + np.exp(-(problem.embedding(3) @ alpha[0])))
    group = np.repeat(np.arange(4), [len(X) for X in rows])
    X = np.vstack(rows)[:, :2]
    fitted = LinearRegression().fit(X, problem.GROUPS[group, 0], sample_weight=weights[group])
    np.testing.assert_allclose(problem.train(sums, alpha)[0], [*fitted.coef_, fitted.intercept_], rtol=1e-9)


def test_errors_are_exact(sums):
    classifiers = problem.train(sums, Ball(2, 1.0).sample(np.random.default_rng(0), 5))
    exact = problem.worst_group(problem.mean_losses(classifiers))
    np.testing.assert_allclose(problem.validated(classifiers, 2_000_000, 0, 0), exact, atol=0.003)


def test_the_metric_on_rows_counts_wrong_decisions(sums):
    classifiers = problem.train(sums, Ball(1, 1.0).sample(np.random.default_rng(0), 3))
    n_rows, seed, number = 60, 5, 2
    rng = problem.generator(seed, f"bound validation {n_rows}", number)
    rows = problem.draw_rows(rng, rng.multinomial(n_rows, np.full(4, 0.25)))
    for theta, found in zip(classifiers, problem.validated(classifiers, n_rows, seed, number), strict=True):
        wrong = [
            sum(1 for x in X if label * (x @ theta) <= 0)
            for X, label in zip(rows, problem.GROUPS[:, 0], strict=True)
        ]
        assert found == pytest.approx(-4 * max(wrong) / n_rows)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_gradients_are_those_of_differences(sums, d):
    alpha, step = Ball(d, 1.0).sample(np.random.default_rng(d), 1), 1e-5
    moved = np.concatenate([alpha + sign * step * np.eye(d)[i] for i in range(d) for sign in (1, -1)])
    losses = problem.mean_losses(problem.train(sums, moved)).reshape(d, 2, 4)
    gradients = (losses[:, 0] - losses[:, 1]) / (2 * step)
    assert problem.steepness(sums, alpha) == pytest.approx(np.linalg.norm(gradients, axis=0).max(), rel=1e-5)


def test_weights_matter_in_this_problem(sums):
    points = Ball(3, 1.0).sample(np.random.default_rng(0), 3000)
    best = [
        problem.worst_group(problem.mean_losses(problem.train(sums, points[:, :d]))).max() for d in (1, 3)
    ]
    uniform = problem.worst_group(problem.mean_losses(problem.train(sums, np.zeros((1, 1)))))[0]
    assert uniform + 0.03 < best[0] and best[0] + 0.03 < best[1]


def test_a_small_version(tmp_path):
    options = Options(4, out=tmp_path)
    this = Run("bound", options)
    theorems, found = bound.measure_all(this, (1, 2), (50, 200))
    text = bound.report(this, theorems, found)
    assert "say anything" in text
    for (d, n), values in bound.gaps(found).items():
        assert (values["regret"] >= 0).all()
        assert (values["gap"] <= values["largest gap"] + 1e-9).all()
        # The theorem holds: with probability 0.95, and much more often where it is as loose as here.
        assert values["regret"].max() <= 100 * theorems[d].bound(n)
        assert values["largest gap"].max() <= 100 * theorems[d].deviation(n)
    with (tmp_path / "bound" / "bound.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 4 * 4
    assert (tmp_path / "bound" / "bound.png").stat().st_size > 10_000
    again = bound.measure_all(Run("bound", options), (1, 2), (50, 200))[1]
    np.testing.assert_array_equal(again[2, 200].alphas, found[2, 200].alphas)


@pytest.mark.heavy
def test_numbers_do_not_depend_on_the_number_of_processes(sums):
    theorem = Theorem2(2, 4, 0.5, 4.0, 0.1)
    one, two = (bound.measure(Options(3, n_jobs=n), theorem, sums, 100) for n in (1, 2))
    for name, values in one.scores.items():
        np.testing.assert_array_equal(values, two.scores[name])
