"""The comparison the paper always makes: every weighting at the same number of trained models."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from moew._util.margins import TWO_SIDED, margin
from moew._util.seeds import generator, integer_seed
from moew.exceptions import InvalidInputError
from moew.search._contest import METHODS, Answer, Contest
from moew.search._learned import two_dimensional
from moew.search._prepare import Given
from moew.search._result import shown
from moew.types import FloatArray, Labels, Rows

_BOOTSTRAPS, _SLOW_BOOTSTRAPS = 200, 20


@dataclass(frozen=True)
class Row:
    """One method: its scores (repeats,) on the validation rows, corrected for the choice, and on test."""

    method: str
    n_models: int  # trained in each repeat
    best: FloatArray
    honest: FloatArray
    test: FloatArray
    note: str = ""

    @property
    def margin(self) -> float:
        """Half the width of the 95 % interval of the mean test score over the repeats."""
        return margin(self.test)


@dataclass(frozen=True)
class Comparison:
    """The table of `compare`; print it. Scores are in the metric's own units."""

    metric: str
    greater_is_better: bool
    rows: tuple[Row, ...]
    repeats: int
    n_test: int
    test_rows_margin: float  # of moew − uniform on test, from resampling the test rows

    def __getitem__(self, method: str) -> Row:
        for row in self.rows:
            if row.method == method:
                return row
        raise KeyError(f"{method!r} is not one of {', '.join(METHODS)}")

    @property
    def difference(self) -> FloatArray:
        """moew − uniform on the test rows, repeat by repeat (repeats,)."""
        return np.asarray(self["moew"].test - self["uniform"].test)

    @property
    def gain(self) -> FloatArray:
        """The same, positive where moew is better, whatever the metric's direction."""
        return self.difference if self.greater_is_better else -self.difference

    @property
    def record(self) -> dict[str, Any]:
        """Everything as JSON can hold it; scores and gains repeat by repeat."""
        return {
            "metric": self.metric,
            "greater_is_better": self.greater_is_better,
            "repeats": self.repeats,
            "n_test": self.n_test,
            "gain": self.gain.tolist(),
            "gain_margin": margin(self.gain),
            "test_rows_margin": self.test_rows_margin,
            "methods": {
                row.method: {
                    "models": row.n_models,
                    "best": row.best.tolist(),
                    "honest": row.honest.tolist(),
                    "test": row.test.tolist(),
                    "margin": row.margin,
                    "note": row.note,
                }
                for row in self.rows
            },
        }

    def __str__(self) -> str:
        better = "higher" if self.greater_is_better else "lower"
        lines = [
            f"{self.metric}, {better} is better; {self.repeats} repeats, {self.n_test:,} test rows",
            f"{'weights':12}{'models':>8}{'best':>11}{'honest':>11}{'test':>11}{'± 95 %':>11}",
        ]
        lines += [
            f"{row.method:12}{row.n_models:>8}{shown(row.best.mean(), 11)}{shown(row.honest.mean(), 11)}"
            f"{row.test.mean():>11.4g}{row.margin:>11.2g}"
            for row in self.rows
        ]
        lines.append(
            f"moew − uniform on test: {self.difference.mean():+.4g} ± {margin(self.gain):.2g} over the "
            f"repeats, ± {self.test_rows_margin:.2g} over the choice of test rows."
        )
        lines.append("best and honest are validation scores: as chosen, and corrected for the choice.")
        return "\n".join([*lines, *(f"{row.method}: {row.note}" for row in self.rows if row.note)])


def compare(
    search: Any,
    X: Rows,
    y: Labels,
    sample_weight: Any = None,
    *,
    X_val: Rows = None,
    y_val: Labels = None,
    X_test: Rows,
    y_test: Labels,
    sample_weight_val: Any = None,
    sample_weight_test: Any = None,
    metadata: Mapping[str, Any] | None = None,
    metadata_val: Mapping[str, Any] | None = None,
    metadata_test: Mapping[str, Any] | None = None,
    repeats: int = 10,
    random_state: int = 0,
) -> Comparison:
    """Compare uniform, random, importance and metric-optimized weights at equal budget.

    Every method trains as many models as `search`, an `ExampleWeightSearch` that is not fitted here,
    picks the one that is best on the validation rows, and is then evaluated once on the test rows. The
    data stay the same in all repeats; seeds differ.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from moew import ExampleWeightSearch
    >>> X, y = make_classification(600, weights=[0.9], flip_y=0.05, random_state=0)
    >>> search = ExampleWeightSearch(
    ...     LogisticRegression(), metric="balanced_accuracy", embedding="label", n_batches=1, batch_size=4
    ... )
    >>> table = compare(
    ...     search, X[:200], y[:200], X_val=X[200:400], y_val=y[200:400],
    ...     X_test=X[400:], y_test=y[400:], repeats=2,
    ... )
    >>> [(row.method, row.n_models) for row in table.rows]  # one model where training again changes nothing
    [('uniform', 1), ('random', 5), ('importance', 1), ('moew', 5)]
    >>> table.gain.shape
    (2,)
    """
    if repeats < 2:
        raise InvalidInputError(f"an error margin needs at least 2 repeats, got {repeats}.")
    if not hasattr(search, "fit_prepared"):
        raise InvalidInputError(f"compare needs an ExampleWeightSearch, got {type(search).__name__}.")
    if search.storage is not None:
        raise InvalidInputError("compare runs many searches of its own: pass a search without a storage.")
    X, X_val, X_test = (None if rows is None else two_dimensional(rows) for rows in (X, X_val, X_test))
    training = Given(X, y, sample_weight, metadata)
    validation = Given(X_val, y_val, sample_weight_val, metadata_val)
    test = Given(X_test, y_test, sample_weight_test, metadata_test)
    seeds = [integer_seed(random_state, "repeat", repeat) for repeat in range(repeats)]
    runs = [
        Contest(clone(search).set_params(random_state=seed), training, validation, test) for seed in seeds
    ]
    answers = {method: [run.answer(method) for run in runs] for method in METHODS}
    metric = runs[0].setup.evaluator.metric
    return Comparison(
        metric.name,
        metric.greater_is_better,
        tuple(_row(method, got) for method, got in answers.items()),
        repeats,
        len(runs[0].test),
        _bootstrap_margin(runs[0], answers, generator(random_state, "bootstrap")),
    )


def _row(method: str, answers: list[Answer]) -> Row:
    return Row(
        method,
        answers[0].n_models,
        np.array([answer.fitted.best_score_ for answer in answers]),
        np.array([answer.fitted.honest_score_ for answer in answers]),
        np.array([answer.test for answer in answers]),
        answers[0].note,
    )


def _bootstrap_margin(run: Contest, answers: Mapping[str, list[Answer]], rng: np.random.Generator) -> float:
    """Half the 95 % width of mean(moew − uniform) when the test rows are drawn again."""
    evaluator, n = run.setup.evaluator, len(run.test)
    gains = []
    n_draws = _SLOW_BOOTSTRAPS if evaluator.metric.slow else _BOOTSTRAPS
    for _ in range(n_draws):
        rows = rng.integers(n, size=n)
        part = run.test.take(rows)
        try:
            moew, uniform = (
                np.mean([evaluator.value(answer.on_test.take(rows), part) for answer in answers[method]])
                for method in ("moew", "uniform")
            )
        except Exception:  # undefined on these rows, such as a group without negatives
            continue
        gains.append(moew - uniform)
    finite = np.isfinite(gains)
    return float(TWO_SIDED * np.std(np.array(gains)[finite])) if finite.sum() > n_draws / 2 else math.nan
