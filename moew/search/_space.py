"""Hyper-parameters that are searched: the user's distributions as coordinates of a cube.

Each parameter is one coordinate from −half_width to half_width. Numbers lie on it in proportion, or in
proportion to their logarithm; whole numbers, steps and choices have equal parts of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from moew.exceptions import InvalidInputError
from moew.types import FloatArray

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

    SearchSpace = Mapping[str, BaseDistribution] | None


@dataclass(frozen=True)
class ParameterSpace:
    """The distributions by name, and the values that the estimator itself has."""

    distributions: Mapping[str, Any]
    own: Mapping[str, Any]
    half_width: float

    @property
    def n_dims(self) -> int:
        """How many parameters there are."""
        return len(self.distributions)

    @property
    def start(self) -> FloatArray:
        """The coordinates (p,) nearest to the estimator's own values; the middle for those that have none,
        such as None."""
        return self.coordinates(self.own)

    def values(self, coordinates: FloatArray) -> dict[str, Any]:
        """The parameters at coordinates (p,)."""
        shares = np.clip((np.asarray(coordinates) / self.half_width + 1) / 2, 0.0, 1.0).tolist()
        pairs = zip(self.distributions.items(), shares, strict=True)
        return {name: _value(distribution, share) for (name, distribution), share in pairs}

    def coordinates(self, values: Mapping[str, Any]) -> FloatArray:
        """The coordinates (p,) of parameters; `values` gives the same parameters for them, up to rounding."""
        shares = [_share(distribution, values[name]) for name, distribution in self.distributions.items()]
        return np.asarray(self.half_width * (2 * np.array(shares) - 1))


def resolve_space(
    given: SearchSpace, estimator: Any, weight_name: str, half_width: float
) -> ParameterSpace | None:
    """The space to search, checked against the estimator; None if there is nothing to search."""
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise InvalidInputError(
            "search_space must map names of parameters to Optuna distributions, such as "
            f"{{'C': FloatDistribution(1e-3, 1e3, log=True)}}; got {given!r}.",
            argument="search_space",
        )
    if not given:
        return None
    from moew.search._tpe import KINDS  # loads Optuna

    parameters = estimator.get_params()
    for name, distribution in given.items():
        _check_name(name, parameters, given, weight_name)
        if not isinstance(distribution, KINDS):
            raise _refused(
                name,
                f"needs an Optuna distribution, such as FloatDistribution(0.1, 10.0); got {distribution!r}.",
            )
        if distribution.single():
            raise _refused(
                name, f"has a single value in {distribution}: set it as the estimator's own parameter."
            )
    return ParameterSpace(dict(given), {name: parameters[name] for name in given}, half_width)


def _check_name(name: Any, parameters: Mapping[str, Any], given: Mapping[str, Any], weight_name: str) -> None:
    if name == weight_name:
        raise _refused(name, "is the name of the example weights, which are searched already.")
    if name not in parameters:
        raise _refused(name, f"is no parameter of the estimator; it has {', '.join(sorted(parameters))}.")
    inside = [other for other in given if isinstance(other, str) and other.startswith(f"{name}__")]
    if inside:
        raise _refused(name, f"is searched already by its part {inside[0]!r}; name one of them.")


def _refused(name: Any, why: str) -> InvalidInputError:
    return InvalidInputError(f"search_space: {name!r} {why}", argument="search_space")


def _value(distribution: Any, share: float) -> Any:
    """The value at a share of the way from the lowest to the highest."""
    if hasattr(distribution, "choices"):
        return distribution.choices[_part(share, len(distribution.choices))]
    low, high, step = distribution.low, distribution.high, distribution.step
    if distribution.log:
        first, last = _log_ends(distribution)
        value = math.exp(first + share * (last - first))
        return min(max(value if step is None else round(value), low), high)
    if step is None:
        return min(max(low + share * (high - low), low), high)
    return min(low + step * _part(share, _n_steps(distribution)), high)


def _share(distribution: Any, value: Any) -> float:
    """The inverse of `_value`: values outside count as the nearest, and what is no value as the middle."""
    if hasattr(distribution, "choices"):
        same = [i for i, c in enumerate(distribution.choices) if type(c) is type(value) and c == value]
        return (same[0] + 0.5) / len(distribution.choices) if same else 0.5
    if not isinstance(value, Real) or math.isnan(value):
        return 0.5
    low, high = float(distribution.low), float(distribution.high)
    inside = min(max(float(value), low), high)
    if distribution.log:
        first, last = _log_ends(distribution)
        return (math.log(inside) - first) / (last - first)
    if distribution.step is None:
        return (inside - low) / (high - low)
    step = float(distribution.step)
    return (round((inside - low) / step) + 0.5) / _n_steps(distribution)


def _log_ends(distribution: Any) -> tuple[float, float]:
    """The logarithms of the ends; whole numbers reach half of one further, so that each has its part."""
    half = 0.0 if distribution.step is None else 0.5
    return math.log(distribution.low - half), math.log(distribution.high + half)


def _n_steps(distribution: Any) -> int:
    width = float(distribution.high - distribution.low)
    return round(width / float(distribution.step)) + 1


def _part(share: float, n: int) -> int:
    """Which of n equal parts a share lies in."""
    return min(int(share * n), n - 1)
