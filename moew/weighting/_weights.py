"""Example weights by eq. 3: w(x, y; α) = c · π · σ(z(x, y)ᵀ α), with mean one over the training rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, TypeGuard

import numpy as np
from scipy.special import log_expit

from moew._util.state import State, Stateful, has_state, load_state, pack_array, unpack_array
from moew.data._read_only import read_only
from moew.exceptions import InvalidInputError
from moew.types import BaseWeights, Columns, Embedding, EmbeddingOfColumns, FloatArray, Labels, Rows, Task
from moew.weighting._base_weights import checked_base_weights
from moew.weighting._normalise import mean_over_rows


@has_state
@dataclass(frozen=True, eq=False)  # == of arrays is an array
class WeightFunction(Stateful):
    """The weight function w(x, y) for one α, with c, embedding and base weights fixed."""

    state_home = "moew.weighting"

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
        """Whether the weights depend on per-row columns beside X."""
        return takes_columns(self.embedding)

    @property
    def wanted_columns(self) -> tuple[str, ...]:
        """Names of columns that the embedding was asked for, of X or beside it."""
        return tuple(getattr(self.embedding, "wanted_columns", ()))

    def __call__(self, X: Rows, y: Labels, columns: Columns | None = None) -> FloatArray:
        """The weights (n,) of any rows; their mean over the training rows is one.

        `columns`, name → (n,), are those that the embedding had in training, if it takes any and X does not
        have them.

        Infinite if an extreme α favours a new row by more than a factor of 1e308.
        """
        Z = _coordinates(self.embedding, X, y, columns)
        pi = checked_base_weights(self.base_weights.weights(X, y), len(y), type(self.base_weights).__name__)
        log_sigma = _log_sigma(Z, self.alpha[None, :])
        with np.errstate(over="ignore"):
            return np.asarray(_relative(pi, log_sigma, np.array([self.log_top]))[0] / self.mean)

    def _content(self) -> State:
        return {
            "alpha": pack_array(self.alpha),
            "log_top": self.log_top,
            "mean": self.mean,
            "embedding": self.embedding.state(),
            "base_weights": self.base_weights.state(),
        }

    @classmethod
    def from_state(cls, state: State, objects: Mapping[str, Any]) -> Self:
        """The weight function that `state()` described."""
        return cls(
            unpack_array(state["alpha"]),
            float(state["log_top"]),
            float(state["mean"]),
            load_state(state["embedding"], objects),
            load_state(state["base_weights"], objects),
        )


def takes_columns(embedding: object) -> TypeGuard[EmbeddingOfColumns]:
    """Whether the embedding takes per-row columns."""
    return bool(getattr(embedding, "takes_columns", False))


def _coordinates(embedding: Embedding, X: Rows, y: Labels, columns: Columns | None) -> FloatArray:
    if takes_columns(embedding):
        return embedding.transform(X, y, columns=columns)
    return embedding.transform(X, y)


class ExampleWeighting:
    """Computes the weights of the training rows, and the weight function, for any α.

    `fit` fits the embedding and the base weights.

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
        X: Rows,
        y: Labels,
        X_val: Rows = None,
        y_val: Labels = None,
        *,
        task: Task,
        sample_weight: Any = None,
        columns: Columns | None = None,
    ) -> Self:
        """Fit on the n training rows and the validation rows; `sample_weight` (n,) are the user's weights.

        `columns`, name → (n,), are columns of the training rows for an embedding that takes them.
        """
        self.sample_weight_ = _checked_sample_weight(sample_weight, len(y))
        X, y, X_val, y_val = (read_only(part) for part in (X, y, X_val, y_val))
        pi = self.base_weights.fit_weights(X, y, X_val, y_val, task=task)
        if takes_columns(self.embedding):
            columns = {name: read_only(values) for name, values in (columns or {}).items()}
            self.embedding.fit(X, y, task=task, columns=columns)
        else:
            self.embedding.fit(X, y, task=task)
        self.Z_ = _coordinates(self.embedding, X, y, columns)
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
    """π · σ / exp(log_top) (K, n); c cancels this factor, which keeps a σ of 1e-1000 from becoming zero.

    Overwrites `log_sigma`. If all σ are equal, as for α = 0, the result is exactly π.
    """
    with np.errstate(over="ignore"):
        log_sigma -= log_top[:, None]
        np.exp(log_sigma, out=log_sigma)
        log_sigma *= pi
    return log_sigma


def _checked_sample_weight(sample_weight: Any, n_rows: int) -> FloatArray | None:
    if sample_weight is None:
        return None
    u = np.asarray(sample_weight, dtype=np.float64)
    if u.shape != (n_rows,) or not np.isfinite(u).all() or (u < 0).any() or u.sum() == 0:
        raise InvalidInputError(
            f"sample_weight must be {n_rows} finite numbers of at least 0, not all 0; got shape {u.shape}"
            f"{'' if u.shape != (n_rows,) else f' with values from {u.min()} to {u.max()}'}.",
            argument="sample_weight",
        )
    return u
