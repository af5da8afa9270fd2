"""What is handed out: its models, trained on all training rows, with their decisions and probabilities."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from moew._printable import shortened
from moew.data import LabelledRows
from moew.exceptions import MoewWarning, SearchFailedError
from moew.models import ModelEnsemble
from moew.search._calibrate import JudgedPredictions, Members, calibrate
from moew.search._evaluate import FinalModel, constant_model
from moew.search._judge import Choice
from moew.search._loop import train_folds, train_one
from moew.search._pool import Candidate, main_parameters, mean_weights
from moew.search._prepare import Prepared
from moew.search._searches import unweighted_function
from moew.types import FloatArray
from moew.weighting import AveragedWeights


@dataclass(frozen=True)
class HandedOut:
    """What is handed out: the model for new rows, and the weights it was trained with."""

    model: FinalModel
    weights: FloatArray
    weight_function: Any


def hand_out(prepared: Prepared, pool: Sequence[Candidate], choice: Choice) -> HandedOut:
    """Train the choice's models on all training rows."""
    data, evaluator = prepared.data, prepared.evaluator
    whole = data.without_folds()
    if not choice.members:
        return hand_out_constant(prepared, choice)
    members = [pool[k] for k in choice.members]
    weights = mean_weights(pool, choice) if len(members) > 1 else members[0].weights
    functions = tuple(m.study.weight_function(m.trial) for m in members)
    function = functions[0] if len(members) == 1 else AveragedWeights(functions, tuple(choice.votes.tolist()))
    if len(members) == 1 or prepared.settings.final == "average":
        parameters = main_parameters(pool, choice)
        model = train_one(prepared.trainer, whole, weights, members[0].trial.seed, parameters)[0]
    else:
        stacked, seeds = np.stack([m.weights for m in members]), [m.trial.seed for m in members]
        trained: dict[int, Any] = {}
        each = [m.trial.parameters for m in members]
        for k, found in train_folds(prepared.trainer, whole, stacked, seeds, each):
            if isinstance(found, Exception):
                raise SearchFailedError(f"the model could not be trained: {found}") from found
            trained[k] = found[0]
        model = ModelEnsemble([trained[k] for k in range(len(members))], choice.votes)
    return HandedOut(evaluator.final_model(model, choice.predictions, data, choice.tuned), weights, function)


def hand_out_constant(prepared: Prepared, choice: Choice) -> HandedOut:
    """A model that predicts a constant."""
    training, evaluator = prepared.data.training, prepared.evaluator
    classifies = prepared.data.task == "classification"
    model = constant_model(choice.constant, training.X, training.y, classifies=classifies)
    ones = unweighted_function(prepared)
    return HandedOut(
        FinalModel(model, None, evaluator.classes, evaluator.pos_label), training.own_weights, ones
    )


def with_probabilities(
    prepared: Prepared,
    pool: Sequence[Candidate],
    choice: Choice,
    final: HandedOut,
    rows: LabelledRows,
    notes: list[str],
) -> tuple[HandedOut, JudgedPredictions]:
    """What is handed out with calibrated probabilities where they are asked for; and its predictions on the
    judged rows, `rows`."""
    method, judged = prepared.settings.calibrate, JudgedPredictions(rows, choice.predictions)
    if method is None:
        return final, judged
    chosen = [pool[k] for k in choice.members]
    votes = choice.votes
    weights, parameters = [m.weights for m in chosen], [m.trial.parameters for m in chosen]
    if len(chosen) > 1 and prepared.settings.final == "average":
        weights, parameters = [mean_weights(pool, choice)], [main_parameters(pool, choice)]
        chosen, votes = chosen[:1], np.ones(1)
    members = Members(weights, [m.trial.seed for m in chosen], parameters, votes)
    try:
        fitted, raw, calibrated = calibrate(
            method,
            prepared.evaluator,
            prepared.trainer,
            prepared.data.for_finalists,
            members,
            final.model.model,
            prepared.seed,
        )
    except Exception as error:  # must not lose the result of the search
        told = shortened(f"the probabilities could not be calibrated: {error}")
        notes.append(told)
        warnings.warn(MoewWarning(told, argument="calibrate"), stacklevel=5)
        return final, judged
    model = replace(final.model, calibration=fitted)
    return replace(final, model=model), replace(judged, raw=raw, calibrated=calibrated)
