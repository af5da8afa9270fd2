"""The wine experiment's rows, split for each repeat, its metric, model and autoencoder."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from experiments._autoencoder import middle_layer
from experiments._experiment import Options
from experiments._scaling import like, standardized
from experiments._searches import Judge, Problem, rows_of_repeats
from experiments.datasets import Dataset
from experiments.networks import RepeatedNetworks
from moew._util.seeds import generator, integer_seed
from moew.exceptions import InvalidInputError
from moew.metrics import worst_band_relative_error
from moew.models.networks import NetworkSpec
from moew.search._evaluate import Evaluator
from moew.types import BoolArray, FloatArray

HIDDEN = (20, 10)  # of the model 40-20-10-1
HIDDEN_OF_AUTOENCODER = 100
ROWS_A_STEP, N_FLAGS = 1_000, 39
SHARES = (0.7, 0.1)  # of training and validation: the paper's 85k and 12k of 121k
PRICES = (17.0, 25.0, 42.0)  # dollars, at which the ranges end
JUDGE = Judge(Evaluator(worst_band_relative_error(PRICES, inverse="exp"), None, None))


def range_flags(price: FloatArray) -> BoolArray:
    """Flags (R, m, 4): the range of each price (R, m)."""
    return np.asarray(np.searchsorted(PRICES, price)[..., None] == np.arange(len(PRICES) + 1))


def most_frequent_flags(data: Dataset, n_flags: int = N_FLAGS) -> Dataset:
    """Flags of the most frequent countries and varieties as features, before the points."""
    values = [
        (-count, name, value)
        for name in ("country", "variety")
        for value, count in zip(*np.unique(data.columns[name], return_counts=True), strict=True)
        if value
    ]
    kept = sorted(values)[:n_flags]
    flags = np.column_stack([data.columns[name] == value for _, name, value in kept])
    names = (*(f"{name}={value}" for _, name, value in kept), *data.feature_names)
    return Dataset(np.hstack([flags, data.X]), data.y, names, data.columns)


@dataclass(frozen=True)
class Part:
    """Rows of every repeat: flags and, last, points X (R, m, D); log prices y (R, m); prices (R, m)."""

    X: FloatArray
    y: FloatArray
    price: FloatArray


class Wine:
    """One dataset, split for each repeat, and what is trained and measured on it."""

    def __init__(self, options: Options, data: Dataset, rows_a_step: int = ROWS_A_STEP) -> None:
        self.options, self.rows_a_step = options, rows_a_step
        self._embeddings: dict[tuple[str, int, int], FloatArray] = {}  # only the last one
        self._problems: dict[tuple[bool, int], Problem] = {}
        n = len(data.y)
        orders = np.stack(
            [generator(options.seed, "split", r).permutation(n) for r in range(options.repeats)]
        )
        ends = [round(SHARES[0] * n), round(sum(SHARES) * n)]
        X, y, price = data.X.astype(np.float32), data.y, data.columns["price"]
        self.train, self.validation, self.test = (
            Part(X[rows], y[rows], price[rows]) for rows in np.split(orders, ends, axis=1)
        )

    def features(self, part: Part, scaled: bool, repeats: int) -> FloatArray:
        """X (R, m, D); if `scaled`, the points have mean 0 and deviation 1 on the training rows."""
        X = part.X[:repeats]
        if not scaled:
            return X
        points = like(self.train.X[:repeats, :, -1:], X[..., -1:])
        return np.concatenate([X[..., :-1], points], axis=2)

    def problem(self, scaled: bool, repeats: int) -> Problem:
        """The model that all arms train, with or without scaled points, and its rows. Made once."""
        if not all(range_flags(part.price).any(axis=1).all() for part in (self.validation, self.test)):
            raise InvalidInputError(
                "each split needs prices in all ranges, which end at 17, 25 and 42 dollars."
            )
        if (scaled, repeats) not in self._problems:
            o, X = self.options, self.features(self.train, scaled, repeats)
            sizes, seed = (X.shape[2], *HIDDEN, 1), integer_seed(o.seed, "wine model")
            spec = NetworkSpec(sizes, "sigmoid", "squared", o.steps, self.rows_a_step, precision=o.precision)
            y = self.train.y[:repeats, :, None]
            networks = RepeatedNetworks(spec, X, y, repeats, seed, device=o.device)
            validation, test = (
                rows_of_repeats(networks.place(self.features(part, scaled, repeats)), part.y, repeats)
                for part in (self.validation, self.test)
            )
            training = rows_of_repeats(None, self.train.y, repeats)
            self._problems[scaled, repeats] = Problem.of(networks, None, training, validation, test)
        return self._problems[scaled, repeats]

    def metric_columns(self, repeats: int) -> FloatArray:
        """Our embedding (R, n, 5): standardised flags of the price ranges, which the metric depends on, and
        the points."""
        flags, points = range_flags(self.train.price[:repeats]), self.train.X[:repeats, :, -1:]
        return standardized(np.concatenate([flags, points], axis=2))

    def embedding(self, kind: str, n_dims: int, repeats: int) -> FloatArray:
        """The paper's Z (R, n, d) of the training rows, trained once: several settings share it."""
        if (kind, n_dims, repeats) not in self._embeddings:
            self._embeddings = {(kind, n_dims, repeats): self._embedding(kind, n_dims, repeats)}
        return self._embeddings[kind, n_dims, repeats]

    def _embedding(self, kind: str, n_dims: int, repeats: int) -> FloatArray:
        """The middle layer of an autoencoder of (x, y), unscaled; the flags have squared loss in the
        "scripts" and hinge loss in the "text"."""
        y = self.train.y[:repeats, :, None].astype(np.float32)
        inputs = np.concatenate([self.train.X[:repeats], y], axis=2)
        flags = () if kind == "scripts" else range(inputs.shape[2] - 2)  # points and price come last
        return middle_layer(
            inputs,
            HIDDEN_OF_AUTOENCODER,
            n_dims,
            flags,
            n_repeats=repeats,
            seed=integer_seed(self.options.seed, f"wine {kind} {n_dims}"),
            options=self.options,
            batch_size=self.rows_a_step,
        )
