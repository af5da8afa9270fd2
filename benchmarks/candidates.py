"""A batch of 20 candidates at 180 observations in 10 dimensions, against the authors' way.

    python benchmarks/candidates.py [--through search|study] [--noise fit|given] [--repeats 5] [--threads 1]
    python benchmarks/candidates.py --widths [--seeds 10]

The authors' way: for each pick, scikit-learn's GaussianProcessRegressor is fitted anew (constant × RBF, no
restarts, noise given), predicts 10,000 random points of the ball, and the best one joins as a pretended
observation. Both sides take turns. Then the picks of both are scored by the upper bound under one posterior,
each step given the same earlier picks: once the earlier picks of ours, once those of theirs.

`--widths` compares the settings of the kernel's width on functions whose best value is known.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
import warnings
from collections.abc import Callable
from typing import Literal

import numpy as np
import scipy
import sklearn
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from threadpoolctl import threadpool_limits

from moew.samplers import Ball, GpBucb, RandomSampler
from moew.types import FloatArray, Sampler

N_KNOWN, N_DIMS, N_PICKS, N_POINTS = 180, 10, 20, 10_000
NOISE_SD = 0.1
Ask = Callable[[], FloatArray]


def quadratic(alphas: FloatArray, ball: Ball, seed: int) -> FloatArray:
    """Noisy scores (n,) of alphas (n, d): a bowl whose top is anywhere in the ball."""
    rng = np.random.default_rng([seed, 1])  # not the stream that drew the alphas
    top = ball.sample(rng, 1)
    return np.asarray(-((alphas - top) ** 2).sum(axis=1) + NOISE_SD * rng.standard_normal(len(alphas)))


def through_search(seed: int, search: GpBucb) -> tuple[FloatArray, FloatArray, Ball, Ask]:
    """180 observations, the ball, and what asks our search for the batch."""
    ball = Ball(N_DIMS, 1.0)
    rng = np.random.default_rng(seed)
    alphas = ball.sample(rng, N_KNOWN)
    scores = quadratic(alphas, ball, seed)

    def ask() -> FloatArray:
        return search.propose(alphas, scores, pending=alphas[:0], k=N_PICKS, domain=ball, rng=rng)

    return alphas, scores, ball, ask


def through_study(seed: int, search: GpBucb) -> tuple[FloatArray, FloatArray, Ball, Ask]:
    """The same through a study in memory: its baseline and 179 random candidates are told before."""
    from moew import WeightStudy  # loads Optuna

    ball = Ball(N_DIMS, 1.0)
    study = WeightStudy(None, ball, sampler=search, n_initial=N_KNOWN - 1, seed=seed)
    candidates = study.ask(N_KNOWN)
    alphas = np.array([candidate.alpha for candidate in candidates])
    scores = quadratic(alphas, ball, seed)
    for candidate, score in zip(candidates, scores, strict=True):
        study.tell(candidate.number, float(score))

    def ask() -> FloatArray:
        return np.array([candidate.alpha for candidate in study.ask(N_PICKS)])

    return alphas, scores, ball, ask


def authors_way(alphas: FloatArray, scores: FloatArray, ball: Ball, rng: np.random.Generator) -> FloatArray:
    """Their batch: refit and pick among random points, once for each candidate."""
    # Standardised with the true noise, so that both sides look for the same thing.
    offset, scale = scores.mean(), scores.std()
    points, targets = alphas, (scores - offset) / scale
    for _ in range(N_PICKS):
        model = GaussianProcessRegressor(ConstantKernel() * RBF(ball.size), alpha=(NOISE_SD / scale) ** 2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # a width at its bound
            model.fit(points, targets)
        pool = ball.sample(rng, N_POINTS)
        mean, sd = model.predict(pool, return_std=True)
        best = int(np.argmax(mean + sd))
        points = np.vstack([points, pool[best]])
        targets = np.append(targets, mean[best] - sd[best])
    return points[len(alphas) :]


def stepwise(
    alphas: FloatArray, scores: FloatArray, ball: Ball, earlier: FloatArray, picks: list[FloatArray]
) -> list[FloatArray]:
    """Upper bounds (k,) of each of the `picks` (k, d), step j given the first j − 1 of `earlier` (k, d).

    The posterior is scikit-learn's, with one kernel fitted to the real observations.
    """
    scale = scores.std()
    targets = (scores - scores.mean()) / scale
    model = GaussianProcessRegressor(ConstantKernel() * RBF(ball.size), alpha=(NOISE_SD / scale) ** 2)
    kernel = model.fit(alphas, targets).kernel_
    bounds: list[FloatArray] = [np.empty(len(earlier)) for _ in picks]
    points = alphas
    for j, point in enumerate(earlier):
        model = GaussianProcessRegressor(kernel, alpha=(NOISE_SD / scale) ** 2, optimizer=None)
        model.fit(points, targets)
        for side, bound in zip(picks, bounds, strict=True):
            mean, sd = model.predict(side[j : j + 1], return_std=True)
            bound[j] = mean[0] + sd[0]
        mean, sd = model.predict(point[None], return_std=True)
        points, targets = np.vstack([points, point]), np.append(targets, mean - sd)
    return bounds


def compare(
    make_problem: Callable[[int, GpBucb], tuple[FloatArray, FloatArray, Ball, Ask]],
    search: GpBucb,
    repeats: int,
) -> None:
    """Time both sides in turn and score their picks."""
    sides = ("ours", "theirs")
    seconds: dict[str, list[tuple[float, float]]] = {side: [] for side in sides}
    higher: dict[str, list[float]] = {side: [] for side in sides}
    difference: dict[str, list[float]] = {side: [] for side in sides}
    for seed in range(-1, repeats):  # the first round only warms up
        alphas, scores, ball, ask = make_problem(max(seed, 0), search)
        start = time.perf_counter(), time.process_time()
        ours = ask()
        middle = time.perf_counter(), time.process_time()
        theirs = authors_way(alphas, scores, ball, np.random.default_rng(seed + 1))
        end = time.perf_counter(), time.process_time()
        if seed < 0:
            continue
        seconds["ours"].append((middle[0] - start[0], middle[1] - start[1]))
        seconds["theirs"].append((end[0] - middle[0], end[1] - middle[1]))
        for side, earlier in (("ours", ours), ("theirs", theirs)):
            own, other = stepwise(alphas, scores, ball, earlier, [ours, theirs])
            higher[side].append(float(np.mean(own >= other)))
            difference[side].append(float(np.mean(own - other)))
    medians = {side: 1e3 * np.median(seconds[side], axis=0) for side in sides}
    print(f"{N_PICKS} candidates at {N_KNOWN} observations in {N_DIMS} dimensions, median of {repeats}")
    print("                       elapsed   processor")
    print("  ours                {:8.1f} ms {:8.1f} ms".format(*medians["ours"]))
    print("  scikit-learn, refit {:8.1f} ms {:8.1f} ms".format(*medians["theirs"]))
    print("  times faster        {:8.1f}    {:8.1f}".format(*(medians["theirs"] / medians["ours"])))
    print("upper bound of each pick under one posterior (in standard deviations of the scores)")
    for name in sides:
        print(
            f"  given {name:6s} earlier picks: ours at least as high in {100 * np.mean(higher[name]):5.1f} % "
            f"of the steps, mean difference {np.mean(difference[name]):+.4f}"
        )


def _bowl(n_dims: int, rng: np.random.Generator) -> Callable[[FloatArray], FloatArray]:
    top = Ball(n_dims, 1.0).sample(rng, 1)
    return lambda points: -((points - top) ** 2).sum(axis=1)


def _worst_of(n_dims: int, rng: np.random.Generator) -> Callable[[FloatArray], FloatArray]:
    slopes = rng.standard_normal((n_dims + 1, n_dims)) / np.sqrt(n_dims)
    offsets = 0.3 * rng.standard_normal(n_dims + 1)
    return lambda points: np.min(points @ slopes.T + offsets, axis=1)


def _bumps(n_dims: int, rng: np.random.Generator) -> Callable[[FloatArray], FloatArray]:
    centres, heights = Ball(n_dims, 1.0).sample(rng, 8), rng.random(8)
    return lambda points: (
        np.exp(-((points[:, None] - centres) ** 2).sum(axis=2) / (2 * 0.4**2)) * heights
    ).sum(axis=1)


def _valley(n_dims: int, rng: np.random.Generator) -> Callable[[FloatArray], FloatArray]:
    top = Ball(n_dims, 0.8).sample(rng, 1)
    rotation = np.linalg.qr(rng.standard_normal((n_dims, n_dims)))[0] * np.geomspace(0.2, 3, n_dims)
    return lambda points: -np.sqrt((((points - top) @ rotation) ** 2).sum(axis=1) + 0.01)


FUNCTIONS = {"bowl": _bowl, "worst of": _worst_of, "bumps": _bumps, "valley": _valley}


def chosen_value(
    search: Sampler, function: Callable[[FloatArray], FloatArray], noise_sd: float, n_dims: int, seed: int
) -> float:
    """The true value of the alpha with the best noisy score, after 10 batches of 20."""
    rng = np.random.default_rng(seed)
    ball = Ball(n_dims, 1.0)
    alphas = ball.sample(rng, N_PICKS)
    scores = function(alphas) + noise_sd * rng.standard_normal(N_PICKS)
    for _ in range(9):
        more = search.propose(alphas, scores, pending=alphas[:0], k=N_PICKS, domain=ball, rng=rng)
        alphas = np.vstack([alphas, more])
        scores = np.append(scores, function(more) + noise_sd * rng.standard_normal(N_PICKS))
    return float(function(alphas[[np.argmax(scores)]])[0])


def compare_widths(seeds: int) -> None:
    """True value of the chosen alpha, in standard deviations of the function above its mean in the ball."""
    searches: dict[str, Sampler] = {
        "random": RandomSampler(),
        "domain": GpBucb(width="domain"),
        "fit": GpBucb(width="fit"),
    }
    print("function     dims " + "".join(f"{name:>18s}" for name in searches) + "   fit above domain")
    for n_dims in (2, 4, 10, 20):
        for name, make in FUNCTIONS.items():
            values: dict[str, list[float]] = {search: [] for search in searches}
            for seed in range(seeds):
                function = make(n_dims, np.random.default_rng([seed, 1]))
                sample = function(Ball(n_dims, 1.0).sample(np.random.default_rng([seed, 2]), 20_000))
                for key, search in searches.items():
                    value = chosen_value(search, function, 0.2 * sample.std(), n_dims, seed)
                    values[key].append((value - sample.mean()) / sample.std())
            columns = "".join(
                f"{np.mean(v):10.3f} ± {1.96 * np.std(v, ddof=1) / np.sqrt(seeds):5.3f}"
                for v in values.values()
            )
            wins = sum(f > d for f, d in zip(values["fit"], values["domain"], strict=True))
            print(f"{name:12s} {n_dims:4d} {columns}   {wins} of {seeds}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--through", choices=("search", "study"), default="search")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--noise", choices=("fit", "given"), default="fit", help="ours; theirs is given it")
    parser.add_argument("--threads", type=int, default=1, help="of BLAS, for both sides")
    parser.add_argument("--widths", action="store_true")
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    print(
        f"Python {platform.python_version()}, NumPy {np.__version__}, SciPy {scipy.__version__}, "
        f"scikit-learn {sklearn.__version__}, {os.cpu_count()} cores"
    )
    with threadpool_limits(options.threads, user_api="blas"):
        if options.widths:
            compare_widths(options.seeds)
        else:
            through = {"search": through_search, "study": through_study}[options.through]
            noise: float | Literal["fit"] = NOISE_SD**2 if options.noise == "given" else "fit"
            print(f"through {options.through}, our noise {options.noise}, {options.threads} BLAS threads")
            compare(through, GpBucb(noise=noise), options.repeats)


if __name__ == "__main__":
    main()
