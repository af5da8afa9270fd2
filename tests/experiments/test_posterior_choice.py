"""The choice by the posterior mean of the search's Gaussian process."""

import numpy as np
import pytest

from experiments._posterior_choice import best_by_posterior_mean
from moew.samplers import Ball, GpBucb

TOP = np.array([0.4, -0.2])


def noisy_search(seed, n=120, noise=0.3):
    """Alphas, scores with much noise, and what the scores would be without it."""
    rng = np.random.default_rng(seed)
    alphas = Ball(2, 1.0).sample(rng, n)
    truth = -((alphas - TOP) ** 2).sum(axis=1)
    return alphas, truth + noise * rng.standard_normal(n), truth


@pytest.mark.parametrize("sampler", [GpBucb(), GpBucb(width="domain", noise=0.09)])
def test_it_sees_through_noise(sampler):
    by_score, by_mean, at_argmax = [], [], []
    for seed in range(10):
        alphas, scores, truth = noisy_search(seed)
        rng = np.random.default_rng(seed)
        best, argmax = best_by_posterior_mean(sampler, alphas, scores, Ball(2, 1.0), rng)
        by_score.append(truth[scores.argmax()])
        by_mean.append(truth[best])
        at_argmax.append(-((argmax - TOP) ** 2).sum())
    assert np.mean(by_mean) > np.mean(by_score) / 2  # half the loss, or less
    assert np.mean(at_argmax) > np.mean(by_score) / 2


def test_without_noise_it_is_the_best_and_the_argmax_is_higher():
    alphas, _, truth = noisy_search(0)
    sampler = GpBucb(width="domain", noise=1e-8)
    best, argmax = best_by_posterior_mean(sampler, alphas, truth, Ball(2, 1.0), np.random.default_rng(0))
    assert best == truth.argmax()
    assert -((argmax - TOP) ** 2).sum() > truth.max()
    assert np.linalg.norm(argmax) <= 1


def test_a_failed_candidate_is_never_chosen():
    alphas, scores, truth = noisy_search(1, noise=0.0)
    scores[truth.argmax()] = np.nan
    best, argmax = best_by_posterior_mean(GpBucb(), alphas, scores, Ball(2, 1.0), np.random.default_rng(0))
    assert best != truth.argmax() and np.isfinite(argmax).all()
