"""Evaluate trained models with the metric and the decision rule.

A model predicts once, on the validation rows. Its predictions are kept, so that the metric can be evaluated
again on any of these rows, with the decision rule refitted, without the model.
"""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from joblib import parallel_config

from moew._util.seeds import generator
from moew.data import (
    Fold,
    LabelledRows,
    SearchData,
    check_same_rows,
    drawn_by_weight,
    evaluated_rows,
    read_only,
)
from moew.decision import AdjustedPredictions, ClassOffsets, Tuned, groups_of_rows
from moew.exceptions import Argument, InvalidInputError, MissingObjectError, MoewWarning
from moew.metrics import (
    Constraint,
    Metric,
    Predictions,
    decided_labels,
    decision_basis,
    model_classes,
    model_name,
    own_decisions,
    predicts_by_its_scores,
    rehearse,
    respond,
    sum_of_excess,
)
from moew.models import Calibration, scores_to_calibrate
from moew.types import (
    Array,
    BoolArray,
    Columns,
    DecisionRule,
    Features,
    FloatArray,
    Labels,
    Response,
    Task,
)

PLAINLY_TUNED = Tuned()  # without groups
LABEL_ARRAYS = frozenset({"decision", "predict"})  # names of predictions that are decisions, or numbers
TUNING_CALLS = 40  # calls of the metric that tune one decision
_MOST_GROUPS = 10  # of more, the smallest share the calls
SLOW_TUNING_CALLS = 8  # of a metric that is said to be slow


def constant_model(constant: Any, X: Features, y: Labels, *, classifies: bool) -> Any:
    """A fitted model that predicts a constant, as scikit-learn's dummies do."""
    from sklearn.dummy import DummyClassifier, DummyRegressor

    dummy = DummyClassifier if classifies else DummyRegressor
    # As a list: scikit-learn takes no single float for a label.
    return dummy(strategy="constant", constant=[constant]).fit(X, y)


@dataclass(frozen=True)
class FinalModel:
    """A fitted model, its fitted decision rule (None: the model's own `predict`), the classes (C,), None in
    regression, and the positive class. The rule may be one that `tune` fitted. `calibration` makes
    probabilities of the model's scores; None: they are the model's own. Decisions do not use it."""

    model: Any
    rule: Any
    classes: Array | None
    pos_label: Any
    calibration: Calibration | None = None

    def probabilities(self, X: Features) -> Array:
        """Class probabilities (n, C): calibrated ones, or the model's own."""
        if self.calibration is None:
            return np.asarray(self.model.predict_proba(read_only(X)))
        with answering_alone():
            return self.calibration.probabilities(scores_to_calibrate(self.model, read_only(X)))

    def decide(self, X: Features, columns: Columns) -> Array:
        """Labels (n,) by the decision rule, or by the model's `predict`; `columns` are for the rule."""
        if self.rule is None:
            return np.asarray(self.model.predict(read_only(X)))
        with answering_alone():
            if not isinstance(self.rule, ClassOffsets | AdjustedPredictions):
                basis = rule_score(self.model, self.rule, X, self.pos_label)
            elif self.classes is None:
                basis = np.asarray(self.model.predict(read_only(X)))
            else:
                scores, own = decision_basis(self.model, read_only(X), self.pos_label)
                basis, _, _ = tunable_scores(np.asarray(scores), own)
        return _labels_of(self.rule.decide(basis, columns), self.classes, self.pos_label)


def rule_score(model: Any, rule: DecisionRule, X: Features, pos_label: Any) -> FloatArray:
    """What the rule decides by (n,): the model's score of the positive class, or its probability."""
    response: Response = "proba" if rule.of == "probability" else "score"
    with answering_alone():
        return respond(model, read_only(X), response, pos_label)


@dataclass(frozen=True)
class Evaluator:
    """Scores models by the metric and the decision rule (not fitted); `classes` (C,), None in regression.

    `tuned` says how decisions are tuned for the metric where they are; with `always_tuned` those of every
    candidate are, because the user said so. `others` are metrics that are looked at beside the one to
    optimise, by name, and `name` is what that one is called among them; `constraints` are bounds of any,
    which decisions that are always tuned keep. `passed_columns` are columns that the search got in `columns`:
    they are never taken from X.
    """

    metric: Metric
    rule: DecisionRule | None
    classes: Array | None
    tuned: Tuned = PLAINLY_TUNED
    always_tuned: bool = False
    others: Mapping[str, Metric] = field(default_factory=dict)
    name: str = ""
    constraints: tuple[Constraint, ...] = ()
    passed_columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for metric in self.metrics.values():
            named, classes = metric.pos_label, [] if self.classes is None else self.classes.tolist()
            if named is not None and classes and named not in classes:
                raise InvalidInputError(
                    "the metric's ",
                    Argument("pos_label", named.item() if isinstance(named, np.generic) else named),
                    f" is not one of the classes {classes[:10]!r}.",
                    argument="pos_label",
                )
            if metric.needs_two_classes and len(classes) != 2:
                what = f"the metric {metric.name!r} is for two classes, got {self._kind}."
                raise InvalidInputError(what, argument="metric")
        for name, metric in self.others.items():
            if metric.response in ("score", "proba") and metric.pos_label not in (None, self.pos_label):
                raise InvalidInputError(
                    f"the metrics look at scores of one positive class: {self.metric.name!r} at those of "
                    f"{self.pos_label!r}, {name!r} at those of {metric.pos_label!r}; name the same ",
                    Argument("pos_label"),
                    ".",
                    argument="pos_label",
                )
        if self.classes is not None and len(self.classes) == 2:
            return
        if self.always_tuned and self.tuned.by is not None:
            what = f" gives thresholds by group, which need two classes, got {self._kind}"
            raise _use_decision("tuned", Argument("by", self.tuned.by), what)
        if self.rule is not None:
            raise _use_decision(None, f"a decision rule decides between two classes, got {self._kind}")

    @property
    def _kind(self) -> str:
        return "a regressor" if self.classes is None else f"{len(self.classes)} classes"

    @property
    def decision(self) -> Any:
        """The rule that the user asked for, fixed or tuned; None for the model's own decisions."""
        return self.tuned if self.always_tuned else self.rule

    @property
    def metrics(self) -> dict[str, Metric]:
        """All metrics by name, the one to optimise first."""
        return {self.name or self.metric.name: self.metric, **self.others}

    @property
    def choosing_metrics(self) -> list[Metric]:
        """The metrics by which is chosen: the one to optimise, and those that have a bound."""
        return [self.metric, *(self.metrics[one.name] for one in self.constraints)]

    @property
    def chooses_slowly(self) -> bool:
        """Whether a metric that chooses is said to be slow."""
        return any(metric.slow for metric in self.choosing_metrics)

    @property
    def choosing_columns(self) -> tuple[str, ...]:
        """Names of the columns that the metrics by which is chosen need or can take."""
        return tuple(dict.fromkeys(n for metric in self.choosing_metrics for n in metric_columns(metric)))

    @property
    def columns_read(self) -> frozenset[str] | None:
        """Names of the columns that a metric or the decision can take; None if that is not known."""
        metrics = self.metrics.values()
        if any(metric.known_columns is None for metric in metrics):
            return None
        return frozenset(column_names(metrics, self.decision)).union(*map(metric_columns, metrics))

    @property
    def takes_weights(self) -> bool:
        """Whether all metrics take sample weights; if not, rows are drawn by their weights for all."""
        return all(metric.takes_sample_weight for metric in self.metrics.values())

    def rows_by_weight(self, rows: LabelledRows) -> LabelledRows:
        """The rows that the metrics are evaluated on: those of positive weight. If a metric takes no weights,
        rows drawn in proportion to them, the same ones every time, and a warning says how many."""
        if rows.sample_weight is None:
            return rows
        task: Task = "regression" if self.classes is None else "classification"
        taken = self.takes_weights
        kept = evaluated_rows(rows, task, taken, generator(0, "rows by weight"))
        if not taken and len(kept) < np.count_nonzero(rows.sample_weight):
            warning = MoewWarning(
                f"the metric takes no sample weights: {len(kept):,} of the {len(rows):,} rows are evaluated, "
                "drawn in proportion to their weights.",
                argument="sample_weight",
            )
            warnings.warn(warning, stacklevel=4)
        rows = rows.take(kept) if len(kept) < len(rows) else rows
        return rows if taken else replace(rows, sample_weight=np.ones(len(rows)))

    @property
    def pos_label(self) -> Any:
        """The positive class: the metric's, else the second of two classes."""
        if self.metric.pos_label is None and self.classes is not None and len(self.classes) == 2:
            return self.classes[1]
        return self.metric.pos_label

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of the columns that the metric or the rule needs and that may be taken from X."""
        needed = column_names(self.metrics.values(), self.decision)
        return tuple(name for name in needed if name not in self.passed_columns)

    def rehearse(
        self, estimator: Any, data: SearchData, rng: np.random.Generator, test: LabelledRows | None = None
    ) -> None:
        """Raise now what would fail for every candidate, by trying made-up predictions on validation rows, or
        on test rows, on which nothing is fitted."""
        rows, decided = data.validation, None
        if test is not None:
            rows = test
            check_same_rows(data.training.X, rows.X, "the test rows")
            self.check_columns(rows, "test")
        else:
            self.check_columns(rows, "validation" if data.given_validation else "columns")
            decided = self._rehearse_decisions(data, rng)
        for metric in self.metrics.values():
            rehearse(
                metric,
                estimator,
                rows,
                data.training.y,
                classes=self.classes,
                pos_label=self.pos_label,
                decided=decided,
                rng=rng,
            )

    def _rehearse_decisions(self, data: SearchData, rng: np.random.Generator) -> Array | None:
        """The labels (n,) of made-up scores where a rule that is fitted on training rows decides."""
        rows, rule = data.validation, self.rule
        if self.always_tuned and self.metric.response in ("score", "proba"):
            what = f" tunes decisions, but the metric {self.metric.name!r} looks at scores, not at them"
            raise _use_decision(None, Argument("decision", "tuned"), what)
        if self.always_tuned and self.tuned.by is not None:
            groups_of_rows(rows.columns, self.tuned.by, len(rows))  # raises if there is none
        if rule is None:
            return None
        fitted_on = data.training if rule.fit_on == "train" else rows
        strange = np.setdiff1d(fitted_on.y, np.asarray(self.classes))  # graded labels, say
        if rule.needs_labels and len(strange):
            raise InvalidInputError(
                f"the decision rule {type(rule).__name__} learns from labels, but the validation labels "
                f"{strange[:3].tolist()} are not among the classes {np.asarray(self.classes).tolist()}; "
                "use a rule that needs no labels (ShareSelected, a fixed threshold), or one with ",
                Argument("on", "train"),
                ".",
                argument="decision",
            )
        scores = rng.standard_normal(len(fitted_on))
        fitted = rule.fit(scores, self._positive(fitted_on), fitted_on.columns)
        if rule.fit_on != "train":
            return None
        return self._labels(fitted.decide(rng.standard_normal(len(rows)), rows.columns))

    def check_columns(self, rows: LabelledRows, argument: str) -> None:
        """Raise if a column that the metric needs is missing; the user passes columns as `argument`."""
        for metric in self.metrics.values():
            metric.check_columns(rows, argument)

    def predictions(self, models: Sequence[Any], data: SearchData) -> Predictions:
        """Predictions of the models, one for each fold, on the validation rows of their folds, as a storage
        keeps them: scores that only tuned decisions look at are rounded."""
        parts = [self._ask(model, data, fold) for model, fold in zip(models, data.folds, strict=True)]
        pooled = Predictions.pooled(parts, [fold.scored for fold in data.folds])
        return pooled.with_rounded_scores() if self.rule is None else pooled

    def value(self, predictions: Predictions, rows: LabelledRows, decided: Array | None = None) -> float:
        """The metric of predictions on `rows`, with the labels `decided` (n,) if they are given; else as the
        user's rule decides, or tuned decisions, fitted on the same rows."""
        known = self.decided(predictions, rows) if decided is None else decided
        return self.value_as_decided(predictions, rows, known)

    def decided(
        self,
        predictions: Predictions,
        rows: LabelledRows,
        fit_on: tuple[Predictions, LabelledRows] | None = None,
    ) -> Array | None:
        """Labels (n,) by the user's rule or by tuned decisions; None where those that are recorded stand.

        What is fitted on validation rows is fitted on `fit_on`, the candidate's predictions on other rows and
        those rows, or on `rows` themselves.
        """
        of, fit_rows = fit_on or (predictions, rows)
        if self.always_tuned:
            fitted = self.tune(of, fit_rows)
            return None if fitted is None else self.decide_tuned(fitted, predictions, rows)
        if predictions.scores is None or self.rule is None:
            return None
        rule = self._fitted(self.rule, np.asarray(of.scores), fit_rows)
        return self._labels(rule.decide(read_only(predictions.scores), rows.columns))

    def value_of(
        self, name: str, predictions: Predictions, rows: LabelledRows, decided: Array | None = None
    ) -> float:
        """One of `metrics` of predictions on `rows`, in its own direction, with the labels `decided` (n,) if
        they are given; NaN where it is undefined."""
        try:
            value = self.value_as_decided(predictions, rows, decided, name)
        except MissingObjectError:  # of a search that was loaded without its metric
            raise
        except Exception:  # undefined on these rows
            return float("nan")
        return value if np.isfinite(value) else float("nan")

    def value_as_decided(
        self,
        predictions: Predictions,
        rows: LabelledRows,
        decided: Array | None = None,
        name: str | None = None,
    ) -> float:
        """The metric to optimise, or that of a `name`, of predictions with the labels `decided` (n,), or with
        the recorded ones; nothing is fitted."""
        metric = self.metric if name is None else self.metrics[name]
        return metric.value(
            predictions if metric is self.metric else predictions.for_all_metrics(),
            rows,
            pos_label=self.pos_label,
            decided=decided,
        )

    def values_at_once(self, outputs: Array, rows: LabelledRows) -> FloatArray | None:
        """The metric (m,) of outputs (m, n) from one call, higher is better; None if it cannot take many, or
        is undefined for some of them."""
        try:
            found = self.metric.values(outputs, rows)
        except Exception:
            return None
        if found is None:
            return None
        return found if self.metric.greater_is_better else -found

    def can_tune(self, predictions: Predictions) -> bool:
        """Whether decisions can be tuned: the metric looks at nothing else, and the model has scores."""
        of_decisions = self.rule is None and set(predictions.arrays) <= LABEL_ARRAYS
        return of_decisions and (self.classes is None or predictions.scores is not None)

    def tune(
        self,
        predictions: Predictions,
        rows: LabelledRows,
        most_calls: int | None = None,
        margins: Sequence[float] | None = None,
    ) -> Any:
        """A rule that decides by these predictions so that the metric is best on `rows`; None if decisions
        cannot be tuned.

        With `margins`, one for each constraint, it is the best that keeps the bounds with them, or what
        comes closest; decisions that are always tuned keep the bounds as they are without any.
        """
        if not self.can_tune(predictions):
            return None
        if most_calls is None:
            calls = SLOW_TUNING_CALLS if self.chooses_slowly else TUNING_CALLS
            most_calls = round(calls * self.decisions_tuned(rows))
        bounded = bool(self.constraints) and (margins is not None or self.always_tuned)
        sign = 1.0 if self.metric.greater_is_better else -1.0
        scores, task, own = self._tunable(predictions)

        def beyond(decided: Array) -> float:
            return self.excess(predictions, rows, self._labels(decided), margins) if bounded else 0.0

        def value(decided: Array) -> float:
            try:
                if beyond(decided) > 0:
                    return math.nan
                return sign * self.value_as_decided(predictions, rows, self._labels(decided))
            except Exception:  # undefined for these decisions
                return math.nan

        def values(decided: Array) -> FloatArray | None:
            return self.values_at_once(self._labels(decided), rows)

        settings: dict[str, Any] = {"task": task, "own_threshold": own, "most_calls": most_calls}
        if not bounded:
            at_once = values if self.metric.takes_many else None
            return self.tuned.tune(scores, value, rows.columns, values=at_once, **settings)
        fitted = self.tuned.tune(scores, value, rows.columns, undefined_is_lowest=False, **settings)
        if beyond(fitted.decide(scores, rows.columns)) <= 0:
            return fitted
        return self.tuned.tune(scores, lambda decided: -beyond(decided), rows.columns, **settings)

    def decisions_tuned(self, rows: LabelledRows) -> float:
        """How many times the calls of one threshold the tuning on these rows needs: with offsets of many
        classes, and with a threshold for each group."""
        if self.tuned.by is not None:
            names, _ = groups_of_rows(rows.columns, self.tuned.by, len(rows))
            return float(np.clip(len(names), 3, _MOST_GROUPS))
        return 1.0 if self.classes is None else max(1.0, len(self.classes) / 3)

    def excess(
        self,
        predictions: Predictions,
        rows: LabelledRows,
        decided: Array | None = None,
        margins: Sequence[float] | None = None,
    ) -> float:
        """How far predictions on `rows`, with the labels `decided` (n,) if they are given, are beyond the
        bounds, with these margins or none; 0 where all are kept."""
        margins = margins or [0.0] * len(self.constraints)
        return sum_of_excess(
            one.excess(self.value_of(one.name, predictions, rows, decided)) + margin
            for one, margin in zip(self.constraints, margins, strict=True)
        )

    def decide_tuned(self, fitted: Any, predictions: Predictions, rows: LabelledRows) -> Array:
        """Labels or numbers (n,) by a rule that `tune` fitted."""
        scores, _, _ = self._tunable(predictions)
        return self._labels(fitted.decide(scores, rows.columns))

    def _tunable(self, predictions: Predictions) -> tuple[FloatArray, Any, float]:
        if self.classes is None:
            numbers = next(iter(predictions.arrays.values()))
            return np.asarray(numbers, dtype=np.float64), "regression", 0.0
        return tunable_scores(np.asarray(predictions.scores), predictions.own_threshold)

    def final_model(
        self, model: Any, predictions: Predictions, data: SearchData, tuned: Any = None
    ) -> FinalModel:
        """The model with its decision rule, fitted for new rows; `tuned` is one that `tune` fitted."""
        if tuned is None and self.always_tuned:
            tuned = self.tune(predictions, data.validation)
        if self.rule is None or tuned is not None:
            return FinalModel(model, tuned, self.classes, self.pos_label)
        rows, scores = data.validation, predictions.scores
        if self.rule.fit_on == "train":
            rows = data.training
            scores = rule_score(model, self.rule, rows.X, self.pos_label)
        rule = self._fitted(self.rule, np.asarray(scores), rows)
        return FinalModel(model, rule, self.classes, self.pos_label)

    def predictions_on(self, final: FinalModel, rows: LabelledRows) -> Predictions:
        """What a model and its fitted rule predict on new rows."""
        self.check_columns(rows, "columns")
        decided = None if final.rule is None else final.decide(rows.X, rows.columns)
        return self._answers(final.model, rows, decided)

    def value_on(self, final: FinalModel, rows: LabelledRows) -> float:
        """The metric of a model and its fitted rule on new rows."""
        return self.value_as_decided(self.predictions_on(final, rows), rows)

    def _answers(self, model: Any, rows: LabelledRows, decided: Array | None) -> Predictions:
        """What the model predicts for all metrics: for the first, and what the others need beside it."""
        predictions = self._respond(self.metric, model, rows, decided)
        further: dict[str, Array] = {}
        classes, kind = predictions.classes, predictions.estimator_type
        known = predictions.arrays.get("decision", predictions.arrays.get("predict"))
        for metric in self.others.values():
            if metric.response in predictions.arrays or metric.response in further:
                continue
            answered = self._respond(metric, model, rows, known if decided is None else decided)
            further |= {name: a for name, a in answered.arrays.items() if name not in predictions.arrays}
            classes = answered.classes if classes is None else classes
            kind = answered.estimator_type if kind is None else kind
        if not further:
            return predictions
        return replace(predictions, classes=classes, estimator_type=kind, further=further)

    def _respond(self, metric: Metric, model: Any, rows: LabelledRows, decided: Array | None) -> Predictions:
        shown = replace(rows, X=read_only(rows.X), y=read_only(rows.y))
        with answering_alone():
            found = metric.respond(model, shown, pos_label=self.pos_label, decided=decided)
        if self.classes is None:
            _check_numbers(found, model)
        return found

    def _ask(self, model: Any, data: SearchData, fold: Fold) -> Predictions:
        """What the fold's model predicts for its validation rows, and what decisions are made by."""
        rows = data.validation_of(fold)
        if self.rule is not None:
            scores = rule_score(model, self.rule, rows.X, self.pos_label)
            if self.rule.fit_on == "train":
                training = data.training_of(fold)
                fit_on = rule_score(model, self.rule, training.X, self.pos_label)
                rule = self._fitted(self.rule, fit_on, training)
                return self._answers(model, rows, self._labels(rule.decide(read_only(scores), rows.columns)))
            # `value` decides again; the scorer only needs some decisions here.
            some = self._labels(scores > np.median(scores))
            return replace(self._answers(model, rows, some), scores=scores)
        decided, basis, own = None, None, 0.0
        if self.metric.response == "decision" and predicts_by_its_scores(model):
            with answering_alone():  # one pass over the rows gives both
                basis, own = decision_basis(model, read_only(rows.X), self.pos_label)
            if basis is not None:
                decided = own_decisions(basis, own, model_classes(model), self.pos_label)
        answered = self._answers(model, rows, decided)
        if basis is None and self.classes is not None and set(answered.arrays) <= LABEL_ARRAYS:
            # Only tuned decisions need them, and they are not worth a model that cannot give them.
            with answering_alone(), contextlib.suppress(*(() if self.always_tuned else (Exception,))):
                basis, own = decision_basis(model, read_only(rows.X), self.pos_label)
            if basis is None and self.always_tuned:
                what = (
                    f" needs scores, but {model_name(model)} gives labels only (no decision_function of its "
                    "classes, no predict_proba)"
                )
                raise _use_decision(None, Argument("decision", "tuned"), what, end=" or another model.")
        if basis is None or self.classes is None or np.array_equal(model_classes(model), self.classes):
            return replace(answered, scores=basis, own_threshold=own)
        # Scores of other classes than those of the final model: nothing that is tuned on them is for it.
        if self.always_tuned:
            raise InvalidInputError(
                Argument("decision", "tuned"),
                " needs models of all classes, but a fold lacks one; use folds that hold every class, such "
                "as a stratified splitter.",
                argument="evaluate_on",
            )
        return answered

    def _fitted(self, rule: DecisionRule, scores: FloatArray, rows: LabelledRows) -> DecisionRule:
        positive, columns = self._positive(rows), rows.columns
        if rows.sample_weight is not None:  # rules take no weights
            drawn = drawn_by_weight(rows.sample_weight, generator(0, "rule"))
            scores, positive = scores[drawn], positive[drawn]
            columns = {name: np.asarray(values)[drawn] for name, values in columns.items()}
        return rule.fit(read_only(scores), positive, columns)

    def _positive(self, rows: LabelledRows) -> BoolArray:
        return np.asarray(rows.y == self.pos_label, dtype=np.bool_)

    def _labels(self, decided: Array) -> Array:
        return _labels_of(decided, self.classes, self.pos_label)


def tunable_scores(scores: FloatArray, own_threshold: float) -> tuple[FloatArray, Any, float]:
    """What a tuned rule decides by, from what the model decides by: scores of the positive class, or of
    several classes, where probabilities become logarithms, which offsets are added to."""
    if scores.ndim == 1:
        return scores, "binary", own_threshold
    if own_threshold > 0:  # probabilities
        scores = np.log(np.maximum(scores, 1e-12))
    return scores, "classes", 0.0


def _use_decision(instead: Any, *words: str | Argument, end: str = ".") -> InvalidInputError:
    """The error for a decision that cannot be used here, which says what to use instead."""
    return InvalidInputError(*words, "; use ", Argument("decision", instead), end, argument="decision")


def _check_numbers(predictions: Predictions, model: Any) -> None:
    """Raise unless a regressor predicts numbers."""
    for array in predictions.arrays.values():
        try:
            np.asarray(array, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidInputError(
                f"{model_name(model)} is a regressor, and must predict numbers: {error}. One that predicts "
                "labels must be a classifier (`ClassifierMixin`).",
                argument="estimator",
            ) from error


def _labels_of(decided: Array, classes: Array | None, pos_label: Any) -> Array:
    """Labels (n,) from what a rule decides: for the positive class or not, numbers of classes, or numbers."""
    if classes is None:
        return np.asarray(decided)
    if len(classes) == 2 or decided.dtype == np.bool_:
        return decided_labels(decided, classes, pos_label)
    return np.asarray(classes)[decided]


def column_names(metrics: Iterable[Metric], rule: Any) -> tuple[str, ...]:
    """Names of the columns that the metrics or the rule need, which may also be columns of X."""
    needed = (name for metric in metrics for name in metric.required_columns)
    return tuple(dict.fromkeys((*needed, *(rule.columns if rule is not None else ()))))


def metric_columns(metric: Metric) -> tuple[str, ...]:
    """Names of the columns that the metric needs or can take, as far as they are known."""
    return tuple(dict.fromkeys((*metric.required_columns, *(metric.known_columns or ()))))


def answering_alone() -> parallel_config:
    """Context in which models predict on one thread.

    Models that predict in parallel (forests) add up in the order in which their threads finish, so that a
    score could miss a threshold that was fitted on it by its last bit; and on a cluster they would start
    processes for very little work. They still train in parallel.
    """
    return parallel_config(backend="sequential")
