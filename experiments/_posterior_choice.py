"""Choose a candidate by the posterior mean of the search's Gaussian process.

A remark in the source of the paper, which was not printed, proposes it for small validation sets: the best
validation value is partly luck, and the posterior mean of a Gaussian process averages over the candidates
nearby. Two choices: the best of the trained candidates by the mean, and the argmax of the mean over the ball,
with which one more model is trained.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from joblib import Parallel, delayed

from experiments._searches import Arm, Judge, Problem, Seen, check_mark, train_candidates
from moew._util.seeds import generator
from moew._util.threads import one_blas_thread
from moew.exceptions import InvalidInputError
from moew.samplers import Ball, GpBucb
from moew.samplers._gp_bucb import Argmax
from moew.search._honest_score import select_best
from moew.types import Domain, FloatArray

BEST_TRIAL, ARGMAX = "best trial by posterior mean", "argmax of posterior mean"
BY_VALIDATION = " by validation"
"""Ends the names of the scores of the candidate that the same search chooses by validation."""


@one_blas_thread()
def best_by_posterior_mean(
    sampler: GpBucb, alphas: FloatArray, scores: FloatArray, domain: Domain, rng: np.random.Generator
) -> tuple[int, FloatArray]:
    """The number of the best of alphas (n, d) by the posterior mean of the sampler's model, and the alpha
    (d,) at which the mean is highest in the domain (a thousandth of its size or more from all known ones).

    Of scores (n,) higher ones are better. A failed candidate (NaN) counts as the worst in the model, and
    cannot be the best.
    """
    g = sampler.model(alphas, scores, domain)
    finite = np.isfinite(scores)
    best = select_best(np.where(finite, g.predict(alphas)[0], np.nan), True)
    filled = np.where(finite, scores, scores[finite].min())
    return best, Argmax(g, 0.0, alphas, filled, domain, rng, n_more=0).find()


def choose_by_posterior_mean(
    problem: Problem, arm: Arm, judge: Judge, seen: Seen, *, batch: int, n_jobs: int = 1
) -> dict[str, Seen]:
    """BEST_TRIAL and ARGMAX of a finished search of the arm, one candidate for each repeat.

    For ARGMAX a model is trained for each repeat, in a batch of that number. Beside the scores of both stand
    those of the candidate with the best validation value (BY_VALIDATION).
    """
    check_mark(seen, arm)
    sign = 1.0 if judge.greater_is_better else -1.0
    scores = sign * seen.scores["validation"]
    samplers = [_with_gaussian_process(arm, repeat) for repeat in range(len(scores))]
    domain = Ball(seen.alphas.shape[2], arm.radius)
    found = Parallel(n_jobs=n_jobs)(
        delayed(best_by_posterior_mean)(
            sampler, seen.alphas[r], scores[r], domain, generator(arm.seed, "posterior mean", r)
        )
        for r, sampler in enumerate(samplers)
    )
    trials, alphas = zip(*found, strict=True)
    chosen = {
        BEST_TRIAL: seen.only(np.array(trials)),
        ARGMAX: train_candidates(problem, arm, judge, np.stack(alphas)[:, None], batch, n_jobs),
    }
    usual = seen.only(seen.best(judge.greater_is_better)).scores
    beside = {f"{name}{BY_VALIDATION}": values for name, values in usual.items() if name != "validation"}
    return {name: replace(one, scores=one.scores | beside) for name, one in chosen.items()}


def _with_gaussian_process(arm: Arm, repeat: int) -> GpBucb:
    sampler = arm.sampler(repeat)
    if not isinstance(sampler, GpBucb):
        raise InvalidInputError("only a search by GP-BUCB has a posterior mean.", argument="sampler")
    return sampler
