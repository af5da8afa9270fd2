"""Figures 3a and 3b: the worst digit's error on MNIST, for networks 784 → h → 10 of growing size.

The embedding is the digit itself (one-hot, 10 dimensions). Settings that the paper leaves open are the
authors': mini-batches of 100 in the order of the file, sigmoid cross-entropy for each class, radius 1, no π,
and the first 5,000 training rows for validation. So repeats differ only in initial parameters and candidates.
Where text and scripts differ there are second settings, for the smallest and the largest network with 20
repeats: cross-entropy over the softmax (text), and a GP with fitted width and little noise (close to the
scripts', which also fit it to pretended points, within wider bounds, on log(1 + error)). "moew" adds a
coordinate to the digit, the difficulty of a row: if a model is flexible enough for every digit, weights can
only help on the rows that it gets wrong. This takes one more network for each repeat. "moew" is also shown
with the digit alone and with the softmax.

The text says that all experiments used π(y) = p_V(y) / p_T(y), and the scripts have none: two second settings
have it, alone and under the paper's search, whose noise is then that of the models with π(y) alone. The
searches of the paper's settings and of "moew" for these two sizes also choose by the posterior mean of their
Gaussian process (`_posterior_choice`), beside the best validation value.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from itertools import product
from typing import Any

import numpy as np

from experiments._experiment import PAPER_ARM, PI_ALONE, Options, Prepared, Run
from experiments._mnist_tables import (
    ARMS,
    BY_MEAN,
    DIGIT_ALONE,
    FEW,
    FITTED,
    PAPER_WITH_PI,
    SECOND,
    SOFTMAX_MOEW,
    SOFTMAX_OURS,
    SOFTMAX_UNIFORM,
    report,
    setting,
)
from experiments._scaling import standardized
from experiments._searches import (
    Arm,
    Fixed,
    Judge,
    Learned,
    Problem,
    RandomRows,
    Seen,
    label_shift,
    paper_samplers,
    rows_of_repeats,
)
from experiments.datasets import TrainTest, load_mnist
from experiments.networks import RepeatedNetworks
from moew._util.seeds import integer_seed
from moew.metrics import Predictions, accuracy, worst_class_error
from moew.models.networks import NetworkSpec
from moew.samplers import GpBucb
from moew.search._evaluate import Evaluator
from moew.types import FloatArray, IntArray

HIDDEN = (10, 20, 30, 40, 50)
N_VALIDATION, N_BATCHES, BATCH_SIZE = 5_000, 10, 20
# Ours adds to the standardised digit ten times the difficulty of a row, so that α reaches ten times as far in
# that direction. Chosen on rows left out of training (`python -m benchmarks.paper_settings mnist`).
PAPER_RADIUS, OUR_RADIUS, TIMES_DIFFICULTY = 1.0, 0.5, 10.0
SECOND_HIDDEN = (10, 50)
SOFTMAX = (SOFTMAX_UNIFORM, SOFTMAX_MOEW, SOFTMAX_OURS)
# The models whose scores give the noise of the paper's GP.
NOISE_OF = {PAPER_ARM: "uniform", SOFTMAX_MOEW: SOFTMAX_UNIFORM, PAPER_WITH_PI: PI_ALONE}
EVALUATOR = Evaluator(worst_class_error(), None, np.arange(10))


def digit_by_digit(problem: Problem, repeat: int, model: Any, predictions: Predictions) -> dict[str, float]:
    """The test score, and the validation error of each digit."""
    validation, decided = problem.data[repeat].validation, predictions.arrays["decision"]
    rows = [validation.y == digit for digit in range(10)]
    errors = {f"digit {d}": 1 - accuracy()(validation.y[of], decided[of]) for d, of in enumerate(rows)}
    return {**Judge(EVALUATOR).recorded(problem, repeat, model, predictions), **errors}


def in_order(n_rows: int, batch: int, steps: int) -> IntArray:
    """Row numbers (steps, 1, b) of mini-batches in the order of the file, repeated as often as needed."""
    return (np.arange(steps * batch, dtype=np.int32) % n_rows).reshape(steps, 1, batch)


class Mnist:
    """The rows, and the searches on them."""

    def __init__(self, options: Options, data: TrainTest, n_validation: int = N_VALIDATION) -> None:
        self.options = options
        self.X, self.y = data.train.X[n_validation:], data.train.y[n_validation:]
        self.X_val, self.y_val = data.train.X[:n_validation], data.train.y[:n_validation]
        self.X_test, self.y_test = data.test.X, data.test.y

    def networks(self, hidden: int, softmax: bool = False, few: bool = False) -> RepeatedNetworks:
        """Networks 784-h-10 on the training rows."""
        o = self.options
        repeats = o.second_repeats if few else o.repeats
        loss = "softmax" if softmax else "sigmoid_cross_entropy"
        spec = NetworkSpec((784, hidden, 10), "sigmoid", loss, o.steps, 100, precision=o.precision)
        one_hot = np.eye(10, dtype=np.float32)[self.y][None]
        batches = in_order(len(self.y), 100, o.steps)
        seed = integer_seed(o.seed, "mnist", hidden)
        return RepeatedNetworks(spec, self.X[None], one_hot, repeats, seed, batches=batches, device=o.device)

    def problem(self, networks: RepeatedNetworks) -> Problem:
        """The networks and the rows, which all repeats share."""
        R = networks.n_repeats
        validation, test = (
            rows_of_repeats(networks.place(X[None]), y[None], R)
            for X, y in ((self.X_val, self.y_val), (self.X_test, self.y_test))
        )
        training = rows_of_repeats(None, self.y[None], R)
        return Problem.of(networks, EVALUATOR.classes, training, validation, test)

    def prepared(
        self, networks: Callable[[], RepeatedNetworks], name: str, hidden: int, uniform: Seen | None
    ) -> Prepared:
        """The search of one arm."""
        made = networks()
        judge = Judge(EVALUATOR, digit_by_digit if name == "uniform" else None)
        return Prepared(self.problem(made), self.arm(made, name, hidden, uniform), judge)

    def arm(self, networks: RepeatedNetworks, name: str, hidden: int, uniform: Seen | None) -> Arm:
        """The arm of that name; the uniform models come first and give the noise of the paper's GP."""
        Z = np.eye(10)[self.y][None]
        seed = integer_seed(self.options.seed, name, hidden)
        if name in ("uniform", SOFTMAX_UNIFORM):
            return Fixed()
        if name == PI_ALONE:
            return Fixed(label_shift)
        if name == "random weights":
            return RandomRows(seed=seed)
        if name == "moew, random alphas":
            return Learned(Z, PAPER_RADIUS, None, seed)
        if name in ("moew", SOFTMAX_OURS):
            return Learned(self.our_embedding(networks), OUR_RADIUS, GpBucb(), seed)
        if name in DIGIT_ALONE:
            return Learned(standardized(Z), DIGIT_ALONE[name], GpBucb(), seed)
        if name == FITTED:
            return Learned(Z, PAPER_RADIUS, GpBucb(width="fit", noise=1e-4, targets="raw"), seed)
        if name == PAPER_WITH_PI:
            return Learned(Z, PAPER_RADIUS, paper_samplers(uniform), seed, label_shift)
        return Learned(Z, PAPER_RADIUS, paper_samplers(uniform), seed)

    def our_embedding(self, networks: RepeatedNetworks) -> FloatArray:
        """Our embedding (R, n, 11): the digit and the difficulty of each row."""
        hard = self.difficulty(networks)
        flags = np.broadcast_to(standardized(np.eye(10)[self.y][None]), (len(hard), len(self.y), 10))
        return np.dstack([flags, np.float32(TIMES_DIFFICULTY) * hard])

    def difficulty(self, networks: RepeatedNetworks) -> FloatArray:
        """The scaled lead (R, n, 1) of the best wrong digit over the right one, with equal weights."""
        weights = np.ones((networks.n_repeats, 1, len(self.y)), np.float32)
        params = networks.train(weights, N_BATCHES)  # a batch number of its own: other initial parameters
        outputs = networks.outputs(params, networks.place(self.X[None]))[:, 0]
        right = np.eye(10, dtype=bool)[self.y]
        lead = np.where(right, -np.inf, outputs).max(axis=2) - outputs[:, right]
        return standardized(lead[..., None]).clip(-3, 3)


def all_settings(hidden: tuple[int, ...], second: tuple[int, ...]) -> list[tuple[int, str]]:
    """The size of the network and the name of every setting, the paper's arms first."""
    paper_first = [(h, name) for arms, h in product((ARMS[:-1], ARMS[-1:]), hidden) for name in arms]
    return paper_first + [(h, name) for h, name in product(second, (*SECOND, *BY_MEAN))]


def search_all(
    this: Run,
    data: Mnist,
    hidden: tuple[int, ...] = HIDDEN,
    second: tuple[int, ...] = SECOND_HIDDEN,
    n_batches: int = N_BATCHES,
) -> dict[tuple[int, str], Seen]:
    """Run every setting that is wanted, and what it depends on; finished ones are read from the folder."""
    found: dict[tuple[int, str], Seen] = {}
    networks = lru_cache(1)(data.networks)  # the last ones, for several settings one after the other

    def prepare(h: int, name: str) -> Prepared:
        noise = search(h, NOISE_OF[name]) if name in NOISE_OF else None
        return data.prepared(partial(networks, h, name in SOFTMAX, name in FEW), name, h, noise)

    def search(h: int, name: str) -> Seen:
        if (h, name) not in found and name in BY_MEAN:
            arm, how = BY_MEAN[name]
            prepared = partial(prepare, h, arm)
            both = this.posterior_choice(setting(h, arm), prepared, search(h, arm), n_batches=n_batches)
            found[h, name] = both[how]
        elif (h, name) not in found:
            found[h, name] = this.search(
                setting(h, name),
                partial(prepare, h, name),
                n_batches=n_batches,
                batch_size=BATCH_SIZE,
                keep_embedding=(h, name) in chosen_later,
            )
        return found[h, name]

    every = all_settings(hidden, second)
    this.check_only([setting(h, name) for h, name in every])
    wanted = [(h, name) for h, name in every if this.wants(setting(h, name))]
    chosen_later = {(h, BY_MEAN[name][0]) for h, name in wanted if name in BY_MEAN}
    for h, name in wanted:
        search(h, name)
    return found


def main(options: Options) -> str:
    """Run or continue, and return the tables; figures and raw numbers go to the folder."""
    this = Run("mnist", options)
    return this.conclude(report(this, search_all(this, Mnist(options, load_mnist())), HIDDEN))
