"""Weights of rows for any α: by eq. 3, w(x, y; α) = c · π · σ(z(x, y)ᵀ α), and in other ways.

The factor c makes the mean weight one over the rows that a loss is averaged over. Over the training rows and
over a fold's training rows, each row counts by the user's own weight u: c = Σu / Σ(u·π·σ), so that learned
weights redistribute the total weight without changing it, and α = 0 with π = 1 gives exactly u. Over a
mini-batch, as in the authors' scripts, the weighted loss is a weighted mean.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import log_expit

from moew._util.state import State, Stateful, has_state, load_state, packed, unpack_array
from moew.data import check_weights, read_only
from moew.exceptions import InvalidInputError
from moew.types import BaseWeights, Columns, Embedding, Features, FloatArray, Labels, Task
from moew.weighting._base_weights import checked_base_weights

# Of the paper's random weights, drawn uniformly for each row. The text names no range: this is the scripts'.
_RANDOM_RANGE = (0.1, 1.9)
_ABOVE_ZERO = 0.1  # of the spread: how far the lowest target is lifted above zero where not all are positive


def mean_over_rows(weights: FloatArray, own: FloatArray | None) -> FloatArray:
    """1/c: the mean (K,) of weights (K, n) over all training rows, each counted by its own weight (n,)."""
    if own is None:
        return np.asarray(weights.mean(axis=1))
    return np.asarray((weights * own).sum(axis=1) / own.sum())


def over_fold(weights: FloatArray, own: FloatArray | None) -> FloatArray:
    """Weights (K, m) of a fold's rows, which include the user's own weights (m,), with the mean of those."""
    mean = 1.0 if own is None else own.mean()
    # Rows cut out of a matrix lie column by column. The sum of a row that lies apart has other last digits
    # than that of one that is all there is, and a candidate's weights must be the same in every batch.
    weights = np.ascontiguousarray(weights)
    return np.asarray(weights * (mean / weights.mean(axis=1, keepdims=True)))


def mini_batch_divisor(total: Any, where: Callable[..., Any]) -> Any:
    """What makes the weights of a mini-batch sum to one: their sum, or 1 if all are zero, so that such a
    mini-batch adds no gradient. `total` is an array of NumPy, JAX or PyTorch, `where` its function."""
    return where(total == 0, 1.0, total)


class _OfFields(Stateful):
    """A weight function whose fields are its state."""

    state_home = "moew.weighting"

    @property
    def takes_columns(self) -> bool:
        """Whether the weights depend on per-row columns beside X."""
        return False

    @property
    def wanted_columns(self) -> tuple[str, ...]:
        """Names of columns that the embedding was asked for, of X or beside it."""
        return ()

    def _content(self) -> State:
        return {name: packed(value) for name, value in vars(self).items()}

    @classmethod
    def from_state(cls, state: State, objects: Mapping[str, Any]) -> Self:
        """Here of one whose fields are numbers."""
        return cls(**{name: float(state[name]) for name in cls.__annotations__})


@has_state
@dataclass(frozen=True, eq=False)  # == of arrays is an array
class WeightFunction(_OfFields):
    """The weight function w(x, y) for one α, with c, embedding and base weights fixed."""

    alpha: FloatArray  # (d,)
    log_top: float  # log of the highest σ(zᵀα) of a training row
    mean: float  # of π·σ(zᵀα) / (that highest σ) over the training rows
    embedding: Embedding
    base_weights: BaseWeights

    @property
    def c(self) -> float:
        """The factor of eq. 3 that makes the mean weight one; infinite if it is above 1e308."""
        with np.errstate(over="ignore"):
            return float(np.exp(-self.log_top) / self.mean)

    @property
    def takes_columns(self) -> bool:
        return bool(getattr(self.embedding, "takes_columns", False))

    @property
    def wanted_columns(self) -> tuple[str, ...]:
        return tuple(getattr(self.embedding, "wanted_columns", ()))

    def __call__(self, X: Features, y: Labels, columns: Columns | None = None) -> FloatArray:
        """The weights (n,) of any rows; their mean over the training rows is one.

        `columns`, name → (n,), are those that the embedding had in training, if it takes any and X does not
        have them. Infinite if an extreme α favours a new row by more than a factor of 1e308.
        """
        Z = self.embedding.transform(X, y, **_taken(self.embedding, columns))
        pi = checked_base_weights(self.base_weights.weights(X, y), len(y), type(self.base_weights).__name__)
        log_sigma = _log_sigma(Z, self.alpha[None, :])
        with np.errstate(over="ignore"):
            return np.asarray(_relative(pi, log_sigma, np.array([self.log_top]))[0] / self.mean)

    @classmethod
    def from_state(cls, state: State, objects: Mapping[str, Any]) -> Self:
        return cls(
            unpack_array(state["alpha"]),
            float(state["log_top"]),
            float(state["mean"]),
            load_state(state["embedding"], objects),
            load_state(state["base_weights"], objects),
        )


def _taken(embedding: Embedding, columns: Columns | None) -> dict[str, Any]:
    """The columns as an argument, if the embedding takes any."""
    return {"columns": columns} if getattr(embedding, "takes_columns", False) else {}


class ExampleWeighting:
    """Computes the weights of the training rows, and the weight function, for any α.

    Examples
    --------
    >>> from moew.embedding import LabelEmbedding
    >>> from moew.weighting import UniformBaseWeights
    >>> weighting = ExampleWeighting(LabelEmbedding(standardize=False), UniformBaseWeights())
    >>> weighting.fit(None, [0, 0, 0, 1], task="classification").n_dims
    2
    >>> alphas = np.array([[0.0, 0.0], [-2.0, 2.0]])  # no weights, and more for the second class
    >>> weighting.training_weights(alphas).round(2).tolist()
    [[1.0, 1.0, 1.0, 1.0], [0.39, 0.39, 0.39, 2.84]]
    """

    def __init__(self, embedding: Embedding, base_weights: BaseWeights) -> None:
        self.embedding = embedding
        self.base_weights = base_weights

    def fit(
        self,
        X: Features,
        y: Labels,
        X_val: Features = None,
        y_val: Labels = None,
        *,
        task: Task,
        sample_weight: Any = None,
        columns: Columns | None = None,
    ) -> Self:
        """Fit embedding and base weights on the n training rows and the validation rows.

        `sample_weight` (n,) are the user's weights; `columns`, name → (n,), are columns of the training rows
        for an embedding that takes them.
        """
        self.sample_weight_ = None if sample_weight is None else check_weights(sample_weight, len(y))
        X, y, X_val, y_val = (read_only(part) for part in (X, y, X_val, y_val))
        pi = self.base_weights.fit_weights(X, y, X_val, y_val, task=task)
        if taken := _taken(self.embedding, columns):
            taken["columns"] = {name: read_only(values) for name, values in (columns or {}).items()}
        self.embedding.fit(X, y, task=task, **taken)
        self.Z_ = self.embedding.transform(X, y, **taken)
        self.pi_ = checked_base_weights(pi, len(y), type(self.base_weights).__name__)
        return self

    @property
    def n_dims(self) -> int:
        """d, the number of entries of α."""
        return int(self.Z_.shape[1])

    def training_weights(self, alphas: FloatArray) -> FloatArray:
        """The weights (K, n) of the training rows for each α of (K, d), times the user's weights.

        The mean of the learned weights is one, where each row counts by the user's weight; at α = 0 they
        are exactly π / mean(π).
        """
        learned, _, mean = self._learned(self._checked_alphas(alphas))
        learned /= mean[:, None]  # in place, to save memory
        if self.sample_weight_ is not None:
            learned *= self.sample_weight_
        return learned

    def weight_function(self, alpha: FloatArray) -> WeightFunction:
        """The weight function for one α (d,), with the c of the training rows."""
        fixed = self._checked_alphas(np.asarray(alpha)[None])[0]
        _, log_top, mean = self._learned(fixed[None, :])
        return WeightFunction(fixed, float(log_top[0]), float(mean[0]), self.embedding, self.base_weights)

    def _learned(self, alphas: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """π · σ / (highest σ) (K, n) of the training rows, the log of that σ (K,), and the mean (K,)."""
        log_sigma = _log_sigma(self.Z_, alphas)
        u = self.sample_weight_
        if u is not None:
            # Rows of weight 0 must not set the scale, nor overflow on the scale of the others.
            log_sigma[:, u <= 0] = -np.inf
        log_top = log_sigma.max(axis=1)
        if not np.isfinite(log_top).all():
            raise InvalidInputError(
                f"alpha {alphas[np.argmin(log_top)]!r} makes zᵀα overflow for every training row; "
                "search in a smaller radius.",
                argument="radius",
            )
        relative = _relative(self.pi_, log_sigma, log_top)
        with np.errstate(over="ignore"):
            mean = mean_over_rows(relative, u)
        if not (np.isfinite(mean) & (mean > 0)).all():
            raise InvalidInputError(
                f"the base weights, {self.pi_.min():g} to {self.pi_.max():g}, are too small or too "
                "large to be brought to mean one; multiply them by a constant.",
                argument="base_weights",
            )
        return relative, log_top, mean

    def _checked_alphas(self, alphas: FloatArray) -> FloatArray:
        values = np.array(alphas, dtype=np.float64)
        if values.ndim != 2 or values.shape[1] != self.n_dims:
            raise InvalidInputError(f"alphas must have shape (K, {self.n_dims}), got {values.shape}.")
        if not np.isfinite(values).all():
            raise InvalidInputError("alphas must be finite numbers; some are NaN or infinite.")
        return values


def _log_sigma(Z: FloatArray, alphas: FloatArray) -> FloatArray:
    """log σ(zᵀα) (K, n) of rows Z (n, d) for alphas (K, d)."""
    # Scaling by powers of two is exact: sums of huge terms stay finite, and only the result may become
    # ±∞, where σ is 0 or 1.
    z_power = np.frexp(np.abs(Z).max(initial=0.0))[1]
    alpha_power = np.frexp(np.abs(alphas).max(axis=1, keepdims=True, initial=0.0))[1]
    small_z, small_alphas = np.ldexp(Z.T, -z_power, order="C"), np.ldexp(alphas, -alpha_power)
    total = np.zeros((len(alphas), len(Z)))
    term = np.empty(len(Z))
    # Summed dimension by dimension: the last digits of a matrix product depend on how many rows and
    # candidates it has, and a candidate's weights must be the same in every batch and chunk.
    for k, j in np.ndindex(small_alphas.shape):
        total[k] += np.multiply(small_alphas[k, j], small_z[j], out=term)
    with np.errstate(over="ignore"):
        np.ldexp(total, z_power + alpha_power, out=total)
        return np.asarray(log_expit(total, out=total))


def _relative(pi: FloatArray, log_sigma: FloatArray, log_top: FloatArray) -> FloatArray:
    """π · σ / exp(log_top) (K, n), exactly π if all σ are equal; overwrites `log_sigma`. c cancels the
    factor, which keeps a σ of 1e-1000 from becoming zero."""
    with np.errstate(over="ignore"):
        log_sigma -= log_top[:, None]
        np.exp(log_sigma, out=log_sigma)
        log_sigma *= pi
    return log_sigma


@has_state
@dataclass(frozen=True)
class AveragedWeights(_OfFields):
    """The average of several weight functions by their votes, which sum to one."""

    functions: tuple[Any, ...]
    votes: tuple[float, ...]

    @property
    def takes_columns(self) -> bool:
        return any(function.takes_columns for function in self.functions)

    @property
    def wanted_columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for function in self.functions for name in function.wanted_columns))

    def __call__(self, X: Features, y: Labels, columns: Any = None) -> FloatArray:
        """The weights (n,) of any rows."""
        total = np.zeros(len(y))
        for function, vote in zip(self.functions, self.votes, strict=True):
            total += vote * function(X, y, columns)
        return total

    @classmethod
    def from_state(cls, state: State, objects: Mapping[str, Any]) -> Self:
        return cls(tuple(load_state(one, objects) for one in state["functions"]), tuple(state["votes"]))


@has_state
@dataclass(frozen=True)
class TrainingRowsOnly(_OfFields):
    """In place of the weights of new rows, where only training rows have any."""

    def __call__(self, X: Features, y: Labels, columns: Any = None) -> FloatArray:
        """Raises: there are none."""
        raise InvalidInputError(
            "what is selected was trained with weights that are made for the training rows: other rows have "
            "none. Those of the training rows are sample_weight_.",
            argument="X",
        )


@has_state
@dataclass(frozen=True)
class PowerWeights(_OfFields):
    """The weight function ((y + shift) / scale)^exponent / mean, which does not look at X.

    Targets below `lowest`, that of the training rows, count as the lowest.
    """

    exponent: float
    shift: float
    scale: float
    mean: float
    lowest: float

    def __call__(self, X: Features, y: Labels, columns: Any = None) -> FloatArray:
        """The weights (n,) of any rows."""
        target = np.maximum(np.asarray(y, dtype=np.float64), self.lowest)
        return np.asarray(_powers(target, self.shift, self.scale, np.array([self.exponent]))[0] / self.mean)


class PowersOfTarget:
    """Weights y^α of the training rows for any exponent α, times the user's weights.

    Targets that are not all positive are lifted above zero first.

    Examples
    --------
    >>> PowersOfTarget(np.array([1.0, 2.0, 3.0])).training_weights(np.array([[0.0], [1.0]])).tolist()
    [[1.0, 1.0, 1.0], [0.5, 1.0, 1.5]]
    """

    n_dims = 1

    def __init__(self, y: Labels, sample_weight: FloatArray | None = None) -> None:
        target = np.asarray(y, dtype=np.float64)
        self.y, self.sample_weight = target, sample_weight
        self.lowest = float(target.min())
        # Targets that differ in their last digits only have no spread to speak of.
        spread = max(float(target.std()), 1e-9 * float(np.abs(target).max())) or 1.0
        self.shift = 0.0 if self.lowest > 0 else _ABOVE_ZERO * spread - self.lowest
        self.scale = float(np.median(target + self.shift))

    def training_weights(self, alphas: FloatArray) -> FloatArray:
        """The weights (K, n) for exponents (K, 1), each of mean one by the user's weights."""
        powers, mean = self._learned(np.asarray(alphas)[:, 0])
        weights = powers / mean[:, None]
        return weights if self.sample_weight is None else weights * self.sample_weight

    def weight_function(self, alpha: FloatArray) -> PowerWeights:
        """The weight function for one exponent (1,)."""
        exponent = float(np.asarray(alpha)[0])
        _, mean = self._learned(np.array([exponent]))
        return PowerWeights(exponent, self.shift, self.scale, float(mean[0]), self.lowest)

    def _learned(self, exponents: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The powers (K, n) of the training rows, and their means (K,)."""
        powers = _powers(self.y, self.shift, self.scale, exponents)
        return powers, mean_over_rows(powers, self.sample_weight)


def _powers(y: Labels, shift: float, scale: float, exponents: FloatArray) -> FloatArray:
    lifted = np.asarray(y, dtype=np.float64) + shift
    # A factor of a million in the target is as much as a weight can tell apart.
    return np.asarray((np.clip(lifted, 1e-6 * scale, 1e6 * scale) / scale) ** exponents[:, None])


class ListedWeighting:
    """One of several weights (K, n), which the nearest whole number to |α| names, times the user's own."""

    n_dims = 1

    def __init__(self, weights: FloatArray, own: FloatArray | None = None) -> None:
        self.weights = weights if own is None else weights * own

    def training_weights(self, alphas: FloatArray) -> FloatArray:
        """The weights (K, n) for alphas (K, 1)."""
        places = np.rint(np.abs(alphas[:, 0])).astype(int)
        return np.asarray(self.weights[np.minimum(places, len(self.weights) - 1)])


class RandomWeighting:
    """The paper's random weights of n rows; α and `seed` together seed the random numbers."""

    n_dims = 1

    def __init__(self, n: int, own: FloatArray | None, seed: int) -> None:
        self.weights = np.ones(n) if own is None else own
        self.seed = seed

    def training_weights(self, alphas: FloatArray) -> FloatArray:
        """Random weights (K, n) for alphas (K, 1), times the user's own weights."""
        bits = np.ascontiguousarray(alphas).view(np.uint32)
        rngs = [np.random.default_rng([self.seed, *row.tolist()]) for row in bits]
        drawn = np.stack([rng.uniform(*_RANDOM_RANGE, len(self.weights)) for rng in rngs])
        return np.asarray(drawn * self.weights)
