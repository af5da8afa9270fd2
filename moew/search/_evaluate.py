"""Evaluate trained models with the metric and the decision rule.

A model predicts once, on the validation rows. Its predictions are kept, so that the metric can be evaluated
again on any of these rows, with the decision rule refitted, without the model.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from joblib import parallel_config

from moew.data import Fold, LabelledRows, SearchData, read_only
from moew.data._rows import check_same_rows
from moew.decision import AdjustedPredictions, ClassOffsets, Tuned, tune
from moew.exceptions import Argument, InvalidInputError, MissingObjectError
from moew.metrics import (
    Constraint,
    Predictions,
    decided_labels,
    decision_basis,
    model_classes,
    model_name,
    own_decisions,
    predicts_by_its_scores,
    respond,
)
from moew.models._calibration import Calibration, scores_to_calibrate
from moew.types import Array, BoolArray, Columns, DecisionRule, FloatArray, Labels, Metric, Response, Rows

PLAINLY_TUNED = Tuned()  # without groups
LABEL_ARRAYS = frozenset({"decision", "predict"})  # names of predictions that are decisions, or numbers
TUNING_CALLS = 40  # calls of the metric that tune one decision
SLOW_TUNING_CALLS = 8  # of a metric that is said to be slow


def constant_model(constant: Any, X: Rows, y: Labels, *, classifies: bool) -> Any:
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

    def probabilities(self, X: Rows) -> Array:
        """Class probabilities (n, C): calibrated ones, or the model's own."""
        if self.calibration is None:
            return np.asarray(self.model.predict_proba(read_only(X)))
        with answering_alone():
            return self.calibration.probabilities(scores_to_calibrate(self.model, read_only(X)))

    def decide(self, X: Rows, columns: Columns) -> Array:
        """Labels (n,) by the decision rule, or by the model's `predict`; `columns` are for the rule."""
        if self.rule is None:
            return np.asarray(self.model.predict(read_only(X)))
        if not isinstance(self.rule, ClassOffsets | AdjustedPredictions):
            score = rule_score(self.model, self.rule, X, self.pos_label)
            return decided_labels(self.rule.decide(score, columns), np.asarray(self.classes), self.pos_label)
        with answering_alone():
            if self.classes is None:
                return np.asarray(self.rule.decide(np.asarray(self.model.predict(read_only(X))), columns))
            scores, own = decision_basis(self.model, read_only(X), self.pos_label)
        tunable, _, _ = tunable_scores(np.asarray(scores), own)
        return _tuned_labels(self.rule.decide(tunable, columns), self.classes, self.pos_label)


def rule_score(model: Any, rule: DecisionRule, X: Rows, pos_label: Any) -> FloatArray:
    """What the rule decides by (n,): the model's score of the positive class, or its probability."""
    response: Response = "proba" if rule.of == "probability" else "score"
    with answering_alone():
        return respond(model, read_only(X), response, pos_label)


@dataclass(frozen=True)
class Evaluator:
    """Scores models by the metric and the decision rule (not fitted); `classes` (C,), None in regression.

    `tuned` says how decisions are tuned for the metric where they are; with `always_tuned` those of every
    candidate are, because the user said so. `others` are metrics that are looked at beside the one to
    optimise, by name, and `name` is what that one is called among them; `constraints` are bounds of any.
    """

    metric: Metric
    rule: DecisionRule | None
    classes: Array | None
    tuned: Tuned = PLAINLY_TUNED
    always_tuned: bool = False
    others: Mapping[str, Metric] = field(default_factory=dict)
    name: str = ""
    constraints: tuple[Constraint, ...] = ()

    def __post_init__(self) -> None:
        for metric in (self.metric, *self.others.values()):
            self._check_metric(metric)
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
        got = "a regressor" if self.classes is None else f"{len(self.classes)} classes"
        if self.always_tuned and self.tuned.by is not None:
            raise InvalidInputError(
                Argument("by", self.tuned.by),
                f" gives thresholds by group, which need two classes, got {got}; use ",
                Argument("decision", "tuned"),
                ".",
                argument="decision",
            )
        if self.rule is not None:
            raise InvalidInputError(
                f"a decision rule decides between two classes, got {got}; use ",
                Argument("decision", None),
                ".",
                argument="decision",
            )

    def _check_metric(self, metric: Metric) -> None:
        named, classes = metric.pos_label, self.classes
        if named is not None and classes is not None and named not in classes.tolist():
            raise InvalidInputError(
                "the metric's ",
                Argument("pos_label", named.item() if isinstance(named, np.generic) else named),
                f" is not one of the classes {classes.tolist()[:10]!r}.",
                argument="pos_label",
            )
        if metric.needs_two_classes and (classes is None or len(classes) != 2):
            got = "a regressor" if classes is None else f"{len(classes)} classes"
            raise InvalidInputError(
                f"the metric {metric.name!r} is for two classes, got {got}.", argument="metric"
            )

    @property
    def metrics(self) -> dict[str, Metric]:
        """All metrics by name, the one to optimise first."""
        return {self.name or self.metric.name: self.metric, **self.others}

    @property
    def chooses_slowly(self) -> bool:
        """Whether a metric that chooses is said to be slow: the one to optimise, or one with a bound."""
        return self.metric.slow or any(self.metrics[one.name].slow for one in self.constraints)

    @property
    def choosing_columns(self) -> tuple[str, ...]:
        """Names of the columns that the metrics by which is chosen need or can take: the one to optimise, and
        those that have a bound."""
        bounded = [self.metrics[one.name] for one in self.constraints]
        return tuple(dict.fromkeys(n for metric in (self.metric, *bounded) for n in metric_columns(metric)))

    @property
    def pos_label(self) -> Any:
        """The positive class: the metric's, else the second of two classes."""
        if self.metric.pos_label is None and self.classes is not None and len(self.classes) == 2:
            return self.classes[1]
        return self.metric.pos_label

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of the columns that the metric or the rule needs, which may also be columns of X."""
        rule = self.tuned if self.always_tuned else self.rule
        return column_names((self.metric, *self.others.values()), rule)

    def rehearse(self, estimator: Any, data: SearchData, rng: np.random.Generator) -> None:
        """Raise now what would fail for every candidate, by trying made-up predictions."""
        validation, training = data.validation, data.training
        self.check_columns(validation, "metadata_val" if data.given_validation else "metadata")
        decided = None
        if self.always_tuned and self.metric.response in ("score", "proba"):
            raise InvalidInputError(
                Argument("decision", "tuned"),
                f" tunes decisions, but the metric {self.metric.name!r} judges scores, not decisions; use ",
                Argument("decision", None),
                ".",
                argument="decision",
            )
        if self.rule is not None:
            fitted_on = training if self.rule.fit_on == "train" else validation
            self._check_labels(fitted_on)
            scores = rng.standard_normal(len(fitted_on))
            fitted = self.rule.fit(scores, self._positive(fitted_on), fitted_on.columns)
            if self.rule.fit_on == "train":
                scores = rng.standard_normal(len(validation))
                decided = self._labels(fitted.decide(scores, validation.columns))
        self._rehearse_metric(estimator, validation, training, decided, rng)

    def rehearse_test(
        self, estimator: Any, test: LabelledRows, data: SearchData, rng: np.random.Generator
    ) -> None:
        """As `rehearse`, for the test rows; nothing is fitted on them."""
        check_same_rows(data.training.X, test.X, "the test rows")
        self.check_columns(test, "metadata_test")
        self._rehearse_metric(estimator, test, data.training, None, rng)

    def check_columns(self, rows: LabelledRows, argument: str) -> None:
        """Raise if a column that the metric needs is missing; the user passes columns as `argument`."""
        weighted = rows.sample_weight is not None
        for metric in (self.metric, *self.others.values()):
            metric.check_columns(rows.columns, len(rows), argument, weighted=weighted)

    def predictions(self, models: Sequence[Any], data: SearchData) -> Predictions:
        """Predictions of the models, one for each fold, on the validation rows of their folds, as a storage
        keeps them: scores that only tuned decisions look at are rounded."""
        parts = [self._ask(model, data, fold) for model, fold in zip(models, data.folds, strict=True)]
        pooled = Predictions.pooled(parts, [fold.scored for fold in data.folds])
        return pooled.with_rounded_scores() if self.rule is None else pooled

    def value(
        self,
        predictions: Predictions,
        rows: LabelledRows,
        fit_on: tuple[Predictions, LabelledRows] | None = None,
        *,
        decided: Array | None = None,
    ) -> float:
        """The metric of predictions on `rows`, with the labels `decided` (n,) if they are given.

        A rule that is fitted on validation rows is fitted on `fit_on`, the candidate's predictions on other
        rows and those rows, or on `rows` themselves; and so are tuned decisions.
        """
        if decided is None:
            decided = self.decided(predictions, rows, fit_on)
        return self._metric_value(predictions, rows, decided)

    def decided(
        self,
        predictions: Predictions,
        rows: LabelledRows,
        fit_on: tuple[Predictions, LabelledRows] | None = None,
    ) -> Array | None:
        """Labels (n,) by the user's rule or by tuned decisions, fitted as in `value`; None where those that
        are recorded stand."""
        if self.always_tuned:
            fitted = self.tune(*(fit_on or (predictions, rows)))
            return None if fitted is None else self.decide_tuned(fitted, predictions, rows)
        if predictions.scores is None or self.rule is None:
            return None
        of, fit_rows = fit_on or (predictions, rows)
        rule = self._fitted(np.asarray(of.scores), fit_rows)
        return self._labels(rule.decide(read_only(predictions.scores), rows.columns))

    def value_of(
        self, name: str, predictions: Predictions, rows: LabelledRows, decided: Array | None = None
    ) -> float:
        """One of `metrics` of predictions on `rows`, in its own direction, with the labels `decided` (n,) if
        they are given; NaN where it is undefined."""
        try:
            value = self.defined_value_of(name, predictions, rows, decided)
        except MissingObjectError:  # of a search that was loaded without its metric
            raise
        except Exception:  # undefined on these rows
            return float("nan")
        return value if np.isfinite(value) else float("nan")

    def defined_value_of(
        self, name: str, predictions: Predictions, rows: LabelledRows, decided: Array | None = None
    ) -> float:
        """As `value_of`, but an error of the metric is raised."""
        metric = self.metrics[name]
        known = predictions if metric is self.metric else predictions.for_all_metrics()
        return self._metric_value(known, rows, decided, metric)

    def _metric_value(
        self,
        predictions: Predictions,
        rows: LabelledRows,
        decided: Array | None,
        metric: Metric | None = None,
    ) -> float:
        return (metric or self.metric).value(
            predictions,
            rows.X,
            rows.y,
            rows.columns,
            pos_label=self.pos_label,
            sample_weight=rows.sample_weight,
            decided=decided,
        )

    def values_at_once(self, outputs: Array, rows: LabelledRows) -> FloatArray | None:
        """The metric (m,) of outputs (m, n) from one call, higher is better; None if it cannot take many, or
        is undefined for some of them."""
        try:
            found = self.metric.values(outputs, rows.y, sample_weight=rows.sample_weight)
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
        allowed: Callable[[Array], bool] | None = None,
    ) -> Any:
        """A rule that decides by these predictions so that the metric is best on `rows`; None if decisions
        cannot be tuned. `allowed` says which labels (n,) may be decided; None: all."""
        if not self.can_tune(predictions):
            return None
        if most_calls is None:
            most_calls = SLOW_TUNING_CALLS if self.metric.slow else TUNING_CALLS
        sign = 1.0 if self.metric.greater_is_better else -1.0
        scores, task, own = self._tunable(predictions)

        def value(decided: Array) -> float:
            labels = _tuned_labels(decided, self.classes, self.pos_label)
            try:
                if allowed is not None and not allowed(labels):
                    return float("nan")
                return sign * self._metric_value(predictions, rows, labels)
            except Exception:  # undefined for these decisions
                return float("nan")

        def values(decided: Array) -> FloatArray | None:
            return self.values_at_once(_tuned_labels(decided, self.classes, self.pos_label), rows)

        return tune(
            self.tuned,
            scores,
            value,
            rows.columns,
            task=task,
            own_threshold=own,
            most_calls=most_calls,
            values=values if self.metric.takes_many and allowed is None else None,
            undefined_is_lowest=allowed is None,
        )

    def decide_by_rule(self, predictions: Predictions, rows: LabelledRows) -> Array:
        """Labels (n,) by the user's rule, fitted on the same rows."""
        rule = self._fitted(np.asarray(predictions.scores), rows)
        return self._labels(rule.decide(read_only(predictions.scores), rows.columns))

    def decide_tuned(self, fitted: Any, predictions: Predictions, rows: LabelledRows) -> Array:
        """Labels or numbers (n,) by a rule that `tune` fitted."""
        scores, _, _ = self._tunable(predictions)
        return _tuned_labels(fitted.decide(scores, rows.columns), self.classes, self.pos_label)

    def _tunable(self, predictions: Predictions) -> tuple[FloatArray, Any, float]:
        if self.classes is None:
            numbers = next(iter(predictions.arrays.values()))
            return np.asarray(numbers, dtype=np.float64), "regression", 0.0
        return tunable_scores(np.asarray(predictions.scores), predictions.own_threshold)

    def final_model(
        self, model: Any, predictions: Predictions, data: SearchData, tuned: Any = None
    ) -> FinalModel:
        """The model with its decision rule, fitted for new rows; `tuned` is one that `tune` fitted."""
        rule = self._final_rule(model, predictions, data) if tuned is None else tuned
        return FinalModel(model, rule, self.classes, self.pos_label)

    def _final_rule(self, model: Any, predictions: Predictions, data: SearchData) -> Any:
        if self.always_tuned:
            return self.tune(predictions, data.validation)
        if self.rule is None:
            return None
        if self.rule.fit_on == "train":
            return self._fitted(self._score(model, data.training.X), data.training)
        if predictions.scores is None:
            raise InvalidInputError("the candidate kept no scores that its decision rule could be fitted on.")
        return self._fitted(predictions.scores, data.validation)

    def predictions_on(self, final: FinalModel, rows: LabelledRows) -> Predictions:
        """What a model and its fitted rule predict on new rows."""
        self.check_columns(rows, "metadata")
        decided = None if final.rule is None else final.decide(rows.X, rows.columns)
        return self._with_further(
            self._respond(self.metric, final.model, rows, decided), final.model, rows, decided
        )

    def values_on(self, final: FinalModel, rows: LabelledRows) -> dict[str, float]:
        """All metrics of a model and its fitted rule on new rows, by name; NaN where one is undefined."""
        predictions = self.predictions_on(final, rows)
        return {name: self.value_of(name, predictions, rows) for name in self.metrics}

    def value_on(self, final: FinalModel, rows: LabelledRows) -> float:
        """The metric of a model and its fitted rule on new rows."""
        return self.value_as_decided(self.predictions_on(final, rows), rows)

    def value_as_decided(self, predictions: Predictions, rows: LabelledRows) -> float:
        """The metric of predictions whose decisions are made; nothing is fitted."""
        return self._metric_value(predictions, rows, None)

    def _respond(self, metric: Metric, model: Any, rows: LabelledRows, decided: Array | None) -> Predictions:
        with answering_alone():
            found = metric.respond(
                model,
                read_only(rows.X),
                read_only(rows.y),
                rows.columns,
                pos_label=self.pos_label,
                sample_weight=rows.sample_weight,
                decided=decided,
            )
        if self.classes is None:
            _check_numbers(found, model)
        return found

    def _with_further(
        self, predictions: Predictions, model: Any, rows: LabelledRows, decided: Array | None
    ) -> Predictions:
        """The predictions with what the other metrics need that is not among them."""
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

    def _ask(self, model: Any, data: SearchData, fold: Fold) -> Predictions:
        validation = data.validation_of(fold)
        decided, scores = None, None
        if self.rule is not None:
            scores = self._score(model, validation.X)
            if self.rule.fit_on == "train":
                training = data.training_of(fold)
                rule = self._fitted(self._score(model, training.X), training)
                decided, scores = self._labels(rule.decide(read_only(scores), validation.columns)), None
            else:  # `value` decides again; the scorer only needs some decisions here
                decided = self._labels(scores > np.median(scores))
        own = 0.0
        if self.rule is None and self.metric.response == "decision" and predicts_by_its_scores(model):
            with answering_alone():  # one pass over the rows gives both
                scores, own = decision_basis(model, read_only(validation.X), self.pos_label)
            if scores is not None:
                decided = own_decisions(scores, own, model_classes(model), self.pos_label)
        answered = self._with_further(
            self._respond(self.metric, model, validation, decided), model, validation, decided
        )
        of_labels = self.classes is not None and set(answered.arrays) <= LABEL_ARRAYS
        if scores is None and self.rule is None and of_labels:
            # Only tuned decisions need them, and they are not worth a model that cannot give them.
            with answering_alone(), contextlib.suppress(*(() if self.always_tuned else (Exception,))):
                scores, own = decision_basis(model, read_only(validation.X), self.pos_label)
            if scores is None and self.always_tuned:
                raise InvalidInputError(
                    Argument("decision", "tuned"),
                    f" needs scores, but {model_name(model)} gives labels only (no decision_function of its "
                    "classes, no predict_proba); use ",
                    Argument("decision", None),
                    " or another model.",
                    argument="decision",
                )
        if scores is not None and self.rule is None and not self._knows_all_classes(model):
            # Scores of other classes than those of the final model: nothing that is tuned on them is for it.
            if self.always_tuned:
                raise InvalidInputError(
                    Argument("decision", "tuned"),
                    " needs models of all classes, but a fold lacks one; use folds that hold every class, "
                    "such as a stratified splitter.",
                    argument="validation",
                )
            scores, own = None, 0.0
        return replace(answered, scores=scores, own_threshold=own)

    def _knows_all_classes(self, model: Any) -> bool:
        return self.classes is None or np.array_equal(model_classes(model), self.classes)

    def _fitted(self, scores: FloatArray, rows: LabelledRows) -> DecisionRule:
        if self.rule is None:
            raise InvalidInputError("there is no decision rule to fit.", argument="decision")
        return self.rule.fit(read_only(scores), self._positive(rows), rows.columns)

    def _score(self, model: Any, X: Rows) -> FloatArray:
        if self.rule is None:
            raise InvalidInputError("there is no decision rule to score for.", argument="decision")
        return rule_score(model, self.rule, X, self.pos_label)

    def _positive(self, rows: LabelledRows) -> BoolArray:
        return np.asarray(rows.y == self.pos_label, dtype=np.bool_)

    def _labels(self, decided: BoolArray) -> Array:
        return decided_labels(decided, np.asarray(self.classes), self.pos_label)

    def _check_labels(self, rows: LabelledRows) -> None:
        """Raise if the rule learns from labels and these are not among the classes (graded labels, say)."""
        strange = np.setdiff1d(rows.y, np.asarray(self.classes))
        if self.rule is not None and self.rule.needs_labels and len(strange):
            raise InvalidInputError(
                f"the decision rule {type(self.rule).__name__} learns from labels, but the validation labels "
                f"{strange[:3].tolist()} are not among the classes {np.asarray(self.classes).tolist()}; "
                "use a rule that needs no labels (ShareSelected, a fixed threshold), or one with ",
                Argument("on", "train"),
                ".",
                argument="decision",
            )

    def _rehearse_metric(
        self,
        estimator: Any,
        rows: LabelledRows,
        training: LabelledRows,
        decided: Array | None,
        rng: np.random.Generator,
    ) -> None:
        for metric in (self.metric, *self.others.values()):
            metric.rehearse(
                estimator,
                rows,
                training.y,
                classes=self.classes,
                pos_label=self.pos_label,
                decided=decided,
                rng=rng,
            )


def tunable_scores(scores: FloatArray, own_threshold: float) -> tuple[FloatArray, Any, float]:
    """What a tuned rule decides by, from what the model decides by: scores of the positive class, or of
    several classes, where probabilities become logarithms, which offsets are added to."""
    if scores.ndim == 1:
        return scores, "binary", own_threshold
    if own_threshold > 0:  # probabilities
        scores = np.log(np.maximum(scores, 1e-12))
    return scores, "classes", 0.0


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


def _tuned_labels(decided: Array, classes: Array | None, pos_label: Any) -> Array:
    """Labels (n,) from decisions of a tuned rule: of two classes, of several, or numbers."""
    if classes is None:
        return decided
    if decided.dtype == np.bool_:
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
