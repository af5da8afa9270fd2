"""The Gaussian process against scikit-learn's."""

import warnings

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from threadpoolctl import threadpool_limits

from moew.samplers import Ball, Box
from moew.samplers._gaussian_process import (
    Kernel,
    Posterior,
    fit_kernel,
    log_marginal_likelihood,
    squared_distances,
)
from moew.samplers._gp_bucb import Pool, climb

KERNELS = [Kernel(1.3, 0.7, 0.05), Kernel(0.4, 2.5, 0.3), Kernel(6.0, 0.3, 1e-4)]


@pytest.fixture(autouse=True)
def _one_thread():
    # Small matrices on a busy machine: threads would only wait for each other.
    with threadpool_limits(1, user_api="blas"):
        yield


def problem(n: int, n_dims: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    points = Ball(n_dims, 1.0).sample(rng, n)
    targets = np.sin(3 * points[:, 0]) + points.sum(axis=1) + 0.2 * rng.standard_normal(n)
    return points, (targets - targets.mean()) / targets.std()


def scikit_learn(kernel: Kernel, points, targets):
    parts = ConstantKernel(kernel.amplitude**2) * RBF(kernel.width)
    return GaussianProcessRegressor(parts, alpha=kernel.noise, optimizer=None).fit(points, targets)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n_dims", [1, 4, 30])
def test_posterior_is_scikit_learns(kernel, n_dims):
    points, targets = problem(40, n_dims)
    new = Ball(n_dims, 1.5).sample(np.random.default_rng(1), 25)
    mean, sd = Posterior.given(kernel, points, targets).predict(new)
    expected_mean, expected_sd = scikit_learn(kernel, points, targets).predict(new, return_std=True)
    np.testing.assert_allclose(mean, expected_mean, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(sd, expected_sd, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kernel", KERNELS)
def test_likelihood_and_gradient_are_scikit_learns(kernel):
    points, targets = problem(40, 3)
    value, gradient = log_marginal_likelihood(squared_distances(points, points), targets, kernel)
    parts = ConstantKernel(kernel.amplitude**2) * RBF(kernel.width) + WhiteKernel(kernel.noise)
    model = GaussianProcessRegressor(parts, alpha=0.0, optimizer=None).fit(points, targets)
    expected, slopes = model.log_marginal_likelihood(parts.theta, eval_gradient=True)
    assert value == pytest.approx(expected, rel=1e-8)
    # scikit-learn's first parameter is the logarithm of amplitude²: half the slope.
    np.testing.assert_allclose(gradient, slopes * [2, 1, 1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("n_dims", [1, 4, 10])
@pytest.mark.parametrize("fixed", ["nothing", "width", "noise", "both"])
def test_fit_is_as_likely_as_scikit_learns(n_dims, fixed):
    points, targets = problem(50, n_dims, seed=n_dims)
    width = (1.0, 1.0) if fixed in ("width", "both") else (0.05, 20.0)
    noise = (0.1, 0.1) if fixed in ("noise", "both") else (1e-6, 2.0)
    ours = fit_kernel(points, targets, amplitude=(0.1, 100.0), width=width, noise=noise)
    value, _ = log_marginal_likelihood(squared_distances(points, points), targets, ours)
    parts = ConstantKernel(1.0, (0.01, 1e4)) * RBF(1.0, "fixed" if width[0] == width[1] else width)
    parts += WhiteKernel(0.1, "fixed" if noise[0] == noise[1] else noise)
    model = GaussianProcessRegressor(parts, alpha=0.0, n_restarts_optimizer=2, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a parameter at its bound
        expected = model.fit(points, targets).log_marginal_likelihood_value_
    assert value >= expected - 1e-3
    assert width[0] * (1 - 1e-9) <= ours.width <= width[1] * (1 + 1e-9)
    assert noise[0] * (1 - 1e-9) <= ours.noise <= noise[1] * (1 + 1e-9)


def test_fit_to_many_observations_is_close_to_the_best():
    points, targets = problem(400, 3)
    distances = squared_distances(points, points)
    bounds = {"amplitude": (0.1, 100.0), "width": (0.05, 20.0), "noise": (1e-6, 2.0)}
    found = fit_kernel(points, targets, **bounds)
    value, _ = log_marginal_likelihood(distances, targets, found)
    for factor in (0.7, 1.4):
        for name in ("amplitude", "width", "noise"):
            other = Kernel(**{**vars(found), name: factor * getattr(found, name)})
            assert log_marginal_likelihood(distances, targets, other)[0] < value


@pytest.mark.parametrize("z", [0.0, 1.0, 3.0])
def test_upper_bound_and_its_gradient(z):
    points, targets = problem(30, 3)
    g = Posterior.given(KERNELS[0], points, targets)
    new = Ball(3, 1.0).sample(np.random.default_rng(1), 6)
    values, gradients = g.upper_bound(new, z)
    mean, sd = g.predict(new)
    np.testing.assert_allclose(values, mean + z * sd, rtol=1e-12)
    for point, gradient in zip(new, gradients, strict=True):
        numeric = approx_fprime(point, lambda p: g.upper_bound(p[None], z)[0][0], 1e-7)
        np.testing.assert_allclose(gradient, numeric, rtol=1e-4, atol=1e-5)


def test_one_observation_at_a_time_is_a_fit_from_scratch():
    kernel = KERNELS[0]
    points, targets = problem(30, 4)
    more = Ball(4, 1.0).sample(np.random.default_rng(1), 12)
    more[3] = points[0]  # a duplicate
    new = Ball(4, 1.0).sample(np.random.default_rng(2), 50)
    g = Posterior.given(kernel, points, targets)
    pool = Pool(new, g, n_more=len(more))
    for point in more:
        model = scikit_learn(kernel, points, targets)
        mean, sd = model.predict(point[None], return_std=True)
        points, targets = np.vstack([points, point]), np.append(targets, mean - 1.5 * sd)
        g = g.extended(point, -1.5)
        pool.follow(g)
    expected_mean, expected_sd = scikit_learn(kernel, points, targets).predict(new, return_std=True)
    mean, sd = g.predict(new)
    np.testing.assert_allclose(mean, expected_mean, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(sd, expected_sd, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(pool.upper_bound(2.0), mean + 2 * sd, rtol=1e-8)


def test_many_duplicates_and_almost_no_noise_can_be_factorized():
    points = np.repeat(Ball(2, 1.0).sample(np.random.default_rng(0), 5), 40, axis=0)
    g = Posterior.given(Kernel(100.0, 20.0, 1e-12), points, np.ones(len(points)))
    mean, sd = g.predict(points[::40])
    np.testing.assert_allclose(mean, 1.0, atol=1e-2)
    assert np.isfinite(sd).all()


@pytest.mark.parametrize("domain", [Ball(5, 2.0), Box(5, 2.0)])
def test_climb_finds_the_constrained_top_of_a_quadratic(domain):
    top = np.array([3.0, -0.5, 0.2, 0.0, 1.0])

    def bound(points):
        return -0.5 * ((points - top) ** 2).sum(axis=1), top - points

    points, values = climb(bound, domain.sample(np.random.default_rng(0), 4), domain, n_steps=50)
    # With equal curvature everywhere the constrained top is the projection of the free one.
    np.testing.assert_allclose(points[values.argmax()], domain.project(top[None])[0], atol=1e-3)
