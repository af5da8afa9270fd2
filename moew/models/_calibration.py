"""Scores made probabilities again: curves that are fitted on scores of rows that the model did not see.

Weights change what a model's `predict_proba` is a probability of. The curves are scikit-learn's: a sigmoid
(Platt) or an isotonic one, for two classes one of the second class, for more one against the rest for each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import expit

from moew._util.state import State, Stateful, has_state
from moew.exceptions import InvalidInputError, StateError
from moew.models._ensemble import class_scores
from moew.types import Array, Features, FloatArray

CALIBRATIONS = ("sigmoid", "isotonic")


@has_state
@dataclass(frozen=True)
class Calibration(Stateful):
    """Fitted curves from scores to probabilities.

    `curves` has two arrays for each class, for two classes those of the second alone. "sigmoid": the slope
    (1,) and the intercept (1,). "isotonic": scores (k,), ascending, and the probabilities (k,) at them.
    """

    state_home: ClassVar[str] = "moew.models"

    method: str
    curves: tuple[tuple[FloatArray, FloatArray], ...]

    def probabilities(self, scores: FloatArray) -> FloatArray:
        """Probabilities (n, C) of scores (n,) of the second of two classes, or (n, C) of more."""
        columns = scores.reshape(len(scores), -1)
        if columns.shape[1] != len(self.curves):
            raise InvalidInputError(
                f"the probabilities are calibrated for {len(self.curves)} columns of scores, got "
                f"{columns.shape[1]}.",
                argument="estimator",
            )
        shares = np.column_stack([self._curve(*curve, columns[:, k]) for k, curve in enumerate(self.curves)])
        if scores.ndim == 1:
            return np.column_stack([1.0 - shares[:, 0], shares[:, 0]])
        total = shares.sum(axis=1, keepdims=True)
        return np.asarray(
            np.divide(shares, total, out=np.full_like(shares, 1 / shares.shape[1]), where=total != 0)
        )

    def _curve(self, first: FloatArray, second: FloatArray, scores: FloatArray) -> FloatArray:
        if self.method == "sigmoid":
            return np.asarray(expit(-(first[0] * scores + second[0])))
        return np.interp(scores, first, second)

    def _content(self) -> State:
        return {"method": self.method, "curves": [[a.tolist(), b.tolist()] for a, b in self.curves]}

    @classmethod
    def from_state(cls, state: State, objects: Mapping[str, Any]) -> Self:
        """The curves that `state()` described."""
        if state["method"] not in CALIBRATIONS:
            raise StateError(f"its probabilities are calibrated by {state['method']!r}, which is unknown.")
        curves = tuple(
            (np.array(first, dtype=np.float64), np.array(second, dtype=np.float64))
            for first, second in state["curves"]
        )
        for first, second in curves:
            if first.ndim != 1 or first.shape != second.shape or not len(first):
                raise StateError("its curves must be pairs of lists of as many numbers.")
            if not (np.isfinite(first).all() and np.isfinite(second).all() and (np.diff(first) >= 0).all()):
                raise StateError("its curves must be of finite numbers, in ascending order of scores.")
        if not curves:
            raise StateError("it holds no curve.")
        return cls(state["method"], curves)


def fit_calibration(
    method: str, scores: FloatArray, y: Array, classes: Array, sample_weight: FloatArray | None = None
) -> Calibration:
    """Curves fitted on scores (n,) of the second of two classes, or (n, C) of more, and labels (n,)."""
    from sklearn.calibration import _SigmoidCalibration
    from sklearn.isotonic import IsotonicRegression

    columns, curves = scores.reshape(len(scores), -1), []
    for k, label in enumerate(classes[1:] if columns.shape[1] == 1 else classes):
        is_class = (y == label).astype(np.float64)
        if method == "sigmoid":
            fitted = _SigmoidCalibration().fit(columns[:, k], is_class, sample_weight)
            curves.append((np.array([fitted.a_]), np.array([fitted.b_])))
        else:
            fitted = IsotonicRegression(out_of_bounds="clip").fit(columns[:, k], is_class, sample_weight)
            thresholds = fitted.X_thresholds_.astype(np.float64), fitted.y_thresholds_.astype(np.float64)
            curves.append(thresholds)
    return Calibration(method, tuple(curves))


def can_be_calibrated(estimator: Any) -> bool:
    """Whether a classifier has scores or probabilities."""
    return any(hasattr(estimator, method) for method in ("decision_function", "predict_proba"))


def scores_to_calibrate(model: Any, X: Features) -> FloatArray:
    """The scores of a fitted classifier that probabilities are made of: its decision function, or else its
    probabilities; (n,) of the second of two classes, (n, C) of more."""
    n_classes = len(model.classes_)
    if hasattr(model, "decision_function"):
        scores = class_scores(np.asarray(model.decision_function(X)), n_classes)
        if scores is not None:
            return np.asarray(scores, dtype=np.float64)
    shares = np.asarray(model.predict_proba(X), dtype=np.float64)
    return shares[:, 1] if n_classes == 2 else shares
