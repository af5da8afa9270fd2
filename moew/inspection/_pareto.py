"""All tried models by several metrics."""

from __future__ import annotations

from moew.exceptions import InvalidInputError
from moew.search import FittedSearch
from moew.search._pareto import ParetoFront


def pareto_front(fitted: FittedSearch) -> ParetoFront:
    """All models that a finished search tried, by all its metrics, and which of them are on the front."""
    if fitted.result.pareto is None:
        raise InvalidInputError(
            "the search has one metric; a front needs several: metric=[…, …].", argument="metric"
        )
    return fitted.result.pareto
