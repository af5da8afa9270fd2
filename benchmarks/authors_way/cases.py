"""The three cases, and their made-up data: read by both sides, so it needs NumPy alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Case:
    """One experiment of the paper, with the sizes of its training set."""

    name: str
    n_rows: int
    sizes: tuple[int, ...]  # of each of the K models, from the features to the outputs
    batch_size: int
    n_models: int  # K
    loss: str
    embedding_sizes: tuple[int, ...]  # of the encoder, from (x, y) to z; empty where z is the one-hot label
    n_dims: int  # of z
    radius: float  # of the ball of alpha
    authors_ms: tuple[float, float]  # a step of the authors' scripts on 2 cores, TensorFlow 2.15
    times_faster: float  # what moew has to reach


CASES = {
    case.name: case
    for case in (
        Case("crime", 994, (95, 1), 100, 5, "hinge", (96, 10, 4), 4, 1.0, (6.0, 6.0), 100),
        Case("wine", 85_000, (40, 20, 10, 1), 1000, 20, "squared", (41, 100, 10), 10, 5.0, (13.5, 16.0), 5),
        Case(
            "mnist", 55_000, (784, 50, 10), 100, 20, "sigmoid_cross_entropy", (), 10, 1.0, (12.5, 13.6), 3.5
        ),
    )
}


def features_and_labels(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """X (n, D) float32 and y (n,): −1/1 (crime), a log price (wine) or a digit (MNIST)."""
    rng = np.random.default_rng(0)
    D = case.sizes[0]
    if case.name == "wine":  # 39 words and the points
        X = (rng.random((case.n_rows, D), dtype=np.float32) < 0.2).astype(np.float32)
        X[:, -1] = rng.integers(80, 101, case.n_rows)
        y = 3.3 + 0.1 * (X[:, -1] - 90) + X[:, :-1] @ rng.normal(0, 0.1, D - 1)
        return X, y.astype(np.float32)
    X = rng.random((case.n_rows, D), dtype=np.float32)
    if case.name == "crime":
        score = X @ rng.standard_normal(D)
        return X, np.where(score > np.quantile(score, 0.7), 1.0, -1.0).astype(np.float32)
    X[X < 0.8] = 0.0  # most pixels of a digit are black
    return X, (X @ rng.standard_normal((D, case.sizes[-1]))).argmax(axis=1)


def alphas_of(case: Case) -> np.ndarray:
    """Alphas (K, d) in the ball."""
    directions = np.random.default_rng(1).standard_normal((case.n_models, case.n_dims))
    return case.radius * directions / np.linalg.norm(directions, axis=1, keepdims=True)


def encoder_of(case: Case) -> list[tuple[np.ndarray, np.ndarray]]:
    """Made-up W (in, out) and b (out,) of the sigmoid layers from (x, y) to z; training them is not timed."""
    rng = np.random.default_rng(2)
    return [
        (rng.normal(0, 1 / np.sqrt(n_in), (n_in, n_out)).astype(np.float32), np.zeros(n_out, np.float32))
        for n_in, n_out in zip(case.embedding_sizes[:-1], case.embedding_sizes[1:], strict=True)
    ]
