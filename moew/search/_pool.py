"""All candidates of a search and of its simple ways, in one list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from moew.metrics import Predictions
from moew.search._judge import Choice
from moew.search._loop import Outcome, Search
from moew.search._prepare import Prepared
from moew.search._searches import simple_name, zero_is_unweighted
from moew.search._study import Trial, WeightStudy
from moew.search._ways import UNWEIGHTED, WEIGHTS
from moew.types import FloatArray


@dataclass(frozen=True)
class Candidate:
    """A trained weighting: the study and trial it comes from, and what it predicted on the judged rows."""

    study: WeightStudy
    trial: Trial
    predictions: Predictions
    value: float

    @property
    def weights(self) -> FloatArray:
        """The weights (n,) of the training rows."""
        return self.study.training_weights(self.trial)


def pool_of(
    prepared: Prepared, searches: Mapping[str, Search], outcomes: Mapping[str, Outcome]
) -> tuple[list[Candidate], dict[str, list[int]]]:
    """All candidates that have a value, the unweighted model first if it has one, and their places by way."""
    pool: list[Candidate] = []
    numbers: dict[str, list[int]] = {UNWEIGHTED: []}
    holder = _holder_of_unweighted(prepared, searches)
    for name, outcome in sorted(outcomes.items(), key=lambda item: item[0] != holder):
        study = searches[name].study
        for trial in outcome.trials:
            if trial.number not in outcome.predictions:
                continue
            way = name
            if trial.number == 0 and name == holder:
                way = UNWEIGHTED
            numbers.setdefault(way, []).append(len(pool))
            pool.append(Candidate(study, trial, outcome.predictions[trial.number], trial.value))
    return pool, numbers


def _holder_of_unweighted(prepared: Prepared, searches: Mapping[str, Search]) -> str:
    """The search whose first candidate is the unweighted model; see `list_searches`."""
    if zero_is_unweighted(prepared, searches[WEIGHTS].weighting):
        return WEIGHTS
    return simple_name(prepared)


def unweighted_error(
    prepared: Prepared, searches: Mapping[str, Search], outcomes: Mapping[str, Outcome]
) -> str:
    """Why the unweighted model has no value."""
    first = outcomes[_holder_of_unweighted(prepared, searches)].trials[0]
    return first.error or "its metric is undefined"


def mean_weights(pool: Sequence[Candidate], choice: Choice) -> FloatArray:
    """The members' weights (n,), averaged by their votes."""
    mean: FloatArray = sum(
        (vote * pool[k].weights for k, vote in zip(choice.members, choice.votes.tolist(), strict=True)),
        start=np.zeros(1),
    )
    return mean


def main_parameters(pool: Sequence[Candidate], choice: Choice) -> Mapping[str, Any]:
    """The hyper-parameters of the member with the most votes, the first of equals."""
    return pool[choice.members[int(np.argmax(choice.votes))]].trial.parameters
