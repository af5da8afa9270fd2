"""The comparison of samplers, on two small functions; its variants against numerical oracles."""

import numpy as np
import pytest
from benchmark_modules import importable
from scipy.integrate import trapezoid
from scipy.optimize import approx_fprime
from scipy.stats import norm

from moew.samplers import Ball
from moew.samplers._gaussian_process import Posterior

with importable():
    import sampler_functions
    import samplers
    import tried_samplers
    from recorded_searches import TABLE, Recorded


@pytest.fixture
def posterior():
    rng = np.random.default_rng(0)
    points = Ball(3, 2.0).sample(rng, 12)
    kernel = tried_samplers.Matern(1.3, np.array([0.7, 1.5, 3.0]), 0.01)
    return Posterior.given(kernel, points, np.sin(points.sum(axis=1)))


def test_gradients_are_those_of_finite_differences(posterior):
    for point in Ball(3, 2.0).sample(np.random.default_rng(1), 5):
        _, _, of_mean, of_sd = tried_samplers._with_gradients(posterior, point[None])
        _, of_improvement = tried_samplers._log_expected_improvement(posterior, point[None], -0.5)
        for gradient, value in (
            (of_mean, lambda x: tried_samplers._with_gradients(posterior, x[None])[0][0]),
            (of_sd, lambda x: tried_samplers._with_gradients(posterior, x[None])[1][0]),
            (
                of_improvement,
                lambda x: tried_samplers._log_expected_improvement(posterior, x[None], -0.5)[0][0],
            ),
        ):
            np.testing.assert_allclose(gradient[0], approx_fprime(point, value, 1e-6), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("best", [-1.0, 0.9, 3.0])
def test_expected_improvement_is_the_mean_of_what_is_above_the_best(posterior, best):
    points = Ball(3, 2.0).sample(np.random.default_rng(2), 4)
    mean, sd = posterior.predict(points)
    steps = np.linspace(0, 12, 200_001)
    expected = [
        trapezoid(u * norm.pdf(best + u, m, s), u) for m, s in zip(mean, sd, strict=True) for u in [steps]
    ]
    found = np.exp(tried_samplers._log_expected_improvement(posterior, points, best)[0])
    np.testing.assert_allclose(found, expected, rtol=0.1, atol=1e-9)


def test_a_trust_region_keeps_points_near_and_inside():
    ball = Ball(4, 1.0)
    region = tried_samplers.TrustRegion(ball, np.array([0.9, 0, 0, 0]), 0.3)
    points = region.sample(np.random.default_rng(0), 200)
    assert np.linalg.norm(points, axis=1).max() <= 1 + 1e-9
    assert np.linalg.norm(points - region.centre, axis=1).max() <= 0.3 + 1e-6


def test_the_highest_values_of_synthetic_functions_are_the_stated_ones():
    d = 4
    rows = sampler_functions._directions(d)
    tops = {
        sampler_functions.hill: (rows.T @ np.full(d, 0.5 / np.sqrt(d)), 1.0),
        sampler_functions.worst: (sampler_functions._centre(d), 0.0),
        sampler_functions.ripples: (0.6 * rows[0] + 0.3 * rows[-1], 0.15),
    }
    anywhere = Ball(d, 1.0).sample(np.random.default_rng(0), 20_000)
    for function, (top, highest) in tops.items():
        assert np.linalg.norm(top) <= 1
        assert function(top[None])[0] == pytest.approx(highest, abs=1e-9)
        assert function(anywhere).max() <= highest + 1e-9


def test_a_recorded_function_goes_near_the_recorded_scores():
    this = Recorded.of("credit-f1")
    with np.load(TABLE) as table:
        alphas, scores = table["credit-f1 alphas"].astype(float), table["credit-f1 scores"].astype(float)
    targets = (scores - scores.mean()) / scores.std()
    assert np.corrcoef(this(alphas), targets)[0, 1] > 0.99


def test_a_search_of_each_kind_and_its_table(monkeypatch, tmp_path):
    d = 2
    small = sampler_functions.Function("hill d=2", d, 1.0, 0.01, sampler_functions.hill, 1.0)
    monkeypatch.setattr(samplers, "functions", lambda: {small.name: small})
    monkeypatch.setattr(samplers, "N_TRIALS", 60)
    monkeypatch.setattr(samplers, "FIELDS", samplers.FIELDS[:7])
    path = tmp_path / "curves.csv"
    assert samplers.start_file(path) == set()
    for name in ("random", samplers.PAPER, samplers.DEFAULT, "Matérn, noisy EI", "grid"):
        for repeat in range(2):
            samplers.run_one(small.name, name, repeat, path)
    assert (small.name, samplers.DEFAULT + samplers.BY_MEAN, 1) in samplers.start_file(path)
    lines = samplers.read(path)
    best = {line["sampler"]: float(line["after 60"]) for line in lines}
    assert best["Matérn, noisy EI"] > 0.95 and best[samplers.DEFAULT] > 0.95
    starts = {line["after 20"] for line in lines if line["repeat"] == "0" and line["sampler"] != "grid"}
    assert len(starts - {line["after 20"] for line in lines if "by mean" in line["sampler"]}) <= 1


@pytest.mark.parametrize(("level", "trials"), [(0.0, 20), (0.5, 30), (1.0, 40), (1.5, np.inf)])
def test_trials_to_reach_a_level(level, trials):
    assert samplers.trials_to_reach(np.array([0.0, 1.0, 0.7]), level) == pytest.approx(trials)
