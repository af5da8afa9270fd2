"""From a trained model to a number: the metric and the decision rule put together.

A model is asked once, on the validation rows. Its answers are kept, so that the metric can be evaluated
again on any of these rows, with the decision rule fitted anew, when the model is long gone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import parallel_config

from moew.data._problem import Fold, Part, Problem, check_same_rows
from moew.data._read_only import read_only
from moew.exceptions import InvalidInputError, UndefinedMetricError
from moew.metrics import AnyMetric, Metric, Outputs, decided_labels, respond
from moew.metrics._observation import Observation
from moew.types import BoolArray, Columns, DecisionRule, FloatArray, Response, Rows


@dataclass(frozen=True)
class Evaluator:
    """The metric, the decision rule (not fitted) and the classes (C,), None in regression."""

    metric: AnyMetric
    rule: DecisionRule | None
    classes: np.ndarray[Any, Any] | None

    def __post_init__(self) -> None:
        named = self.metric.pos_label if isinstance(self.metric, Metric) else None
        if named is not None and self.classes is not None and named not in self.classes.tolist():
            raise InvalidInputError(
                f"the metric's pos_label={named!r} is not one of the classes {self.classes.tolist()[:10]!r}."
            )
        if self.classes is not None and len(self.classes) == 2:
            return
        got = "a regressor" if self.classes is None else f"{len(self.classes)} classes"
        if self.metric.needs_two_classes:
            raise InvalidInputError(f"the metric {self.metric.name!r} is for two classes, got {got}.")
        if self.rule is not None:
            raise InvalidInputError(
                f"a decision rule decides between two classes, got {got}; use decision=None."
            )

    @property
    def pos_label(self) -> Any:
        """The class that scores and decisions speak of: the metric's, else the second of two."""
        named = self.metric.pos_label if isinstance(self.metric, Metric) else None
        binary = self.classes is not None and len(self.classes) == 2
        return self.classes[1] if named is None and binary and self.classes is not None else named

    def check(self, problem: Problem, rng: np.random.Generator) -> None:
        """Raise now what would fail for every candidate later, by a rehearsal on made-up answers."""
        validation, training = problem.validation, problem.training
        argument = "metadata_val" if problem.given_validation else "metadata"
        self.check_columns(validation, argument)
        decided = None
        if self.rule is not None:
            part = training if self.rule.fit_on == "train" else validation
            self._check_labels(part)
            fitted = self.rule.fit(rng.standard_normal(len(part)), self._positive(part), part.columns)
            if self.rule.fit_on == "train":
                scores = rng.standard_normal(len(validation))
                decided = self._labels(fitted.decide(scores, validation.columns))
        self._rehearse_metric(validation, training, decided, rng)

    def check_test(self, test: Part, problem: Problem, rng: np.random.Generator) -> None:
        """Raise now what would fail for every model on the test rows; nothing is fitted on them."""
        check_same_rows(problem.training.X, test.X, "the test rows")
        self.check_columns(test, "metadata_test")
        self._rehearse_metric(test, problem.training, None, rng)

    def check_columns(self, part: Part, argument: str) -> None:
        """Raise unless the metric finds its columns, which the user passes as `argument`."""
        weighted = part.sample_weight is not None
        self.metric.check_columns(part.columns, len(part), argument, weighted=weighted)

    def observe(self, models: Sequence[Any], problem: Problem) -> Observation:
        """Ask the models, one a fold, on the validation rows they score."""
        parts = [self._ask(model, problem, fold) for model, fold in zip(models, problem.folds, strict=True)]
        rows = [fold.scored for fold in problem.folds]
        outputs = Outputs.pooled([part.outputs for part in parts], rows)
        scores = [part.scores for part in parts if part.scores is not None]
        # Fold after fold, the scored rows are 0 … n−1 in order.
        return Observation(outputs, np.concatenate(scores) if scores else None)

    def value(
        self, observation: Observation, part: Part, fit_on: tuple[FloatArray, Part] | None = None
    ) -> float:
        """The metric of answers on `part`; a rule that is fitted on validation rows is fitted on
        `fit_on`, the candidate's scores of other rows and those rows, or on `part` itself."""
        decided = None
        if observation.scores is not None and self.rule is not None:
            scores, fit_part = fit_on or (observation.scores, part)
            rule = self._fitted(scores, fit_part)
            decided = self._labels(rule.decide(read_only(observation.scores), part.columns))
        return self.metric.value(
            observation.outputs,
            part.X,
            part.y,
            part.columns,
            pos_label=self.pos_label,
            sample_weight=part.sample_weight,
            decided=decided,
        )

    def final_rule(self, model: Any, observation: Observation, problem: Problem) -> DecisionRule | None:
        """The rule that the chosen `model` decides with on new rows."""
        if self.rule is None:
            return None
        if self.rule.fit_on == "train":
            return self._fitted(self._score(model, self.rule, problem.training.X), problem.training)
        if observation.scores is None:
            raise InvalidInputError("the candidate kept no scores that its decision rule could be fitted on.")
        return self._fitted(observation.scores, problem.validation)

    def decide(self, model: Any, rule: DecisionRule, X: Rows, columns: Columns) -> np.ndarray[Any, Any]:
        """Labels (n,) of new rows by a fitted rule."""
        return self._labels(rule.decide(self._score(model, rule, X), columns))

    def observe_on(self, model: Any, rule: DecisionRule | None, part: Part) -> Observation:
        """What a model and its fitted rule answer on new rows."""
        self.check_columns(part, "metadata")
        decided = None if rule is None else self.decide(model, rule, part.X, part.columns)
        return Observation(self._respond(model, part, decided))

    def value_on(self, model: Any, rule: DecisionRule | None, part: Part) -> float:
        """The metric of a model and its fitted rule on new rows."""
        return self.value(self.observe_on(model, rule, part), part)

    def _respond(self, model: Any, part: Part, decided: np.ndarray[Any, Any] | None) -> Outputs:
        with _answering_alone():
            return self.metric.respond(
                model,
                read_only(part.X),
                read_only(part.y),
                part.columns,
                pos_label=self.pos_label,
                sample_weight=part.sample_weight,
                decided=decided,
            )

    def _ask(self, model: Any, problem: Problem, fold: Fold) -> Observation:
        validation = problem.validation_of(fold)
        decided, scores = None, None
        if self.rule is not None:
            scores = self._score(model, self.rule, validation.X)
            if self.rule.fit_on == "train":
                training = problem.training_of(fold)
                rule = self._fitted(self._score(model, self.rule, training.X), training)
                decided, scores = self._labels(rule.decide(read_only(scores), validation.columns)), None
            else:  # decided again in `value`; the scorer only has to see that there are decisions
                decided = self._labels(scores > np.median(scores))
        return Observation(self._respond(model, validation, decided), scores)

    def _fitted(self, scores: FloatArray, part: Part) -> DecisionRule:
        if self.rule is None:
            raise InvalidInputError("there is no decision rule to fit.")
        return self.rule.fit(read_only(scores), self._positive(part), part.columns)

    def _score(self, model: Any, rule: DecisionRule, X: Rows) -> FloatArray:
        """What the rule decides by (n,): the score of the positive class or its probability."""
        response: Response = "proba" if getattr(rule, "of", "score") == "probability" else "score"
        with _answering_alone():
            return respond(model, read_only(X), response, self.pos_label)

    def _positive(self, part: Part) -> BoolArray:
        return np.asarray(part.y == self.pos_label, dtype=np.bool_)

    def _labels(self, decided: BoolArray) -> np.ndarray[Any, Any]:
        return decided_labels(decided, np.asarray(self.classes), self.pos_label)

    def _check_labels(self, part: Part) -> None:
        """Raise if the rule learns from labels, and these are not of the classes (graded, say)."""
        strange = np.setdiff1d(part.y, np.asarray(self.classes))
        if getattr(self.rule, "needs_labels", True) and len(strange):
            raise InvalidInputError(
                f"the decision rule {type(self.rule).__name__} learns from labels, but the validation labels "
                f"{strange[:3].tolist()} are not among the classes {np.asarray(self.classes).tolist()}; "
                "use a rule that needs no labels (ShareSelected, a fixed threshold), or one with on='train'."
            )

    def _rehearse_metric(
        self, part: Part, training: Part, decided: np.ndarray[Any, Any] | None, rng: np.random.Generator
    ) -> None:
        if isinstance(self.metric, Metric):
            self._rehearse(self.metric, part, training, decided, rng)
        else:
            self.metric.rehearse(read_only(part.y), rng.choice(training.y, len(part)))

    def _rehearse(
        self,
        metric: Metric,
        validation: Part,
        training: Part,
        decided: np.ndarray[Any, Any] | None,
        rng: np.random.Generator,
    ) -> None:
        n = len(validation)
        n_columns = () if self.classes is None or len(self.classes) == 2 else (len(self.classes),)
        trials: list[np.ndarray[Any, Any]]
        if metric.response == "decision":
            # Some metrics need a decision for a class that is rare: so all for one, too.
            trials = [rng.choice(training.y, n), *(np.full(n, c) for c in np.unique(training.y)[[-1, 0]])]
            trials = trials if decided is None else [decided, *trials]
        else:
            numbers = rng.random((n, *n_columns))
            trials = [numbers / numbers.sum(axis=-1, keepdims=True) if n_columns else numbers]
        error: Exception | None = None
        for answers in trials:
            try:
                arguments = {"pos_label": self.pos_label, "sample_weight": validation.sample_weight}
                metric(validation.y, answers, validation.columns, **arguments)
                return
            except (InvalidInputError, UndefinedMetricError) as problem:
                error = problem
            except Exception:
                return  # made-up answers may be what this metric cannot take; real ones will tell
        if error is not None:
            raise error


def _answering_alone() -> parallel_config:
    """Context in which models answer on one thread.

    Those that answer in parallel (forests) add up in the order their threads finish, so that a score could
    miss the threshold that was fitted on it by its last bit; and they would start a cluster's processes
    for a moment's work. They train in parallel, but answer alone.
    """
    return parallel_config(backend="sequential")


def column_names(metric: AnyMetric, rule: DecisionRule | None) -> tuple[str, ...]:
    """Columns that the metric or the rule names, which may also be columns of X."""
    of_metric = metric.required_columns if isinstance(metric, Metric) else ()
    return (*of_metric, *(rule.columns if rule is not None else ()))


def columns_from(metadata: Mapping[str, Any] | None, X: Rows, names: Sequence[str]) -> dict[str, Any]:
    """The user's columns, and of `names` those that are not among them but are columns of X."""
    if not (metadata is None or isinstance(metadata, Mapping) or hasattr(metadata, "columns")):
        raise InvalidInputError(
            f"metadata must be a dict of columns or a data frame, got {type(metadata).__name__}."
        )
    found: dict[str, Any] = {} if metadata is None else {name: metadata[name] for name in metadata}
    for name, values in found.items():
        if np.ndim(values) != 1:
            raise InvalidInputError(f"the column {name!r} must have one value for each row, got {values!r}.")
    in_X = getattr(X, "columns", ())
    found.update({name: X[name] for name in names if name not in found and name in in_X})
    return {name: np.asarray(values) for name, values in found.items()}
