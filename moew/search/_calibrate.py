"""Probabilities of the selected model, calibrated on the evaluation rows.

The final models are trained on all training rows, so their own scores there cannot be used. The curves are
fitted on scores of models with the same weights that were trained without the row: those of the finalists'
folds. On validation rows alone, these are the final models themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from moew._util.seeds import generator
from moew.data import LabelledRows, SearchData, count_groups, read_only, stratified_halves
from moew.exceptions import Argument, InvalidInputError, SearchFailedError
from moew.metrics import model_name
from moew.models import (
    Calibration,
    can_be_calibrated,
    fit_calibration,
    scores_to_calibrate,
    weighted_mean,
)
from moew.search._evaluate import answering_alone
from moew.search._loop import train_all
from moew.types import Array, FloatArray, Task, Trainer, Training

if TYPE_CHECKING:
    from moew.search._prepare import Prepared

_FEWEST = 2  # evaluation rows of a class


def check_calibrate(method: Any, estimator: Any, task: Task, data: SearchData, classes: Array | None) -> None:
    """Raise, before anything is trained, if probabilities cannot be calibrated."""
    y = data.validation.y
    if task != "classification" or classes is None:
        why = f" is for classifiers, but {model_name(estimator)} predicts numbers; leave it out."
    elif not can_be_calibrated(estimator):
        why = (
            f" needs scores, but {model_name(estimator)} gives labels only (no decision_function, no "
            "predict_proba); use a model that has scores, or leave it out."
        )
    elif (unknown := np.setdiff1d(y, classes)).size:
        why = (
            f" needs labels of the classes {classes.tolist()[:10]!r}, but some of the evaluation rows have "
            f"{unknown[:3].tolist()}; leave it out."
        )
    elif few := [label for label in classes.tolist() if np.count_nonzero(y == label) < _FEWEST]:
        why = (
            f" needs {_FEWEST} evaluation rows of every class at least, and there are fewer of {few[:5]}; "
            "give more validation rows, or leave it out."
        )
    else:
        return
    raise InvalidInputError(Argument("calibrate", method), why)


def calibrate(
    prepared: Prepared, trainings: Sequence[Training], votes: FloatArray, model: Any
) -> tuple[Calibration, FloatArray | None, FloatArray | None]:
    """The curves for the final `model`, whose members have `votes` (m,); and the probabilities (n, C) of the
    evaluation rows before (None if the model has none) and after, by curves that were fitted on the other
    half. A constant has no `trainings`."""
    data, classes = prepared.data.for_finalists, np.asarray(prepared.evaluator.classes)
    method, rows = str(prepared.settings.calibrate), data.validation
    if trainings:
        scores, raw = _out_of_fold(prepared.trainer, data, trainings, votes, classes)
    else:
        scores, raw = _scores_of(model, rows.X, classes)
    fitted = fit_calibration(method, scores, rows.y, classes, rows.sample_weight)
    return fitted, raw, _crossed(method, scores, rows, classes, prepared.seed)


def _out_of_fold(
    trainer: Trainer, data: SearchData, trainings: Sequence[Training], votes: FloatArray, classes: Array
) -> tuple[FloatArray, FloatArray | None]:
    """Scores and probabilities of the evaluation rows, by models of the members that were not trained on
    them."""
    back = np.argsort(np.concatenate([fold.scored for fold in data.folds]), kind="stable")
    scores: list[FloatArray] = []
    raw: list[FloatArray] = []
    for models in train_all(trainer, data, trainings):
        answers = [
            _scores_of(model, data.validation_of(fold).X, classes)
            for model, fold in zip(models, data.folds, strict=True)
        ]
        scores.append(np.concatenate([one for one, _ in answers])[back])
        shares = [one for _, one in answers if one is not None]
        raw += [np.concatenate(shares)[back]] if len(shares) == len(answers) else []
    return weighted_mean(scores, votes), weighted_mean(raw, votes) if len(raw) == len(scores) else None


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
    """Probabilities (n, C) of the evaluation rows by curves of the other half of them; groups are whole, and
    one group has no halves."""
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
