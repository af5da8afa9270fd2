"""Metrics of predicted numbers: R² and the relative error in the worst band."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from moew.exceptions import InvalidInputError, UndefinedMetricError
from moew.metrics._metric import FunctionMetric, of_moew
from moew.types import FloatArray

_ROUNDINGS = 4  # units in the last place that two logarithms of one number may be apart


@dataclass(frozen=True)
class _RSquared:
    def __call__(self, y_true: Any, prediction: Any, *, sample_weight: Any = None) -> float:
        y = np.asarray(y_true, dtype=np.float64)
        residual = y - np.asarray(prediction, dtype=np.float64)
        if y.size < 2:
            return float("nan")
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        if weight is not None and weight.sum() == 0:
            raise UndefinedMetricError("R² needs a row with weight above 0.")
        spread = y - np.average(y, weights=weight)
        left, total = (
            (float(e @ e) if weight is None else float(e * weight @ e)) for e in (residual, spread)
        )
        if total == 0:
            return 1.0 if left == 0 else 0.0
        return 1 - left / total


@of_moew
def r_squared() -> FunctionMetric:
    """The share of the variance explained: 1 − Σ(y − ŷ)² / Σ(y − ȳ)². Higher is better.

    The same as scikit-learn's R², computed many times faster. NaN on fewer than two rows.

    Examples
    --------
    >>> r_squared()([1.0, 2.0, 3.0], [1.0, 2.0, 2.0])
    0.5
    """
    return FunctionMetric(
        _RSquared(),
        "decision",
        True,
        "R²",
        bounds=(-math.inf, 1.0),
    )


@dataclass(frozen=True)
class _WorstBandRelativeError:
    thresholds: tuple[float, ...]
    inverse: Literal["exp"] | None

    def __call__(self, y_true: Any, prediction: Any, *, sample_weight: Any = None) -> float:
        y = np.asarray(y_true, dtype=np.float64)
        predicted = np.asarray(prediction, dtype=np.float64)
        band = np.searchsorted(self._edges(y_true), y)  # 0 for y ≤ the first threshold, …
        if not y.size:
            raise UndefinedMetricError("the worst-band relative error needs at least one row.")
        with np.errstate(over="ignore", invalid="ignore"):  # a diverged model has an infinite error
            if self.inverse == "exp":
                y, predicted = np.exp(y), np.exp(predicted)
            if not y.all():
                raise InvalidInputError(
                    "the relative error |ŷ/y − 1| has no value where y is 0; leave those rows out.",
                    argument="y",
                )
            error = np.abs(predicted / y - 1)
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        size = np.bincount(band, weights=weight)
        total = np.bincount(band, weights=error if weight is None else error * weight)
        present = size > 0
        if not present.any():
            raise UndefinedMetricError("the worst-band relative error needs a row with weight above 0.")
        return float((total[present] / size[present]).max())

    def _edges(self, y_true: Any) -> FloatArray:
        """The thresholds on the scale of the labels.

        exp(log(42)) is above 42, so a row at a threshold would change its band if labels were transformed.
        Logarithms are known up to rounding in the labels' precision, and equal ones count as such.
        """
        cuts = np.asarray(self.thresholds, dtype=np.float64)
        if self.inverse is None:
            return cuts
        logs = np.log(np.maximum(cuts, np.finfo(np.float64).tiny))
        given = np.asarray(y_true).dtype
        precision = np.finfo(given if given.kind == "f" else np.float64).eps
        return np.asarray(logs + _ROUNDINGS * precision * np.maximum(np.abs(logs), 1))


@of_moew
def worst_band_relative_error(
    thresholds: Sequence[float] = (17.0, 25.0, 42.0), inverse: Literal["exp"] | None = None
) -> FunctionMetric:
    """The highest mean relative error of any band of y. Lower is better.

    ``max_i E[|ŷ/y − 1| : y in band i]``.

    The paper's metric for wine prices, whose quartiles are 17, 25 and 42 dollars: bands y ≤ 17, ≤ 25,
    ≤ 42 and above. A model that is good only for common prices does badly. Bands without rows are left
    out. inverse="exp" is for a target that is the logarithm: errors are those of exp(y) and exp(ŷ), and
    thresholds are in the original units. A row at a threshold belongs to the band below it.

    Examples
    --------
    >>> worst_band_relative_error(thresholds=(15.0,))([10.0, 20.0], [11.0, 10.0])  # 10 % and 50 % off
    0.5
    """
    try:
        cuts = tuple(float(t) for t in thresholds)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"thresholds must be numbers, got {thresholds!r}.", argument="thresholds"
        ) from error
    if not np.isfinite(cuts).all() or any(a >= b for a, b in pairwise(cuts)):
        raise InvalidInputError(
            f"thresholds must be finite and rising, got {thresholds!r}.", argument="thresholds"
        )
    if inverse not in (None, "exp"):
        raise InvalidInputError(f"inverse must be None or 'exp', got {inverse!r}.", argument="inverse")
    function = _WorstBandRelativeError(cuts, inverse)
    return FunctionMetric(
        function,
        "decision",
        False,
        "worst-band relative error",
        bounds=(0.0, math.inf),
    )
