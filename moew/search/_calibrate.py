"""Probabilities of what is handed out, calibrated on the judged rows.

The final models are trained on all training rows, so their own scores there cannot be used. The curves are
fitted on scores of models with the same weights that were trained without the row: those of the finalists'
folds. On validation rows alone, these are the final models themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from moew._util.seeds import generator
from moew.data import LabelledRows, SearchData, read_only
from moew.data._groups import count_groups
from moew.data._splits import stratified_halves
from moew.exceptions import Argument, InvalidInputError, SearchFailedError
from moew.metrics import Predictions, model_name
from moew.models._calibration import (
    Calibration,
    can_be_calibrated,
    fit_calibration,
    scores_to_calibrate,
)
from moew.models._votes import weighted_mean
from moew.search._evaluate import Evaluator, answering_alone
from moew.search._loop import train_folds
from moew.types import Array, FloatArray, Task, Trainer

_FEWEST = 2  # judged rows of a class


@dataclass(frozen=True)
class JudgedPredictions:
    """The judged rows with what the models of what is handed out predicted there that did not see them."""

    rows: LabelledRows
    predictions: Predictions
    raw: FloatArray | None = None  # (n, C), probabilities before calibration; None if the model has none
    calibrated: FloatArray | None = None  # (n, C), by curves that were fitted on the other half of the rows


def check_calibrate(method: Any, estimator: Any, task: Task, data: SearchData, classes: Array | None) -> None:
    """Raise, before anything is trained, if probabilities cannot be calibrated."""
    if method is None:
        return
    if task != "classification" or classes is None:
        raise InvalidInputError(
            Argument("calibrate", method),
            f" is for classifiers, but {model_name(estimator)} predicts numbers; leave it out.",
            argument="calibrate",
        )
    if not can_be_calibrated(estimator):
        raise InvalidInputError(
            Argument("calibrate", method),
            f" needs scores, but {model_name(estimator)} gives labels only (no decision_function, no "
            "predict_proba); use a model that has scores, or leave it out.",
            argument="calibrate",
        )
    y = data.validation.y
    if (unknown := np.setdiff1d(y, classes)).size:
        raise InvalidInputError(
            Argument("calibrate", method),
            f" needs labels of the classes {classes.tolist()[:10]!r}, but some of the judged rows have "
            f"{unknown[:3].tolist()}; leave it out.",
            argument="calibrate",
        )
    counts = {label: int(np.count_nonzero(y == label)) for label in classes.tolist()}
    if few := [label for label, n in counts.items() if n < _FEWEST]:
        raise InvalidInputError(
            Argument("calibrate", method),
            f" needs {_FEWEST} judged rows of every class at least, and there are fewer of {few[:5]}; give "
            "more validation rows, or leave it out.",
            argument="calibrate",
        )


@dataclass(frozen=True)
class Members:
    """The models of what is handed out: how they are trained, how much each counts; none of a constant."""

    weights: Sequence[FloatArray]
    seeds: Sequence[int]
    parameters: Sequence[Mapping[str, Any]]
    votes: FloatArray


def calibrate(
    method: str,
    evaluator: Evaluator,
    trainer: Trainer,
    data: SearchData,
    members: Members,
    model: Any,
    seed: int,
) -> tuple[Calibration, FloatArray | None, FloatArray | None]:
    """The curves for the final `model`; and the probabilities (n, C) of the judged rows before (None if the
    model has none) and after, by curves that were fitted on the other half."""
    rows, classes = data.validation, np.asarray(evaluator.classes)
    scores, raw = (
        _out_of_fold(trainer, data, members, classes) if members.seeds else _scores_of(model, rows.X, classes)
    )
    fitted = fit_calibration(method, scores, rows.y, classes, rows.sample_weight)
    return fitted, raw, _crossed(method, scores, rows, classes, seed)


def _out_of_fold(
    trainer: Trainer, data: SearchData, members: Members, classes: Array
) -> tuple[FloatArray, FloatArray | None]:
    """Scores and probabilities of the judged rows, by models of the members that were not trained on them."""
    back = np.argsort(np.concatenate([fold.scored for fold in data.folds]), kind="stable")
    scores: dict[int, FloatArray] = {}
    raw: dict[int, FloatArray] = {}
    stacked = np.stack(members.weights)
    for k, models in train_folds(trainer, data, stacked, members.seeds, members.parameters):
        if isinstance(models, Exception):
            raise SearchFailedError(f"a model could not be trained: {models}") from models
        parts = [
            _scores_of(model, data.validation_of(fold).X, classes)
            for model, fold in zip(models, data.folds, strict=True)
        ]
        scores[k] = np.concatenate([part[0] for part in parts])[back]
        shares = [part[1] for part in parts if part[1] is not None]
        if len(shares) == len(parts):
            raw[k] = np.concatenate(shares)[back]
    every = range(len(members.seeds))
    mean = weighted_mean([raw[k] for k in every], members.votes) if len(raw) == len(every) else None
    return weighted_mean([scores[k] for k in every], members.votes), mean


def _scores_of(model: Any, X: Any, classes: Array) -> tuple[FloatArray, FloatArray | None]:
    if not np.array_equal(np.asarray(model.classes_), classes):
        raise SearchFailedError("a fold lacks a class, so that its model has other scores.")
    with answering_alone():
        scores = scores_to_calibrate(model, read_only(X))
        has_shares = hasattr(model, "predict_proba")
        shares = np.asarray(model.predict_proba(read_only(X)), dtype=np.float64) if has_shares else None
    return scores, shares


def _crossed(
    method: str, scores: FloatArray, rows: LabelledRows, classes: Array, seed: int
) -> FloatArray | None:
    """Probabilities (n, C) of the judged rows by curves of the other half of them; groups are whole, and one
    group has no halves."""
    if rows.groups is not None and count_groups(rows.groups) < 2:
        return None
    found = np.full((len(rows), len(classes)), np.nan)
    codes = np.asarray(np.searchsorted(classes, rows.y))
    one, two = stratified_halves(codes, generator(seed, "calibrate"), rows.groups)
    for fitted_on, told in ((one, two), (two, one)):
        weight = None if rows.sample_weight is None else rows.sample_weight[fitted_on]
        curves = fit_calibration(method, scores[fitted_on], rows.y[fitted_on], classes, weight)
        found[told] = curves.probabilities(scores[told])
    return found
