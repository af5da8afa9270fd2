"""Predictions of fitted models, and records of them, on which metrics are evaluated without the models."""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

import numpy as np

from moew._util.checks import is_regression as is_regression
from moew._util.rounding import rounded_scores
from moew._util.state import pack_compact, unpack_compact
from moew.data import n_rows
from moew.exceptions import Argument, InvalidInputError, StateError
from moew.models import checked_votes, class_scores, weighted_majority, weighted_mean
from moew.types import Array, BoolArray, Features, FloatArray, IntArray, Response, Task

METHODS = ("predict", "predict_proba", "predict_log_proba", "decision_function")  # which scorers may call


def respond(model: Any, X: Features, response: Response, pos_label: Any = None) -> Array:
    """The model's predictions on the rows of X, of the kind `response`.

    "decision": what `predict` returns, (n,). "score" and "proba": those of the positive class (n,) for two
    classes (default: of the second), (n, C) for more. The score is the decision function if the model has one
    (whose threshold is 0), else the probability (0.5); of a regressor it is the prediction.
    """
    if response == "decision" or is_regression(model):
        if response == "proba":
            raise InvalidInputError(
                f"the metric takes probabilities, but {type(model).__name__} is a regressor; use ",
                Argument("response", "decision"),
                " to get its predictions.",
                argument="response",
            )
        return per_row(model.predict(X), X, "predict")
    classes = model_classes(model)
    if len(classes) != 2 and pos_label is not None:
        raise InvalidInputError(
            Argument("pos_label", _plain(pos_label)), f" needs two classes, the model has {len(classes)}."
        )
    if response == "proba" or not hasattr(model, "decision_function"):
        return _probabilities(model, X, classes, pos_label)
    scores = per_row(model.decision_function(X), X, "decision_function")
    if len(classes) != 2:
        return scores
    position = _position(pos_label, classes)
    if scores.shape[1:] == (2,):
        return scores[:, position]
    return scores.reshape(len(scores)) if position == 1 else -scores.reshape(len(scores))


def decision_basis(model: Any, X: Features, pos_label: Any = None) -> tuple[FloatArray | None, float]:
    """What the model's own `predict` decides by, and the threshold above which it decides for a class.

    It is the decision function if the model has one (threshold 0), else the probabilities (threshold 0.5):
    (n,) for two classes, of `pos_label` (default: the second), (n, C) for more, where the highest decides.
    None for regressors and for models that have labels only.
    """
    if is_regression(model):
        return None, 0.0
    if hasattr(model, "decision_function"):
        classes = model_classes(model)
        scores = class_scores(per_row(model.decision_function(X), X, "decision_function"), len(classes))
        if scores is not None:
            is_of_first = scores.ndim == 1 and _position(pos_label, classes) == 0
            return (-scores if is_of_first else scores), 0.0
    if hasattr(model, "predict_proba"):
        return _probabilities(model, X, model_classes(model), pos_label), 0.5
    return None, 0.0


def own_decisions(scores: FloatArray, threshold: float, classes: Array, pos_label: Any = None) -> Array:
    """Class labels (n,) that a model decides for itself by the scores and threshold of `decision_basis`."""
    if scores.ndim == 2:
        return np.asarray(np.asarray(classes)[scores.argmax(axis=1)])
    # On the threshold models decide for the first class, whichever class the score is of.
    of_first = _position(pos_label, classes) == 0
    return decided_labels(scores >= threshold if of_first else scores > threshold, classes, pos_label)


def predicts_by_its_scores(model: Any) -> bool:
    """Whether `predict` is known to be `own_decisions` of `decision_basis`: in scikit-learn's linear models
    and in LightGBM with a loss of its own."""
    from sklearn.linear_model import LogisticRegression

    predict = getattr(type(model), "predict", None)
    lightgbm = sys.modules.get("lightgbm")
    if lightgbm is not None and predict is lightgbm.LGBMClassifier.predict:
        return not callable(model.objective)
    return predict is LogisticRegression.predict


def decided_labels(positive: BoolArray, classes: Array, pos_label: Any = None) -> Array:
    """Class labels (n,) from the decisions (n,) of a decision rule, for two classes."""
    position = _position(pos_label, classes)
    return np.asarray(classes)[np.where(positive, position, 1 - position)]


def model_name(model: Any) -> str:
    """The name of the model's class, and of the class of a pipeline's last step, which predicts."""
    steps = getattr(model, "steps", None)
    last = f" of {type(steps[-1][1]).__name__}" if isinstance(steps, list) and steps else ""
    return type(model).__name__ + last


def model_classes(model: Any) -> Array:
    """The classes (C,) of a fitted classifier."""
    if not hasattr(model, "classes_"):
        raise InvalidInputError(
            f"{type(model).__name__} has no classes_, so which column or sign is which class is unknown.",
            argument="estimator",
        )
    return np.asarray(model.classes_)


def _probabilities(model: Any, X: Features, classes: Array, pos_label: Any) -> Array:
    """Probabilities (n, C), or for two classes those of the positive one (n,)."""
    if not hasattr(model, "predict_proba"):
        others: tuple[str | Argument, ...] = ("use a model that has one of them, or a metric of decisions.",)
        has = "no decision_function, no predict_proba"
        if hasattr(model, "decision_function"):
            has = "no predict_proba"
            others = (
                "it has a decision_function, which a metric with ",
                Argument("response", "score"),
                " and the rule FixedThreshold (",
                Argument("decision", "score=0"),
                ") take, or calibrate it (CalibratedClassifierCV).",
            )
        raise InvalidInputError(
            f"the metric or the decision takes probabilities, but {model_name(model)} cannot give them "
            f"({has}); ",
            *others,
            argument="estimator",
        )
    shares = per_row(model.predict_proba(X), X, "predict_proba")
    return shares[:, _position(pos_label, classes)] if len(classes) == 2 else shares


def _position(pos_label: Any, classes: Array) -> int:
    """The index of the positive class among two: the second, unless `pos_label` is given."""
    if pos_label is None:
        return 1
    where = np.flatnonzero(np.asarray(classes) == pos_label)
    if len(where) != 1:
        raise InvalidInputError(
            Argument("pos_label", _plain(pos_label)), f" is not one of the classes {classes.tolist()!r}."
        )
    return int(where[0])


def _plain(label: Any) -> Any:
    """A label as a Python value, whose repr in messages has no NumPy type."""
    return label.item() if isinstance(label, np.generic) else label


def per_row(answer: Any, X: Features, method: str) -> Array:
    """What a model's method predicted; raise unless it is something for each row."""
    array = np.asarray(answer)
    n = n_rows(X)
    if not array.ndim or len(array) != n:
        raise InvalidInputError(
            f"{method} gave an answer of shape {array.shape} for {n} rows; moew needs one for each row "
            "(several targets at once are not supported).",
            argument="estimator",
        )
    return array


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
        scores = None if self.scores is None else self.scores[rows]
        return replace(self, scores=scores, **_by_name([self], lambda _, arrays: arrays[0][rows]))

    def for_all_metrics(self) -> Predictions:
        """The same predictions with the further ones among the others, for the metrics that need them."""
        return replace(self, arrays={**self.arrays, **self.further}, further={}) if self.further else self

    def compact(self) -> Predictions:
        """The same predictions in less memory, for the many candidates of a long search."""
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        compact = {kind: _CompactArrays(own[kind]) for kind in ("arrays", "further")}
        return _CompactPredictions(**{**own, **compact})

    def with_rounded_scores(self) -> Predictions:
        """The same predictions with scores of 11 binary digits behind the first, as they are stored.

        The order of scores stays, but for ties, and so do the decisions that the model makes by them. A
        threshold halfway between two rounded scores decides these rows as they would be without rounding.
        """
        scores = None if self.scores is None else rounded_scores(self.scores, self.own_threshold)
        return replace(self, scores=scores)

    def equals(self, other: Predictions) -> bool:
        """Whether both hold the same predictions, bit for bit."""
        own, others = (predictions.for_all_metrics().arrays for predictions in (self, other))
        return (
            all(np.array_equal(array, others[name]) for name, array in own.items())
            and (self.scores is None or np.array_equal(self.scores, np.asarray(other.scores)))
            and self.own_threshold == other.own_threshold
        )

    @classmethod
    def pooled(cls, parts: Sequence[Self], rows: Sequence[IntArray]) -> Self:
        """Join out-of-fold predictions: `parts[i]` are those on the row numbers `rows[i]` (n_i,), which
        together are 0 … n−1. All models must have the same classes."""
        first = parts[0]
        if not all(map(first._answers_like, parts)):
            raise InvalidInputError(
                "the models of different folds do not answer alike (other classes or other methods); "
                "use folds that hold every class, such as a stratified splitter.",
                argument="evaluate_on",
            )
        back = np.argsort(np.concatenate(rows), kind="stable")
        joined = _by_name(parts, lambda _, arrays: np.concatenate(arrays)[back])
        scores = [part.scores for part in parts if part.scores is not None]
        if len(scores) < len(parts):  # of some folds alone they are of no use
            return replace(first, scores=None, own_threshold=0.0, **joined)
        return replace(first, scores=np.concatenate(scores)[back], **joined)

    def _answers_like(self, other: Predictions) -> bool:
        """Whether both are answers of the same methods, about the same classes."""
        own, others = (
            (one.arrays.keys(), one.further.keys(), [] if one.classes is None else one.classes.tolist())
            for one in (self, other)
        )
        return own == others

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
        shapes = {(part.scores is None, part.own_threshold, len(part)) for part in parts}
        if len(shapes) > 1 or not all(map(first._answers_like, parts)):
            raise InvalidInputError(
                "the models of an ensemble do not answer alike (other rows, classes or methods, or one "
                "decides by a decision function and another by probabilities), so their predictions have no "
                "mean.",
                argument="models",
            )
        known = classes if first.classes is None else first.classes
        scored = [part.scores for part in parts if part.scores is not None]
        scores = weighted_mean(scored, given) if scored else None

        def mean(name: str, answers: list[Array]) -> Array:
            if task == "classification" and name in _LABELS:
                if scores is None:
                    there = np.unique(np.concatenate(answers)) if known is None else known
                    return weighted_majority(answers, given, there)
                if known is None:
                    raise InvalidInputError(
                        "labels are decided again by the averaged scores; pass ",
                        Argument("classes"),
                        ", which the predictions do not hold.",
                        argument="classes",
                    )
                return own_decisions(scores, first.own_threshold, known, pos_label)
            if name == "predict_log_proba":
                with np.errstate(divide="ignore"):
                    return np.asarray(np.log(weighted_mean([np.exp(part) for part in answers], given)))
            return weighted_mean(answers, given)

        return replace(first, scores=scores, **_by_name(parts, mean))

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
        high, low = vars(self)["scores"]
        if low is None:
            return high  # type: ignore[no-any-return]
        bits = (high.astype(np.uint32) << 16) | (low.astype(np.uint32) << 8)
        return np.asarray(bits.view(np.float32).astype(np.float64))

    @scores.setter
    def scores(self, scores: FloatArray | None) -> None:
        kept: tuple[Any, Array | None] = scores, None
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
        if len(labels) <= 256:
            codes = found.astype(np.uint8)
            return labels, np.packbits(codes) if len(labels) <= 2 else codes, len(array)
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


def _by_name(parts: Sequence[Predictions], made: Callable[[str, list[Array]], Array]) -> dict[str, Any]:
    """`arrays` and `further`, each array made of those of its name in the parts."""
    return {
        kind: {name: made(name, [getattr(part, kind)[name] for part in parts]) for name in named}
        for kind, named in (("arrays", parts[0].arrays), ("further", parts[0].further))
    }
