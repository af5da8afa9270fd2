"""The losses φ₁, …, φ_K of a classifier, as Theorem 1 has them: ℓ_k(x, y) = φ_k(x, y)ᵀ L(h(x), y).

L has a dimension for each predicted class, which is 1 for the class that is predicted and else 0, and
φ_k(x, y) is what each of these predictions costs. The costs depend on the row through its kind alone: its
class, or its class and group, or, with a kind for each row, anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from moew.exceptions import InvalidInputError
from moew.types import Array, FloatArray, IntArray, Labels


@dataclass(frozen=True, eq=False)  # == of arrays is an array
class Losses:
    """K losses of n rows: what each prediction costs, by the kind of the row.

    Parameters
    ----------
    classes : (C,), the classes that can be predicted
    kinds : (n,), the kind of each row, from 0 to G − 1
    costs : (K, G, C), of at least 0: what loss k counts where a row of kind g is predicted as class j
    names : (K,), of the losses
    sample_weight : (n,), how much each row counts; None: the same. Where the rows that matter are distributed
        otherwise than the training rows, the density ratio f / f′ of the proof
    """

    classes: Array
    kinds: IntArray
    costs: FloatArray
    names: tuple[str, ...]
    sample_weight: FloatArray | None = None

    def __post_init__(self) -> None:
        K, G, C = len(self.names), int(self.kinds.max(initial=0)) + 1, len(self.classes)
        if self.costs.shape != (K, max(G, self.costs.shape[1] if self.costs.ndim == 3 else 0), C):
            raise InvalidInputError(
                f"costs must have shape (K, G, C) with K = {K} names, at least {G} kinds of rows and C = {C} "
                f"classes, got {self.costs.shape}.",
                argument="costs",
            )
        if not np.isfinite(self.costs).all() or (self.costs < 0).any():
            raise InvalidInputError("costs must be finite numbers of at least 0.", argument="costs")
        _check_weights(self.sample_weight, len(self.kinds))

    def __len__(self) -> int:
        return len(self.names)

    @property
    def row_weights(self) -> FloatArray:
        """How much each row counts (n,), with mean one."""
        if self.sample_weight is None:
            return np.ones(len(self.kinds))
        return np.asarray(self.sample_weight / self.sample_weight.mean())

    def of(self, predicted: Labels) -> FloatArray:
        """The losses (K,) of predicted labels (n,)."""
        codes = codes_in(predicted, self.classes, "predicted")
        if codes.shape != self.kinds.shape:
            raise InvalidInputError(
                f"predicted must hold a label for each of the {len(self.kinds)} rows, got {len(codes)}.",
                argument="predicted",
            )
        counts = np.zeros(self.costs.shape[1:])
        np.add.at(counts, (self.kinds, codes), self.row_weights / len(codes))
        return np.asarray(np.einsum("kgc,gc->k", self.costs, counts))

    def example_costs(self, weights: FloatArray) -> FloatArray:
        """w(x, y) of the proof (n, C) for weights β (K,) of the losses: Σ β_k φ_k(x, y), times the row's
        weight."""
        by_kind = np.einsum("k,kgc->gc", weights, self.costs)
        return np.asarray(by_kind[self.kinds] * self.row_weights[:, None])


def class_errors(y: Labels, sample_weight: Any = None) -> Losses:
    """The error of each class: φ_c = P(ŷ ≠ c | y = c), K = C.

    Examples
    --------
    >>> class_errors(["a", "a", "a", "b"]).of(["a", "b", "a", "b"]).round(3).tolist()
    [0.333, 0.0]
    """
    classes, kinds, given = _rows(y, sample_weight)
    n = len(classes)
    shares = np.bincount(kinds, given, n) / (len(kinds) if given is None else given.sum())
    if not (shares > 0).all():
        raise InvalidInputError(
            f"no row of class {classes.tolist()[int(np.argmin(shares))]!r} has weight.",
            argument="sample_weight",
        )
    costs = (np.eye(n) / shares)[:, :, None] * (1 - np.eye(n))
    return Losses(classes, kinds, costs, tuple(f"error of {label}" for label in classes.tolist()), given)


def confusion_cells(y: Labels, sample_weight: Any = None) -> Losses:
    """The cells of the confusion matrix off its diagonal: P(y = c, ŷ = j) for c ≠ j, K = C·(C − 1), by rows.

    Examples
    --------
    >>> cells = confusion_cells(["a", "a", "a", "b"])
    >>> cells.names, cells.of(["a", "b", "a", "b"]).tolist()
    (('a as b', 'b as a'), [0.25, 0.0])
    """
    classes, kinds, given = _rows(y, sample_weight)
    n = len(classes)
    cells = [(c, j) for c in range(n) for j in range(n) if c != j]
    costs = np.zeros((len(cells), n, n))
    for k, (c, j) in enumerate(cells):
        costs[k, c, j] = 1.0
    labels = classes.tolist()
    return Losses(classes, kinds, costs, tuple(f"{labels[c]} as {labels[j]}" for c, j in cells), given)


def codes_in(labels: Labels, classes: Array, argument: str) -> IntArray:
    """The place (n,) of each label among the sorted classes (C,)."""
    given = np.asarray(labels)
    places = np.minimum(np.searchsorted(classes, given), len(classes) - 1)
    if (strange := given[classes[places] != given]).size:
        raise InvalidInputError(
            f"the label {strange[:1].tolist()[0]!r} is not one of the classes {classes.tolist()[:10]}.",
            argument=argument,
        )
    return np.asarray(places)


def _rows(y: Labels, sample_weight: Any) -> tuple[Array, IntArray, FloatArray | None]:
    labels = np.asarray(y)
    if labels.ndim != 1 or not labels.size:
        raise InvalidInputError(
            f"y must hold a label for each row, got an array of shape {labels.shape}.", argument="y"
        )
    classes, kinds = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise InvalidInputError(f"y needs at least two classes, got {classes.tolist()}.", argument="y")
    given = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    _check_weights(given, len(labels))
    return classes, kinds, given


def _check_weights(weights: FloatArray | None, n: int) -> None:
    if weights is not None and (
        weights.shape != (n,) or not (weights >= 0).all() or not 0 < weights.sum() < np.inf
    ):
        raise InvalidInputError(
            f"sample_weight must be {n} finite numbers of at least 0, not all 0.", argument="sample_weight"
        )
