"""What spam and pages share: small classifiers on scaled columns, autoencoders of (x, y), and the choice of
the training settings with uniform weights, made before any weighting."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from experiments._autoencoder import middle_layer
from experiments._experiment import Options
from experiments._searches import Problem
from experiments.networks import RepeatedNetworks, TrainedNetworks
from moew._util.margins import margin
from moew.models.networks import NetworkSpec
from moew.search._evaluate import Evaluator
from moew.types import FloatArray

HIDDEN, ENCODER_HIDDEN, N_DIMS = (20, 10), 100, 3
N_BATCHES, BATCH_SIZE = 10, 20  # B and K
# The paper gives no radius for these two; the authors' wine script, with a like autoencoder, has 5.
PAPER_RADIUS, SECOND_RADIUS = 5.0, 1.0


@dataclass(frozen=True)
class Training:
    """How a classifier is trained, by Adam, for the number of steps in the options."""

    loss: str
    learning_rate: float
    batch_size: int = 100


CLASSES = np.array([0, 1])
GRID = tuple(Training(loss, rate) for loss in ("hinge", "logistic") for rate in (0.001, 0.01))


def signed_log(X: FloatArray) -> FloatArray:
    """sign(x) · log(1 + |x|), for amounts and counts, which span many powers of ten."""
    return np.sign(X) * np.log1p(np.abs(X))


def classifiers(
    training: Training, X: FloatArray, y: FloatArray, n_repeats: int, seed: int, options: Options
) -> RepeatedNetworks:
    """Networks D-20-10-1 on X (R or 1, n, D) and y (R or 1, n) of 0 and 1."""
    spec = NetworkSpec(
        (X.shape[2], *HIDDEN, 1),
        "sigmoid",
        training.loss,
        options.steps,
        training.batch_size,
        training.learning_rate,
        precision=options.precision,
    )
    return RepeatedNetworks(spec, X, y[..., None], n_repeats, seed, device=options.device)


def embedding(X: FloatArray, y: FloatArray, n_repeats: int, seed: int, options: Options) -> FloatArray:
    """Z (n_repeats, n, 3): the middle layers of autoencoders (D+1)-100-3-100-(D+1), one for each repeat."""
    inputs = np.concatenate([X, y[..., None]], axis=2)
    label = inputs.shape[2] - 1
    return middle_layer(
        inputs, ENCODER_HIDDEN, N_DIMS, (label,), n_repeats=n_repeats, seed=seed, options=options
    )


def uniform_values(problem: Problem, evaluator: Evaluator, k: int) -> FloatArray:
    """The validation metric (R, K) of networks with uniform weights."""
    weights = np.ones((len(problem.data), k, len(problem.data[0].training)), np.float32)
    trained = TrainedNetworks(problem.networks, problem.networks.train(weights, 0), problem.classes)
    return np.array(
        [
            [
                evaluator.value(evaluator.predictions([trained.model(r, i)], data), data.validation)
                for i in range(k)
            ]
            for r, data in enumerate(problem.data)
        ]
    )


def best_setting(score: Callable[[Training], FloatArray]) -> str:
    """Compare the settings of GRID by the validation scores (R, K) of uniform networks; the best is named."""
    means: Mapping[Training, FloatArray] = {training: score(training).mean(axis=1) for training in GRID}
    lines = [f"{t}: {values.mean():.4f} ± {margin(values):.4f}" for t, values in means.items()]
    best = max(means, key=lambda training: float(means[training].mean()))
    return "\n".join([*lines, f"best: {best}"])
