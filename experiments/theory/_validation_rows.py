"""Theorem 2 for a finished search: how many validation rows a wanted gap needs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from experiments.theory._theorem_2 import Theorem2, steepest_slope
from moew._util.numbers import number
from moew.exceptions import Argument, InvalidInputError
from moew.samplers import Ball
from moew.search import FittedSearch, MetricSearch, fitted_search

_LEAST_DISTANCE = 0.1  # of two alphas whose slope counts, as a share of the radius


@dataclass(frozen=True)
class ValidationRows:
    """How many validation rows a gap needs by Theorem 2; print it.

    Attributes
    ----------
    theorem : Theorem2, with the constants of the search
    gap : the wanted gap, in the metric's units
    rows : how many validation rows it needs
    rows_now : how many rows the search evaluated its candidates on
    gap_now : the bound with these; NaN where the theorem does not hold for so few
    metric : its name
    n_candidates : how many of them L_φ was estimated from
    """

    theorem: Theorem2
    gap: float
    rows: int
    rows_now: int
    gap_now: float
    metric: str
    n_candidates: int

    def __str__(self) -> str:
        t = self.theorem
        now = (
            f"with the {self.rows_now:,} rows of this search the bound is {number(self.gap_now, 2)}."
            if math.isfinite(self.gap_now)
            else f"for the {self.rows_now:,} rows of this search the theorem says nothing."
        )
        return "\n".join(
            [
                f"{self.metric}: by Theorem 2 the chosen example weights are at most {number(self.gap, 3)} "
                f"worse than the best ones, with probability {number(100 * (1 - t.delta), 3)} %, from "
                f"{self.rows:,} validation rows on;",
                now,
                f"d = {t.n_dims}, K = {t.n_metrics}, σ = {number(t.sigma, 3)}, L_Ψ = "
                f"{number(t.lipschitz_metric, 3)}, L_φ = {number(t.lipschitz_model, 3)} (the steepest slope "
                f"between {self.n_candidates} candidates; it may be steeper elsewhere).",
                "The bound is loose: where the truth is known, it is tens of times what the choice costs. It "
                "tells how the need for rows grows with dimensions and gap, not how many rows to get.",
            ]
        )


def validation_rows_for(
    search: MetricSearch | FittedSearch,
    gap: float,
    *,
    delta: float = 0.05,
    sigma: float | None = None,
    n_metrics: int = 1,
    lipschitz_metric: float = 1.0,
) -> ValidationRows:
    """How many validation rows Theorem 2 asks for, with L_φ estimated from the candidates of a search.

    By default the metric is taken as one mean of a loss that lies between the metric's bounds, which it is
    for accuracy. For a metric of several means, say how many there are and how steep it is in them. Only the
    product of L_Ψ, L_φ and √K, how steep the metric is in α, shows in the candidates' scores: L_φ is chosen
    so that it is the steepest slope between two candidates, for α in the unit ball.

    Parameters
    ----------
    search : a fitted search
    gap : how much worse than the best weights the chosen ones may be, in the metric's units
    delta : δ, the probability with which the bound may fail
    sigma : σ, with which every loss is sub-Gaussian; None: half the width of the metric's bounds
    n_metrics : K, the number of means that the metric is made of
    lipschitz_metric : L_Ψ, the Lipschitz constant of the metric in these means
    """
    fitted = fitted_search(search)
    domain, metric = fitted.study.domain, fitted.evaluator.metric
    if not isinstance(domain, Ball):
        raise InvalidInputError(
            "Theorem 2 is about α in a ball; this search also looked for hyper-parameters. Fit it without ",
            Argument("search_space"),
            ".",
            argument="search",
        )
    if sigma is None:
        low, high = metric.bounds or (-math.inf, math.inf)
        if not math.isfinite(high - low):
            raise InvalidInputError(
                f"the metric {metric.name!r} has no bounds that σ could follow from; pass ",
                Argument("sigma"),
                ", half the width of what the losses lie between.",
                argument="sigma",
            )
        sigma = (high - low) / 2
    trials = [trial for trial in fitted.result.trials if math.isfinite(trial.value)]
    alphas, values = np.stack([t.alpha for t in trials]), np.array([t.value for t in trials])
    slope = steepest_slope(alphas / domain.radius, values, _LEAST_DISTANCE)
    if math.isnan(slope):
        raise InvalidInputError(
            f"the search has {len(trials)} candidates with a score, too few or too near to each other to "
            "estimate how the metric changes with α; use more.",
            argument="search",
        )
    theorem = Theorem2(domain.n_dims, n_metrics, sigma, lipschitz_metric, 0.0, delta)  # checks its constants
    theorem = replace(theorem, lipschitz_model=slope / (lipschitz_metric * math.sqrt(n_metrics)))
    rows_now = fitted.result.n_validation + fitted.result.n_out_of_fold
    gap_now = theorem.bound(rows_now) if rows_now >= theorem.least_rows else math.nan
    return ValidationRows(theorem, gap, theorem.rows_for(gap), rows_now, gap_now, metric.name, len(trials))
