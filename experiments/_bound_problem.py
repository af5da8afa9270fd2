"""A problem on which Theorem 2 can be checked exactly: four groups, least squares, worst group's error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, ndtr

from moew._util.seeds import generator
from moew._util.threads import one_blas_thread
from moew.types import FloatArray, IntArray

GROUPS = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])  # label, half
CENTRES = np.array([[1.5, 0.5], [0.2, -1.2], [-1.5, 0.8], [-0.2, 1.0]])
TRAINING_SHARES, N_TRAIN = (0.45, 0.05, 0.35, 0.15), 1000
N_GROUPS = len(GROUPS)
_BLOCK = 2**20  # scores computed at a time


@dataclass(frozen=True)
class Sums:
    """Sums over each group's training rows with intercept: Σ x·xᵀ (4, 3, 3) and Σ x·y (4, 3)."""

    squares: FloatArray
    products: FloatArray


def draw_rows(rng: np.random.Generator, counts: IntArray) -> list[FloatArray]:
    """Rows with intercept (n_g, 3) of each group."""
    rows = [rng.standard_normal((n, 2)) + centre for n, centre in zip(counts, CENTRES, strict=True)]
    return [np.column_stack([X, np.ones(len(X))]) for X in rows]


def training_sums(seed: int) -> Sums:
    """Draw the training rows and sum them by group."""
    rng = generator(seed, "bound training")
    rows = draw_rows(rng, rng.multinomial(N_TRAIN, TRAINING_SHARES))
    products = [X.T @ np.full(len(X), label) for X, label in zip(rows, GROUPS[:, 0], strict=True)]
    return Sums(np.stack([X.T @ X for X in rows]), np.stack(products))


def embedding(d: int) -> FloatArray:
    """The embedding z (4, d) of the groups."""
    return np.column_stack([GROUPS, GROUPS.prod(axis=1)])[:, :d].astype(np.float64)


def train(sums: Sums, alphas: FloatArray) -> FloatArray:
    """Classifiers (n, 3) of alphas (n, d): weighted least squares on the labels, weights σ(zᵀα)."""
    weights = expit(alphas @ embedding(alphas.shape[1]).T)
    squares = np.einsum("ng,gij->nij", weights, sums.squares)
    return np.asarray(np.linalg.solve(squares, (weights @ sums.products)[..., None])[..., 0])


def mean_losses(classifiers: FloatArray) -> FloatArray:
    """The exact φ (n, 4): the probability that a row is of the group and is decided wrongly."""
    return np.asarray(ndtr(-GROUPS[:, 0] * _scores_of_centres(classifiers)) / N_GROUPS)


def _scores_of_centres(classifiers: FloatArray) -> FloatArray:
    norm = np.linalg.norm(classifiers[:, :2], axis=1, keepdims=True)
    return np.asarray((classifiers[:, :2] @ CENTRES.T + classifiers[:, 2:]) / norm)


def worst_group(losses: FloatArray) -> FloatArray:
    """Ψ (n,) of φ (n, 4): minus the worst group's error; groups are of equal size, so L_Ψ = 4."""
    return np.asarray(-N_GROUPS * losses.max(axis=-1))


def steepness(sums: Sums, alphas: FloatArray) -> float:
    """The largest |∂φ_g/∂α| over groups and alphas (n, d): L_φ, if the alphas are dense.

    ∂θ/∂α comes from differentiating the normal equations.
    """
    z = embedding(alphas.shape[1])
    weights, theta = expit(alphas @ z.T), train(sums, alphas)
    squares = np.einsum("ng,gij->nij", weights, sums.squares)
    residuals = sums.products - np.einsum("gij,nj->ngi", sums.squares, theta)
    change = np.einsum("ng,ngi,gd->nid", weights * (1 - weights), residuals, z)
    moves = np.linalg.solve(squares, change)  # ∂θ/∂α (n, 3, d)
    scores = _scores_of_centres(theta)
    norm = np.linalg.norm(theta[:, :2], axis=1)
    density = np.exp(-(scores**2) / 2) / np.sqrt(2 * np.pi) / N_GROUPS
    turn = CENTRES - scores[..., None] * (theta[:, None, :2] / norm[:, None, None])
    by_theta = np.concatenate([turn, np.ones((*scores.shape, 1))], axis=2) / norm[:, None, None]
    gradients = density[..., None] * np.einsum("ngi,nid->ngd", by_theta, moves)
    return float(np.linalg.norm(gradients, axis=2).max())


@one_blas_thread()
def validated(classifiers: FloatArray, n_rows: int, seed: int, number: int) -> FloatArray:
    """The metric (n,) on N validation rows of the repeat with that number."""
    rng = generator(seed, f"bound validation {n_rows}", number)
    rows = draw_rows(rng, rng.multinomial(n_rows, np.full(N_GROUPS, 1 / N_GROUPS)))
    wrong = np.zeros((len(classifiers), N_GROUPS))
    for g, X in enumerate(rows):
        answers = (GROUPS[g, 0] * X.T).astype(np.float32)
        step = max(1, _BLOCK // max(1, len(X)))
        for start in range(0, len(classifiers), step):
            scores = classifiers[start : start + step].astype(np.float32) @ answers
            wrong[start : start + step, g] = (scores <= 0).mean(axis=1) * len(X) if len(X) else 0.0
    return worst_group(np.round(wrong) / n_rows)
