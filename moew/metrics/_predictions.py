"""What one candidate's models predicted on some rows, kept as arrays so that the models can be dropped."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from moew._util.rounding import rounded_scores
from moew._util.state import pack_compact, unpack_compact
from moew.exceptions import Argument, InvalidInputError, StateError
from moew.metrics._responses import own_decisions
from moew.models._votes import checked_votes, weighted_majority, weighted_mean
from moew.types import Array, BoolArray, FloatArray, IntArray, Task

_CLASSES, _SCORES = " classes", " scores"  # names of arrays in packed predictions, which no method has
_FURTHER = " further "  # before the names of further arrays
_FOLLOWS = "by the scores"  # in the head of packed labels that follow from the scores
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
    further : as `arrays`, what only other metrics asked the model for that are looked at beside this one
    """

    arrays: Mapping[str, Array]
    classes: Array | None = None
    estimator_type: str | None = None
    scores: FloatArray | None = None
    own_threshold: float = 0.0
    further: Mapping[str, Array] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(next(iter(self.arrays.values()))) if self.arrays else 0

    def take(self, rows: IntArray | BoolArray) -> Predictions:
        """The predictions on some of the rows."""
        taken = {name: array[rows] for name, array in self.arrays.items()}
        scores = None if self.scores is None else self.scores[rows]
        further = {name: array[rows] for name, array in self.further.items()}
        return replace(self, arrays=taken, scores=scores, further=further)

    def for_all_metrics(self) -> Predictions:
        """The same predictions with the further ones among the others, for the metrics that need them."""
        return replace(self, arrays={**self.arrays, **self.further}, further={}) if self.further else self

    def compact(self) -> Predictions:
        """The same predictions in less memory, for the many candidates of a long search."""
        arrays = _CompactArrays(self.arrays)
        further = _CompactArrays(self.further) if self.further else {}
        return _CompactPredictions(
            arrays, self.classes, self.estimator_type, self.scores, self.own_threshold, further
        )

    def with_rounded_scores(self) -> Predictions:
        """The same predictions with scores of 11 binary digits behind the first, as they are stored.

        The order of scores stays, but for ties, and so do the decisions that the model makes by them. A
        threshold halfway between two rounded scores decides these rows as they would be without rounding.
        """
        if self.scores is None:
            return self
        return replace(self, scores=rounded_scores(self.scores, self.own_threshold))

    def equals(self, other: Predictions) -> bool:
        """Whether both hold the same predictions, bit for bit."""
        return (
            all(np.array_equal(array, other.arrays[name]) for name, array in self.arrays.items())
            and all(np.array_equal(array, other.further[name]) for name, array in self.further.items())
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
            alike = part.arrays.keys() == first.arrays.keys() and part.further.keys() == first.further.keys()
            if not alike or not same:
                raise InvalidInputError(
                    "the models of different folds do not answer alike (other classes or other methods); "
                    "use folds that hold every class, such as a stratified splitter.",
                    argument="validation",
                )
        back = np.argsort(np.concatenate(rows), kind="stable")
        arrays = {n: np.concatenate([part.arrays[n] for part in parts])[back] for n in first.arrays}
        further = {n: np.concatenate([part.further[n] for part in parts])[back] for n in first.further}
        scores = [part.scores for part in parts if part.scores is not None]
        if len(scores) < len(parts):  # of some folds alone they are of no use
            return replace(first, arrays=arrays, scores=None, own_threshold=0.0, further=further)
        return replace(first, arrays=arrays, scores=np.concatenate(scores)[back], further=further)

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

        def answer(name: str, answers: Sequence[Array]) -> Array:
            if task == "classification" and name in _LABELS:
                return _labels(answers, given, scores, first.own_threshold, known, pos_label)
            if name == "predict_log_proba":
                with np.errstate(divide="ignore"):
                    return np.asarray(np.log(weighted_mean([np.exp(part) for part in answers], given)))
            return weighted_mean(answers, given)

        arrays = {name: answer(name, [part.arrays[name] for part in parts]) for name in first.arrays}
        further = {name: answer(name, [part.further[name] for part in parts]) for name in first.further}
        return replace(first, arrays=arrays, scores=scores, further=further)

    def packed(self) -> bytes:
        """The predictions as few bytes, for a study's storage; see `unpacked`."""
        named = {_SCORES: self.scores, _CLASSES: self.classes, **self.arrays}
        named |= {_FURTHER + name: array for name, array in self.further.items()}
        above = None if self.scores is None else np.asarray(self.scores) > self.own_threshold
        heads, bodies = [], []
        for name, array in named.items():
            if array is not None:
                head, body = _following(np.asarray(array), above) or pack_compact(np.asarray(array))
                heads.append([name, head, len(body)])
                bodies.append(body)
        head = {"arrays": heads, "type": self.estimator_type, "own_threshold": self.own_threshold}
        return b"".join([json.dumps(head).encode(), b"\n", *bodies])

    @classmethod
    def unpacked(cls, content: bytes) -> Self:
        """The predictions that `packed` packed, exact to the bit; raises `StateError` for anything else."""
        first, _, rest = content.partition(b"\n")
        try:
            arrays: dict[str, Array] = {}
            head, start = json.loads(first), 0
            for name, packed, length in head["arrays"]:
                if _FOLLOWS in packed:
                    above = arrays[_SCORES] > head["own_threshold"]
                    arrays[name] = np.array(packed[_FOLLOWS], dtype=packed["dtype"])[above.astype(int)]
                else:
                    arrays[name] = unpack_compact(packed, rest[start : start + length])
                start += length
            classes, scores = arrays.pop(_CLASSES, None), arrays.pop(_SCORES, None)
            further = {
                name[len(_FURTHER) :]: arrays.pop(name) for name in [*arrays] if name.startswith(_FURTHER)
            }
            return cls(arrays, classes, head["type"], scores, head["own_threshold"], further)
        except (ValueError, LookupError, TypeError, zlib.error) as error:
            raise StateError(f"these are no packed predictions ({error}).") from error


class _CompactPredictions(Predictions):
    """Predictions whose scores take three bytes each where that is exact, as for rounded ones."""

    @property
    def scores(self) -> FloatArray | None:
        kept: FloatArray | tuple[Array, Array] | None = vars(self)["scores"]
        if not isinstance(kept, tuple):
            return kept
        bits = (kept[0].astype(np.uint32) << 16) | (kept[1].astype(np.uint32) << 8)
        return np.asarray(bits.view(np.float32).astype(np.float64))

    @scores.setter
    def scores(self, scores: FloatArray | None) -> None:
        kept: Any = scores
        if scores is not None:
            with np.errstate(over="ignore"):
                narrow = np.ascontiguousarray(scores, dtype=np.float32)
            bits = narrow.view(np.uint32)
            if np.array_equal(narrow, scores) and not (bits & 0xFF).any():  # the lowest byte of four is zero
                kept = (bits >> 16).astype(np.uint16), (bits >> 8).astype(np.uint8)
        vars(self)["scores"] = kept


class _CompactArrays(Mapping[str, Array]):
    """Arrays by name; those of up to 256 distinct labels are stored as a byte a row, of two as a bit."""

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        self._kept = {name: _in_bytes(array) for name, array in arrays.items()}

    def __getitem__(self, name: str) -> Array:
        labels, codes, n = self._kept[name]
        if codes is None:
            return labels
        return labels[np.unpackbits(codes, count=n) if len(labels) <= 2 else codes]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kept)

    def __len__(self) -> int:
        return len(self._kept)


def _in_bytes(array: Array) -> tuple[Array, Array | None, int]:
    """The distinct labels, each row's index (n,) among them, and n; or the array itself and None."""
    if array.ndim == 1 and array.dtype.kind in "biuUS":
        labels, found = np.unique(array, return_inverse=True)
        codes = found.astype(np.uint8)
        if len(labels) <= 2:
            return labels, np.packbits(codes), len(array)
        if len(labels) <= 256:
            return labels, codes, len(array)
    return array, None, len(array)


def _following(labels: Array, above: BoolArray | None) -> tuple[dict[str, Any], bytes] | None:
    """Labels packed as those of rows whose score is not `above` (n,) the threshold, and is; None if they do
    not follow from the scores so."""
    if above is None or above.shape != labels.shape or labels.dtype.kind not in "biuU" or not len(labels):
        return None
    pair = labels[[int(above.argmin()), int(above.argmax())]]
    if not np.array_equal(pair[above.astype(int)], labels):
        return None
    return {"dtype": labels.dtype.newbyteorder("<").str, _FOLLOWS: pair.tolist()}, b""


def _check_alike(first: Predictions, other: Predictions) -> None:
    """Raise unless the predictions are of the same kind on as many rows."""
    if (
        other.arrays.keys() != first.arrays.keys()
        or other.further.keys() != first.further.keys()
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
