"""Density ratios of validation rows to training rows as weights: by label, by features, and by both."""

from __future__ import annotations

import contextlib
import warnings

import numpy as np
from scipy.stats import chi2_contingency

from moew._util.seeds import integer_seed
from moew.embedding import LabelEmbedding
from moew.exceptions import InvalidInputError, MoewWarning
from moew.search._loop import Search
from moew.search._prepare import Prepared, given_by_weight
from moew.search._strategies._strategy import SAME, Share, Strategy, ball_search
from moew.search._strategies.unweighted import Unweighted
from moew.types import FloatArray
from moew.weighting import BaseWeightsEstimator, CovariateShift, ExampleWeighting, JointShift, LabelShift

BY_LABEL, BY_FEATURES, BY_BOTH = (f"importance weights by {what}" for what in ("label", "features", "both"))
_NO_CHANCE = 0.05  # the p-value of a difference beyond chance; see moew/_util/margins.py


class ImportanceWeights(Strategy):
    """Up to three trainings, one for each shift that the validation rows are seen to have; in a comparison
    all ratios that can be estimated."""

    name = "importance weights"
    can_be_tuned = False
    begins_with = Unweighted.name

    def searches(self, prepared: Prepared, share: Share, alone: bool = False) -> list[Search]:
        return [
            ball_search(prepared, self, weighting, name=name)
            for name, weighting in importance_weightings(prepared).items()
            if _is_seen(prepared, name, weighting)
        ]

    def fixed(self, prepared: Prepared) -> tuple[FloatArray, str] | None:
        found = importance_weightings(prepared)
        if not found:
            no_shift = (
                "a shift of these rows is not estimated"
                if prepared.data.given_validation
                else "no validation rows were given, so there is no shift to weight for"
            )
            return np.ones((1, len(prepared.data.training))), f"{no_shift}: unweighted."
        ratios = np.stack([weighting.pi_ for weighting in found.values()])
        by = ", ".join(name.removeprefix(f"{self.name} by ") for name in found)
        return ratios / ratios.mean(axis=1, keepdims=True), f"the best by {by}."


def importance_weightings(prepared: Prepared) -> dict[str, ExampleWeighting]:
    """Weightings whose weights at α = 0 are a density ratio of validation to training rows: by label, by
    features, and by both; without those that cannot be estimated."""
    if not prepared.data.given_validation:
        return {}
    training, given, task = prepared.data.training, given_by_weight(prepared), prepared.data.task
    seed = integer_seed(prepared.seed, "importance")
    shifts: dict[str, BaseWeightsEstimator] = {BY_LABEL: LabelShift()}
    if not hasattr(training.X, "tocsr"):
        shifts[BY_FEATURES] = CovariateShift(random_state=seed)
        shifts[BY_BOTH] = JointShift(random_state=seed)
    found = {}
    for name, shift in shifts.items():
        # Columns and labels may be such that a ratio cannot be estimated, or there are too few rows.
        with contextlib.suppress(InvalidInputError), warnings.catch_warnings():
            warnings.simplefilter("ignore", MoewWarning)  # of classes that the validation rows lack
            found[name] = ExampleWeighting(LabelEmbedding(), shift).fit(
                training.X, training.y, given.X, given.y, task=task, sample_weight=training.sample_weight
            )
    return found


def _is_seen(prepared: Prepared, name: str, weighting: ExampleWeighting) -> bool:
    """Whether the density ratio differs from one beyond chance; shares of classes always differ a little."""
    if np.ptp(weighting.pi_) <= SAME:
        return False
    if name != BY_LABEL or prepared.data.task == "regression":
        return True  # the estimate is one where no shift is seen
    labels = [prepared.data.training.y, given_by_weight(prepared).y]
    counts = [[np.count_nonzero(y == label) for label in np.unique(labels[0])] for y in labels]
    return bool(chi2_contingency(counts).pvalue < _NO_CHANCE)
