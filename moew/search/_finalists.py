"""What the ways chose, judged again by models of more folds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from moew.data import SearchData
from moew.metrics import Predictions
from moew.search._constrained import judge_of
from moew.search._judge import Choice, Judge
from moew.search._loop import train_folds
from moew.search._pool import Candidate, main_parameters, mean_weights
from moew.search._prepare import Prepared
from moew.types import FloatArray


@dataclass
class Finalists:
    """Judges what the ways chose by models of more folds, which are nearer to the final ones."""

    prepared: Prepared
    pool: Sequence[Candidate]
    judge: Judge
    notes: list[str]

    def __call__(self, chosen: Mapping[str, Choice]) -> tuple[Judge, dict[str, Choice]]:
        data, judge = self.prepared.data.for_finalists, self.judge
        average = self.prepared.settings.final == "average"
        joint = [c for c in chosen.values() if average and len(c.members) > 1]
        if not self.prepared.data.finalist_folds and not joint:
            return judge, dict(chosen)
        members = sorted({member for choice in chosen.values() for member in choice.members})
        weights = [self.pool[k].weights for k in members]
        seeds = [self.pool[k].trial.seed for k in members]
        parameters = [self.pool[k].trial.parameters for k in members]
        for choice in joint[:1]:  # both ways of example weights have the same members
            weights.append(mean_weights(self.pool, choice))
            seeds.append(self.pool[choice.members[0]].trial.seed)
            parameters.append(main_parameters(self.pool, choice))
        predictions = self._trained(data, weights, seeds, parameters)
        if predictions is None:
            return judge, dict(chosen)
        evaluator = self.prepared.evaluator
        final = judge_of(evaluator, data.validation, data.task, predictions, None, judge.effort)
        place = {member: k for k, member in enumerate(members)}
        moved = {name: self._moved(final, choice, place) for name, choice in chosen.items()}
        for name, choice in chosen.items():  # what is handed out must have a score
            if math.isnan(final.value(moved[name], final.every)) and self._has_value(choice):
                self.notes.append(
                    f"the finalists are judged by the search's folds: by theirs, the metric of {name!r} is "
                    "no finite number."
                )
                return judge, dict(chosen)
        return final, moved

    def _has_value(self, choice: Choice) -> bool:
        return not math.isnan(self.judge.value(choice, self.judge.every))

    def _moved(self, final: Judge, choice: Choice, place: Mapping[int, int]) -> Choice:
        if not choice.members:
            return replace(choice, rows=final.every)
        if len(choice.members) > 1 and self.prepared.settings.final == "average":
            moved = final.single(len(place), final.every)
        else:
            moved = final.joint(tuple(place[k] for k in choice.members), choice.votes, final.every)
        moved = moved if choice.tuned is None else final.tuned(moved) or moved
        return replace(moved, members=choice.members, votes=choice.votes)

    def _trained(
        self,
        data: SearchData,
        weights: Sequence[FloatArray],
        seeds: Sequence[int],
        parameters: Sequence[Mapping[str, Any]],
    ) -> list[Predictions] | None:
        evaluator, trainer = self.prepared.evaluator, self.prepared.trainer
        found: dict[int, Predictions] = {}
        for k, models in train_folds(trainer, data, np.stack(weights), seeds, parameters):
            try:
                if isinstance(models, Exception):
                    raise models
                found[k] = evaluator.predictions(models, data).compact()
            except Exception as error:  # must not lose the result of the search
                self.notes.append(f"the finalists are judged by the search's folds: {error}")
                return None
        return [found[k] for k in range(len(seeds))]
