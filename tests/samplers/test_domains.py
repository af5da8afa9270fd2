import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from moew.exceptions import InvalidInputError
from moew.samplers import Ball, Box, GpBucb

DOMAINS = [Ball(1, 0.5), Ball(3, 2.0), Ball(10, 5.0), Box(1, 0.5), Box(3, 2.0), Box(10, 5.0)]


def inside(domain, points):
    norm = np.linalg.norm(points, axis=1) if isinstance(domain, Ball) else np.abs(points).max(axis=1)
    return norm <= domain.size * (1 + 1e-12)


@pytest.mark.parametrize("domain", DOMAINS, ids=str)
def test_samples_lie_inside_and_reach_every_part(domain):
    points = domain.sample(np.random.default_rng(0), 4000)
    assert points.shape == (4000, domain.n_dims)
    assert inside(domain, points).all()
    assert np.abs(points.mean(axis=0)).max() < 0.1 * domain.size
    # Uniform: the share within half the size is 2^-d.
    if domain.n_dims <= 3:
        within_half = inside(type(domain)(domain.n_dims, domain.size / 2), points).mean()
        assert within_half == pytest.approx(0.5**domain.n_dims, abs=0.03)


@pytest.mark.parametrize("domain", [Ball(3, 1.5), Box(3, 1.5)], ids=str)
def test_projection_is_the_nearest_point(domain):
    rng = np.random.default_rng(1)
    for point in rng.normal(0, 3, (8, 3)):
        projected = domain.project(point[None])[0]
        if isinstance(domain, Ball):
            limits = {"constraints": {"type": "ineq", "fun": lambda p: 1.5**2 - p @ p}}
        else:
            limits = {"bounds": [(-1.5, 1.5)] * 3}
        oracle = minimize(
            lambda p, target=point: ((p - target) ** 2).sum(),
            np.full(3, 0.1),
            method="SLSQP",
            tol=1e-12,
            **limits,
        )
        np.testing.assert_allclose(projected, oracle.x, atol=1e-4)


@pytest.mark.parametrize("domain", DOMAINS, ids=str)
def test_projection_keeps_points_inside_and_brings_others_to_the_edge(domain):
    rng = np.random.default_rng(2)
    within = domain.sample(rng, 50)
    np.testing.assert_allclose(domain.project(within), within, rtol=1e-15)
    outside = within / np.linalg.norm(within, axis=1, keepdims=True) * domain.size * 20
    projected = domain.project(outside)
    assert inside(domain, projected).all()
    np.testing.assert_allclose(domain.edge_distance(projected), 0, atol=1e-12)
    origin = np.zeros((1, domain.n_dims))
    assert np.array_equal(domain.project(origin), origin)
    assert domain.edge_distance(origin)[0] == 1.0


@given(st.integers(1, 6), st.floats(0.01, 100), st.integers(0, 1000))
def test_projecting_twice_is_projecting_once(n_dims, size, seed):
    points = np.random.default_rng(seed).normal(0, 2 * size, (5, n_dims))
    for domain in (Ball(n_dims, size), Box(n_dims, size)):
        once = domain.project(points)
        np.testing.assert_allclose(domain.project(once), once, rtol=1e-14)


def test_edge_distance_is_a_share_of_the_size():
    np.testing.assert_allclose(Ball(2, 5.0).edge_distance(np.array([[3.0, 0], [3, 4], [0, 0]])), [0.4, 0, 1])
    np.testing.assert_allclose(Box(2, 5.0).edge_distance(np.array([[3.0, -4], [5, 0], [0, 0]])), [0.2, 0, 1])


@pytest.mark.parametrize("kind", [Ball, Box])
def test_bad_domains_are_refused(kind):
    with pytest.raises(InvalidInputError, match="n_dims=0"):
        kind(0, 1.0)
    for size in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(InvalidInputError, match="positive"):
            kind(2, size)


@pytest.mark.parametrize("odd", [None, "2", 1.5, True, 1j, math.nan, [2], 10**400, 1e-200])
def test_dimensions_and_sizes_of_other_types_are_refused(odd):
    for kind in (Ball, Box):
        if odd not in (1.5,):
            with pytest.raises(InvalidInputError, match="must be a positive number"):
                kind(2, odd)
        if odd != 10**400:
            with pytest.raises(InvalidInputError, match="at least one dimension, as a whole number"):
                kind(odd, 1.0)


@pytest.mark.parametrize("odd", [None, "x", -1, math.nan, [2], 1j])
def test_settings_of_samplers_of_other_types_are_refused(odd):
    kinds = {
        GpBucb: ("p", "q", "width", "noise", "targets", "noise_floor"),
    }
    for kind, names in kinds.items():
        for name in names:
            with pytest.raises(InvalidInputError, match=f"{name} "):
                kind(**{name: odd})
