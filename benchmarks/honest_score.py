"""How far the honest score is from the truth on simulated searches: the table of docs/honest-score.md.

Two hundred real models (linear scorers with perturbed coefficients) stand for the candidates of a search; a
population of 40,000 rows knows the true metric of each. Every repeat draws validation rows, lets the best
candidate win on them, and compares four scores of the winner with its true metric.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # one process per core does the work

import math
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Protocol

import numpy as np
from moew.search._selection import honest_score, select_best, stratified_halves

N_POPULATION, N_CANDIDATES, N_WORLDS = 40_000, 200, 8
SIZES = (50, 200, 1000)
REGIMES = ("nearly equal", "real spread")
Table = Callable[[np.ndarray, np.ndarray], np.ndarray]  # (rows, fit_rows) → metric of every candidate


def perturbed(best: np.ndarray, regime: str, rng: np.random.Generator) -> np.ndarray:
    """Candidates (K, *best.shape) around `best`, all equally far from it or some far and some near."""
    equal = 0.25 if best.ndim == 1 else 0.1
    distance = np.full(N_CANDIDATES, equal) if regime == REGIMES[0] else rng.uniform(0, 1.2, N_CANDIDATES)
    noise = rng.standard_normal((N_CANDIDATES, *best.shape))
    return np.asarray(best + np.sqrt(np.mean(best**2)) * distance.reshape(-1, *[1] * best.ndim) * noise)


def features(rng: np.random.Generator) -> np.ndarray:
    return np.column_stack([rng.standard_normal((N_POPULATION, 8)), np.ones(N_POPULATION)])


def softmax_regression(X: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Coefficients (p, classes) of a softmax regression on 3,000 rows, by gradient descent."""
    X, targets = X[:3000], targets[:3000]
    coefficients = np.zeros((X.shape[1], targets.shape[1]))
    for _ in range(200):
        logits = X @ coefficients
        proba = np.exp(logits - logits.max(1, keepdims=True))
        coefficients -= X.T @ (proba / proba.sum(1, keepdims=True) - targets) / len(X)
    return coefficients


def binary_scores(regime: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X, labels and the scores (K, population) of linear scorers for a boundary that is not linear."""
    X = features(rng)
    signal = 1.2 * X[:, 0] + X[:, 1] + 0.7 * X[:, 2] * X[:, 3] - 0.5 * X[:, 4] ** 2 - 0.3
    y = (rng.random(N_POPULATION) < 1 / (1 + np.exp(-1.5 * signal))).astype(int)
    coefficients = softmax_regression(X, np.eye(2)[y])
    return X, y, (perturbed(coefficients[:, 1] - coefficients[:, 0], regime, rng) @ X.T).astype(np.float32)


class World(Protocol):
    """A metric and its candidates: what they score on drawn rows, and on the whole population."""

    sign: int  # 1 where greater is better, else −1
    has_rule: bool  # whether `fit_rows` matter
    strata: np.ndarray

    def table(self, drawn: np.ndarray, /) -> Table: ...

    def truth(self, k: int, drawn: np.ndarray, /) -> float: ...


class Accuracy:
    sign, has_rule = 1, False

    def __init__(self, regime: str, rng: np.random.Generator) -> None:
        _, self.strata, scores = binary_scores(regime, rng)
        self.right = ((scores > 0) == (self.strata == 1)).astype(np.float32)

    def table(self, drawn: np.ndarray) -> Table:
        right = np.ascontiguousarray(self.right[:, drawn].T)
        return lambda rows, _fit: right[rows].mean(0)

    def truth(self, k: int, _drawn: np.ndarray) -> float:
        return float(self.right[k].mean())


class PrecisionAtRecall:
    sign, has_rule = 1, False

    def __init__(self, regime: str, rng: np.random.Generator) -> None:
        _, self.strata, self.scores = binary_scores(regime, rng)

    @staticmethod
    def precision(scores: np.ndarray, y: np.ndarray) -> np.ndarray:
        positive, negative = scores[:, y == 1], scores[:, y == 0]
        n_positive = positive.shape[1]
        if n_positive == 0:
            return np.full(len(scores), np.nan)
        needed = math.ceil(0.95 * n_positive - 1e-9)
        threshold = np.partition(positive, n_positive - needed, axis=1)[:, n_positive - needed]
        return np.asarray(needed / (needed + (negative >= threshold[:, None]).sum(1)))

    def table(self, drawn: np.ndarray) -> Table:
        scores, y = self.scores[:, drawn], self.strata[drawn]
        return lambda rows, _fit: self.precision(scores[:, rows], y[rows])

    def truth(self, k: int, _drawn: np.ndarray) -> float:
        return float(self.precision(self.scores[k : k + 1], self.strata)[0])


class WorstClassError:
    sign, has_rule, n_classes = -1, False, 6

    def __init__(self, regime: str, rng: np.random.Generator) -> None:
        X = features(rng)
        logits = X @ rng.standard_normal((9, self.n_classes)) * 0.8
        logits += 0.6 * X[:, :1] * X[:, 1:2] * rng.standard_normal(self.n_classes)
        logits += 0.6 * rng.gumbel(size=logits.shape)
        for _ in range(30):  # make the classes about equally frequent
            logits -= 0.3 * np.log(np.bincount(logits.argmax(1), minlength=self.n_classes) / len(X) + 0.01)
        self.strata = logits.argmax(1)
        members = np.eye(self.n_classes)[self.strata]
        models = perturbed(softmax_regression(X, members), regime, rng)
        self.loss = np.stack([(X @ model).argmax(1) != self.strata for model in models]).astype(np.float32)
        self.members = members.astype(np.float32)

    def table(self, drawn: np.ndarray) -> Table:
        loss, members = np.ascontiguousarray(self.loss[:, drawn].T), self.members[drawn]

        def worst(rows: np.ndarray, _fit: np.ndarray) -> np.ndarray:
            counts = members[rows].sum(0)
            if (counts == 0).any():
                return np.full(N_CANDIDATES, np.nan)
            return np.asarray(((members[rows].T @ loss[rows]) / counts[:, None]).max(0))

        return worst

    def truth(self, k: int, _drawn: np.ndarray) -> float:
        return float((self.loss[k] @ self.members / self.members.sum(0)).max())


class WorstBandError(WorstClassError):
    """Mean relative error of a price in its worst quartile."""

    def __init__(self, regime: str, rng: np.random.Generator) -> None:
        X = features(rng)
        log_price = X @ rng.standard_normal(9) * 0.2 + 0.1 * X[:, 0] * X[:, 1]
        price = np.exp(log_price + 0.35 * rng.standard_normal(len(X)))
        fit = np.linalg.lstsq(X, np.log(price), rcond=None)[0]
        models = fit + 0.6 * (perturbed(fit, regime, rng) - fit)
        models[:, -1] = fit[-1]
        self.loss = (np.abs(np.exp(models @ X.T) - price) / price).astype(np.float32)
        self.strata = np.searchsorted(np.quantile(price, [0.25, 0.5, 0.75]), price)
        self.members = np.eye(4, dtype=np.float32)[self.strata]


class GradeOfSelected:
    """Mean grade of the fifth with the highest scores; the threshold is fitted on validation rows."""

    sign, has_rule = 1, True

    def __init__(self, regime: str, rng: np.random.Generator) -> None:
        X, y, self.scores = binary_scores(regime, rng)
        self.grade = (y * rng.exponential(size=len(y)) + 0.2 * X[:, 0]).astype(np.float32)
        self.strata = np.searchsorted(np.quantile(self.grade, [0.25, 0.5, 0.75]), self.grade)

    @staticmethod
    def threshold(scores: np.ndarray) -> np.ndarray:
        place = scores.shape[1] - math.ceil(0.2 * scores.shape[1])
        return np.partition(scores, place, axis=1)[:, [place]]

    def table(self, drawn: np.ndarray) -> Table:
        scores, grade = self.scores[:, drawn], self.grade[drawn]

        def mean_grade(rows: np.ndarray, fit_rows: np.ndarray) -> np.ndarray:
            selected = (scores[:, rows] >= self.threshold(scores[:, fit_rows])).astype(np.float32)
            count = selected.sum(1)
            return np.where(count > 0, selected @ grade[rows] / np.maximum(count, 1), np.nan)

        return mean_grade

    def truth(self, k: int, drawn: np.ndarray) -> float:
        threshold = self.threshold(self.scores[k : k + 1, drawn])[0, 0]
        return float(self.grade[self.scores[k] >= threshold].mean())


class AccuracyAtFittedThreshold:
    """Accuracy at the most accurate threshold: a rule that is fitted on the labels of validation rows."""

    sign, has_rule = 1, True

    def __init__(self, regime: str, rng: np.random.Generator) -> None:
        _, self.strata, self.scores = binary_scores(regime, rng)

    def table(self, drawn: np.ndarray) -> Table:
        scores, sign_of_y = self.scores[:, drawn], 2 * self.strata[drawn] - 1
        order = np.argsort(-scores, axis=1)  # once, for every subset of rows
        ordered = np.take_along_axis(scores, order, axis=1)

        def thresholds(fit_rows: np.ndarray) -> np.ndarray:
            gain = (np.bincount(fit_rows, minlength=len(drawn)) * sign_of_y).astype(np.int32)
            last = np.cumsum(gain[order], axis=1).argmax(1)[:, None]  # the last row that is selected
            return np.take_along_axis(ordered, last, axis=1)

        def accuracy(rows: np.ndarray, fit_rows: np.ndarray) -> np.ndarray:
            selected = scores[:, rows] >= thresholds(fit_rows)
            return np.asarray((selected == (sign_of_y[rows] == 1)).mean(1))

        self.thresholds = thresholds  # of the rows drawn last, for `truth`
        return accuracy

    def truth(self, k: int, drawn: np.ndarray) -> float:
        threshold = self.thresholds(np.arange(len(drawn)))[k, 0]
        return float(((self.scores[k] >= threshold) == (self.strata == 1)).mean())


METRICS: dict[str, Callable[[str, np.random.Generator], World]] = {
    "accuracy": Accuracy,
    "precision at 95 % recall": PrecisionAtRecall,
    "worst of 6 class errors": WorstClassError,
    "worst-band relative error": WorstBandError,
    "grade of selected fifth": GradeOfSelected,
    "accuracy, fitted threshold": AccuracyAtFittedThreshold,
}


def half_recipe(table: Table, strata: np.ndarray, sign: int, n: int, rng: np.random.Generator) -> float:
    """The plain recipe's optimism: mean of M_A(k_A) − M_B(k_A) over halves, divided by √2."""
    drops: list[float] = []
    for _ in range(2 * n):
        pair = stratified_halves(strata, rng)
        for a, b in (pair, pair[::-1]):
            on_a = sign * table(a, a)
            if np.isfinite(on_a).any():
                k = int(np.nanargmax(on_a))
                drops.append(float(on_a[k] - sign * table(b, a)[k]))
        drops = [drop for drop in drops if math.isfinite(drop)]
        if len(drops) >= n:
            return float(np.mean(drops)) / math.sqrt(2)
    return math.nan


def out_of_bag(table: Table, strata: np.ndarray, sign: int, n: int, rng: np.random.Generator) -> float:
    """Mean score, on the rows left out, of the candidate that wins a stratified bootstrap sample."""
    members = [np.flatnonzero(strata == code) for code in np.unique(strata)]
    values = []
    for _ in range(n):
        rows = np.concatenate([rng.choice(group, len(group)) for group in members])
        inside = sign * table(rows, rows)
        if np.isfinite(inside).any():
            outside = np.setdiff1d(np.arange(len(strata)), rows)
            values.append(sign * table(outside, rows)[int(np.nanargmax(inside))])
    known = [value for value in values if math.isfinite(value)]
    return float(np.mean(known)) if known else math.nan


def repeat_errors(world: World, size: int, n_halves: int, rng: np.random.Generator) -> list[float]:
    """Score − truth, positive where too good: naive, out-of-bag, plain recipe, honest; then its margin."""
    drawn = rng.choice(N_POPULATION, size, replace=False)
    strata, table, sign = world.strata[drawn], world.table(drawn), world.sign
    every = np.arange(size)
    scores = table(every, every)
    if not np.isfinite(scores).any():
        return [math.nan] * 5
    winner = select_best(scores, sign > 0)
    best, truth = sign * scores[winner], sign * world.truth(winner, drawn)
    known: dict[tuple[bytes, bytes], np.ndarray] = {}

    def remembered(rows: np.ndarray, fit_rows: np.ndarray) -> np.ndarray:
        key = (rows.tobytes(), fit_rows.tobytes() if world.has_rule else b"")
        if key not in known:
            known[key] = table(rows, fit_rows)
        return known[key]

    asked: tuple[np.ndarray, np.ndarray] = (every[:0], every[:0])
    values: list[float] = []

    def evaluate(candidate: int, rows: np.ndarray, fit_rows: np.ndarray) -> float:
        # honest_score asks for one candidate at a time; all are computed at the first question.
        nonlocal asked, values
        if rows is not asked[0] or fit_rows is not asked[1]:
            asked, values = (rows, fit_rows), remembered(rows, fit_rows).tolist()
        return values[candidate]

    seed = int(rng.integers(2**63))  # the same halves for both, so that their tables are computed once
    honest = honest_score(
        evaluate,
        scores,
        strata,
        greater_is_better=sign > 0,
        n_halves=n_halves,
        rng=np.random.default_rng(seed),
    )
    recipe = best - half_recipe(remembered, strata, sign, n_halves, np.random.default_rng(seed))
    bagged = out_of_bag(table, strata, sign, n_halves, rng)
    ours = sign * honest.value
    return [best - truth, bagged - truth, recipe - truth, ours - truth, honest.standard_error]


def simulate(metric: str, regime: str, number: int, repeats: int, n_halves: int) -> np.ndarray:
    """Errors (sizes, repeats, 5) of one set of candidates."""
    seed = [list(METRICS).index(metric), REGIMES.index(regime), number]
    rng = np.random.default_rng(seed)
    world = METRICS[metric](regime, rng)
    return np.array([[repeat_errors(world, n, n_halves, rng) for _ in range(repeats)] for n in SIZES])


def line(metric: str, regime: str, size: int, errors: np.ndarray) -> str:
    """One row of the table, in hundredths of the metric."""
    undefined = np.isnan(errors).any(axis=1)
    errors = 100 * errors[~undefined]
    if len(errors) < 2:
        return f"| {metric} | {regime} | {size} | undefined |"
    bias, margin = errors[:, :4].mean(0), 1.96 * errors[:, :4].std(0, ddof=1) / math.sqrt(len(errors))
    rmse = np.sqrt((errors[:, :4] ** 2).mean(0))
    inside = 100 * np.mean(np.abs(errors[:, 3]) <= 1.96 * errors[:, 4])
    cells = [f"{b:+.1f} ± {m:.1f}" for b, m in zip(bias, margin, strict=True)] + [f"{r:.1f}" for r in rmse]
    return (
        f"| {metric} | {regime} | {size} | " + " | ".join(cells) + f" | {inside:.0f} % | {undefined.sum()} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=200, help="repeats for each row of the table")
    parser.add_argument("--halves", type=int, default=60, help="halves (and bootstrap samples) per repeat")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--metric", choices=list(METRICS), help="the rows of one metric only")
    options = parser.parse_args()
    start = time.perf_counter()
    share = math.ceil(options.repeats / N_WORLDS)
    cells = [(metric, regime) for metric in METRICS if options.metric in (None, metric) for regime in REGIMES]
    with ProcessPoolExecutor(options.workers) as pool:
        jobs = {
            cell: [pool.submit(simulate, *cell, i, share, options.halves) for i in range(N_WORLDS)]
            for cell in cells
        }
        print("Bias (score − truth, + is too good, ± 95 % margin) and RMSE of the winner's score, × 100")
        head = ["metric", "candidates", "rows", "naive", "out-of-bag", "half recipe", "honest"]
        head += ["RMSE naive", "out-of-bag", "half recipe", "honest", "within 2 SE", "undefined"]
        print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
        for cell, futures in jobs.items():
            errors = np.concatenate([future.result() for future in futures], axis=1)
            for size, of_size in zip(SIZES, errors, strict=True):
                print(line(*cell, size, of_size), flush=True)
    print(f"\n{share * N_WORLDS} repeats, {options.halves} halves, {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
