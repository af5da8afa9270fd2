"""Candidates' models trained again, to the same bits: a search keeps the winner's only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from moew.data._problem import Part, Problem, given_problem
from moew.data._read_only import read_only
from moew.exceptions import InvalidInputError, SearchFailedError
from moew.inspection._rows import trained_rows
from moew.search._evaluate import column_names
from moew.search._prepare import Given, part_of, task_of
from moew.training import resolve_trainer
from moew.types import DecisionRule, Labels, Rows


@dataclass(frozen=True)
class GivenRows:
    """Training and validation rows as the search saw them, but for rows set aside for the honest score."""

    training: Part
    validation: Part | None  # None where every row was trained on, as in cross-validation


def given_rows(
    search: Any,
    X: Rows,
    y: Labels,
    X_val: Rows = None,
    y_val: Labels = None,
    *,
    metadata: Mapping[str, Any] | None = None,
    metadata_val: Mapping[str, Any] | None = None,
) -> GivenRows:
    """From the rows that the search was fitted with: those trained on, and those scored on.

    Without validation rows they are the rows of X that were held out, if any.
    """
    if (X_val is None) != (y_val is None):
        raise InvalidInputError("X_val and y_val go together: pass both, or neither.")
    rows = trained_rows(search, X, y)
    names = column_names(search.evaluator_.metric, search.evaluator_.rule)
    task = task_of(search.estimator)
    labels = np.asarray(y)
    whole = part_of(Given(X, labels, None, metadata), task, "training", names)
    if X_val is not None:
        given = Given(X_val, np.asarray(y_val), None, metadata_val)
        return GivenRows(whole, part_of(given, task, "validation", names))
    held = np.setdiff1d(np.arange(len(labels)), rows.numbers)
    if len(held) == 0:
        return GivenRows(whole, None)
    return GivenRows(whole.take(rows.numbers), whole.take(held))


def train_again(search: Any, numbers: Sequence[int], X: Rows, y: Labels) -> Iterator[tuple[int, Any]]:
    """Yield (number, model) of candidates, trained again on the rows X and y that were trained on."""
    told = {t.candidate.number: t.candidate for t in search.result_.candidates}
    candidates = [told[number] for number in numbers]
    weights = search.study_.weighting.training_weights(np.stack([c.alpha for c in candidates]))
    trainer = resolve_trainer(search.estimator, search.sample_weight_name, search.n_jobs)
    for k, model in trainer.train(X, np.asarray(y), weights, [c.seed for c in candidates]):
        if isinstance(model, Exception):
            raise SearchFailedError(f"candidate {numbers[k]} could not be trained again: {model}") from model
        yield numbers[k], model


def rule_of(search: Any, model: Any, rows: GivenRows) -> DecisionRule | None:
    """The decision rule as the search fits it for a candidate's model."""
    evaluator = search.evaluator_
    if evaluator.rule is None:
        return None
    if rows.validation is None:
        raise InvalidInputError("the decision rule is fitted again on validation rows: pass X_val and y_val.")
    problem: Problem = given_problem(task_of(search.estimator), rows.training, rows.validation)
    rule: DecisionRule | None = evaluator.final_rule(model, evaluator.observe([model], problem), problem)
    return rule


def values_again(
    search: Any, numbers: Sequence[int], rows: GivenRows, X_new: Rows, y_new: Labels, metadata_new: Any = None
) -> dict[int, float]:
    """The metric of candidates on new rows, by number."""
    evaluator = search.evaluator_
    names = column_names(evaluator.metric, evaluator.rule)
    given = Given(X_new, np.asarray(y_new), None, metadata_new)
    new = part_of(given, task_of(search.estimator), "test", names)
    return {
        number: evaluator.value_on(model, rule_of(search, model, rows), new)
        for number, model in train_again(search, numbers, rows.training.X, rows.training.y)
    }


def answers_of(search: Any, model: Any, rule: DecisionRule | None, part: Part) -> Any:
    """What a model and its rule decide, or predict, on rows."""
    if rule is None:
        return np.asarray(model.predict(read_only(part.X)))
    return search.evaluator_.decide(model, rule, part.X, part.columns)
