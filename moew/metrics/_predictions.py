"""What one candidate's models predicted on some rows, kept as arrays so that the models can be dropped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from moew._util.state import State, pack_array, unpack_array
from moew.exceptions import Argument, InvalidInputError
from moew.metrics._responses import own_decisions
from moew.models._votes import checked_votes, weighted_majority, weighted_mean
from moew.types import Array, BoolArray, FloatArray, IntArray, Task

_LABELS = ("decision", "predict")  # the arrays that hold labels in classification


@dataclass(frozen=True)
class Predictions:
    """Predictions on n rows, on any of which the metric can be evaluated again.

    Parameters
    ----------
    arrays : name → (n,) or (n, C), the predictions that the metric asked the model for
    classes : (C,), the model's classes, None where the metric does not need them
    estimator_type : "classifier" or "regressor", for scikit-learn's scorers
    scores : what decisions are made from: (n,), or (n, C) for more than two classes; None if there is no
        rule, if a rule fitted on training rows has decided already, or if the model has labels only
    own_threshold : the score (n,) above which the model by itself decides for the class that it is of
    """

    arrays: Mapping[str, Array]
    classes: Array | None = None
    estimator_type: str | None = None
    scores: FloatArray | None = None
    own_threshold: float = 0.0

    def __len__(self) -> int:
        return len(next(iter(self.arrays.values()))) if self.arrays else 0

    def take(self, rows: IntArray | BoolArray) -> Predictions:
        """The predictions on some of the rows."""
        taken = {name: array[rows] for name, array in self.arrays.items()}
        scores = None if self.scores is None else self.scores[rows]
        return replace(self, arrays=taken, scores=scores)

    def compact(self) -> Predictions:
        """The same predictions in less memory, for the many candidates of a long search."""
        return replace(self, arrays=_CompactArrays(self.arrays))

    def equals(self, other: Predictions) -> bool:
        """Whether both hold the same predictions, bit for bit."""
        return (
            all(np.array_equal(array, other.arrays[name]) for name, array in self.arrays.items())
            and (self.scores is None or np.array_equal(self.scores, np.asarray(other.scores)))
            and self.own_threshold == other.own_threshold
        )

    @classmethod
    def pooled(cls, parts: Sequence[Self], rows: Sequence[IntArray]) -> Self:
        """Join out-of-fold predictions: `parts[i]` are those on the row numbers `rows[i]` (n_i,), which
        together are 0 … n−1. All models must have the same classes."""
        first = parts[0]
        for part in parts[1:]:
            same = np.array_equal(_or_empty(part.classes), _or_empty(first.classes))
            if part.arrays.keys() != first.arrays.keys() or not same:
                raise InvalidInputError(
                    "the models of different folds do not answer alike (other classes or other methods); "
                    "use folds that hold every class, such as a stratified splitter.",
                    argument="validation",
                )
        back = np.argsort(np.concatenate(rows), kind="stable")
        arrays = {n: np.concatenate([part.arrays[n] for part in parts])[back] for n in first.arrays}
        scores = [part.scores for part in parts if part.scores is not None]
        return replace(first, arrays=arrays, scores=np.concatenate(scores)[back] if scores else None)

    @classmethod
    def averaged(
        cls,
        parts: Sequence[Self],
        votes: Any,
        *,
        task: Task,
        classes: Array | None = None,
        pos_label: Any = None,
    ) -> Self:
        """What a `ModelEnsemble` predicts on the same rows, from the predictions of its models, `parts`.

        Scores, probabilities and, in regression, predictions are averaged with the votes (m,). Labels are
        decided again by the averaged `scores`, or are those of the majority where there are no scores.
        `classes` (C,) are the models' where predictions do not hold them, and `pos_label` is the class that
        `scores` (n,) are of (default: the second); both are as in `decision_basis`. One part is given back
        as it is.
        """
        given = checked_votes(votes, len(parts))
        first = parts[0]
        if len(parts) == 1:
            return first
        for part in parts[1:]:
            _check_alike(first, part)
        known = classes if first.classes is None else first.classes
        scores = _mean([part.scores for part in parts if part.scores is not None], given)

        def answer(name: str) -> Array:
            answers = [part.arrays[name] for part in parts]
            if task == "classification" and name in _LABELS:
                return _labels(answers, given, scores, first.own_threshold, known, pos_label)
            if name == "predict_log_proba":
                with np.errstate(divide="ignore"):
                    return np.asarray(np.log(weighted_mean([np.exp(part) for part in answers], given)))
            return weighted_mean(answers, given)

        return replace(first, arrays={name: answer(name) for name in first.arrays}, scores=scores)

    def state(self) -> State:
        """The predictions as a JSON-able dict, for a study's storage."""
        return {
            "arrays": {name: _pack(array) for name, array in self.arrays.items()},
            "classes": None if self.classes is None else _pack(self.classes),
            "estimator_type": self.estimator_type,
            "scores": None if self.scores is None else pack_array(self.scores),
            "own_threshold": self.own_threshold,
        }

    @classmethod
    def from_state(cls, state: State) -> Self:
        """The predictions that `state()` described."""
        classes, scores = state["classes"], state["scores"]
        return cls(
            {name: _unpack(packed) for name, packed in state["arrays"].items()},
            None if classes is None else _unpack(classes),
            state["estimator_type"],
            None if scores is None else unpack_array(scores),
            state.get("own_threshold", 0.0),  # states of before it was recorded have none
        )


class _CompactArrays(Mapping[str, Array]):
    """Arrays by name; those of up to 256 distinct labels are stored as one byte a row."""

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        self._kept = {name: _in_bytes(array) for name, array in arrays.items()}

    def __getitem__(self, name: str) -> Array:
        different, codes = self._kept[name]
        return different if codes is None else different[codes]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kept)

    def __len__(self) -> int:
        return len(self._kept)


def _in_bytes(array: Array) -> tuple[Array, Array | None]:
    """The distinct labels and each row's index (n,) among them; or the array itself and None."""
    if array.ndim == 1 and array.dtype.kind in "iuUS":
        different, codes = np.unique(array, return_inverse=True)
        if len(different) <= 256:
            return different, codes.astype(np.uint8)
    return array, None


def _check_alike(first: Predictions, other: Predictions) -> None:
    """Raise unless the predictions are of the same kind on as many rows."""
    if (
        other.arrays.keys() != first.arrays.keys()
        or not np.array_equal(_or_empty(other.classes), _or_empty(first.classes))
        or (other.scores is None) != (first.scores is None)
        or other.own_threshold != first.own_threshold
        or len(other) != len(first)
    ):
        raise InvalidInputError(
            "the models of an ensemble do not answer alike (other rows, classes or methods, or one decides "
            "by a decision function and another by probabilities), so their predictions have no mean.",
            argument="models",
        )


def _mean(scores: Sequence[FloatArray], votes: FloatArray) -> FloatArray | None:
    return weighted_mean(scores, votes) if scores else None


def _labels(
    labels: Sequence[Array],
    votes: FloatArray,
    scores: FloatArray | None,
    threshold: float,
    classes: Array | None,
    pos_label: Any,
) -> Array:
    """The labels (n,) of an ensemble, by its scores or by the majority of its models' labels."""
    if scores is None:
        there = np.unique(np.concatenate(labels)) if classes is None else classes
        return weighted_majority(labels, votes, there)
    if classes is None:
        raise InvalidInputError(
            "labels are decided again by the averaged scores, but the predictions do not hold the models' "
            "classes; pass ",
            Argument("classes"),
            ".",
            argument="classes",
        )
    return own_decisions(scores, threshold, classes, pos_label)


def _or_empty(classes: Array | None) -> Array:
    return np.empty(0) if classes is None else classes


def _pack(array: Array) -> State:
    return pack_array(array) if array.dtype.kind in "biuf" else {"values": array.tolist()}


def _unpack(packed: State) -> Array:
    return np.asarray(packed["values"]) if "values" in packed else unpack_array(packed)
