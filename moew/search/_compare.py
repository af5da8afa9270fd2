"""Compare the strategies at the same number of trained models, each alone, and the whole search: as the paper
does with uniform, random and importance weights."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from moew._printable import printable
from moew._util.checks import Wanted
from moew._util.margins import TWO_SIDED, margin
from moew._util.numbers import alike, is_whole, number, with_margin
from moew._util.progress import progress
from moew._util.seeds import generator, integer_seed
from moew.data import (
    LabelledRows,
    Rows,
    as_rows,
    bootstrap_samples,
    two_dimensional,
)
from moew.exceptions import Argument, InvalidInputError, MoewError
from moew.metrics import Predictions
from moew.samplers import Ball
from moew.search._conclude import conclude, conclude_alone
from moew.search._estimator import MetricSearch
from moew.search._evaluate import FinalModel
from moew.search._honest_score import HonestScore, look_at_unweighted
from moew.search._loop import Budget, Outcome, Search, search_side_by_side, train_folds
from moew.search._prepare import Prepared, make_study, prepare
from moew.search._result import data_frame, html_table
from moew.search._settings import SearchSettings
from moew.search._strategies import (
    ALL_CANDIDATES,
    AND_TUNED,
    COMPARED,
    TUNED,
    UNWEIGHTED,
    Strategy,
    list_searches,
)
from moew.types import Features, FloatArray, Labels, Training
from moew.weighting import ListedWeighting

if TYPE_CHECKING:
    from pandas import DataFrame

_MOST_REPEATS = 100_000  # more are a mistake, and their seeds alone would take the memory
_REPEATS = Wanted(
    f"must be a whole number of at most {_MOST_REPEATS:,}, as each trains many models, and an error margin "
    "needs at least 2 repeats",
    lambda value: is_whole(value, 2) and value <= _MOST_REPEATS,
)
_SEED = Wanted("must be a whole number of 0 or more", lambda value: is_whole(value, 0))
_BOOTSTRAPS, _SLOW_BOOTSTRAPS = 200, 20


def compare(  # noqa: PLR0913 (the public face)
    search: MetricSearch,
    X: Features,
    y: Labels,
    sample_weight: Any = None,
    *,
    columns: Mapping[str, Any] | None = None,
    groups: Any = None,
    validation: Any = None,
    test: Any,
    fit_params: Mapping[str, Any] | None = None,
    repeats: int = 10,
    random_state: int = 0,
) -> Comparison:
    """Compare the strategies at equal budget, each alone, with random weights and with the whole search.

    Every one trains as many models as `search`, a `MetricSearch` that is not fitted here,
    picks the one that is best on the validation rows, and is then evaluated once on the test rows. The
    data are the same in all repeats; seeds differ. The searches of all repeats run side by side, so that a
    model that trains many weightings at once trains those of all repeats together.

    Rows are given as in `MetricSearch.fit`: `validation` and `test` are (X, y) or `Rows(X, y, …)`. If the
    test rows have groups, the margin over the choice of test rows is one over groups. `fit_params` are what
    the model's `fit` takes besides weights, as there.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from moew import ExampleWeights, MetricSearch
    >>> X, y = make_classification(600, weights=[0.9], flip_y=0.05, random_state=0)
    >>> search = MetricSearch(
    ...     LogisticRegression(),
    ...     metric="balanced_accuracy",
    ...     strategies=["auto", ExampleWeights(embedding="label", batch_size=4)],
    ...     n_candidates=4,
    ... )
    >>> rows = {"validation": (X[200:400], y[200:400]), "test": (X[400:], y[400:])}
    >>> table = compare(search, X[:200], y[:200], **rows, repeats=2)
    >>> [(row.method, row.n_models) for row in table.rows]  # doctest: +NORMALIZE_WHITESPACE
    [('unweighted', 1), ('tuned decisions', 1), ('importance weights', 3), ('class weights', 5),
     ('class weights, tuned', 5), ('random weights', 5), ('moew', 5)]
    >>> table.gain.shape
    (2,)
    """
    _SEED.check(Argument("random_state"), random_state)
    if not isinstance(search, MetricSearch):
        raise InvalidInputError(
            f"compare needs a MetricSearch, got {type(search).__name__}.", argument="search"
        )
    if search.settings.storage is not None:
        raise InvalidInputError(
            "compare runs many searches of its own: pass a search without a ",
            Argument("storage"),
            ".",
            argument="storage",
        )
    training = Rows(None if X is None else two_dimensional(X), y, sample_weight, columns, groups)
    given, held = as_rows(validation, "validation"), as_rows(test, "test")
    return compare_settings(search.settings, training, given, held, repeats, random_state, fit_params)


def compare_settings(
    settings: SearchSettings,
    training: Rows,
    validation: Rows,
    test: Rows,
    repeats: int,
    random_state: int = 0,
    fit_params: Mapping[str, Any] | None = None,
) -> Comparison:
    """As `compare`, from the settings of a search and records of rows."""
    _REPEATS.check(Argument("repeats"), repeats)
    if settings.timeout is not None:
        raise InvalidInputError(
            "a comparison trains equally many models with every method, however long it takes: leave out ",
            Argument("timeout"),
            ".",
            argument="timeout",
        )
    seeds = [integer_seed(random_state, "repeat", repeat) for repeat in range(repeats)]
    prepared = _prepare_repeats(settings, training, validation, test, seeds, fit_params)
    choices = choices_of_all(prepared)
    evaluator, rows = prepared[0].evaluator, _test(prepared[0])
    return Comparison(
        evaluator.metric.name,
        evaluator.metric.greater_is_better,
        tuple(Row.of(method, made) for method, made in choices.items()),
        repeats,
        len(rows),
        _bootstrap_margin(prepared[0], choices, generator(random_state, "bootstrap")),
    )


MOEW = "moew"  # the row of whole searches


@dataclass(frozen=True)
class Row:
    """One method: its scores (repeats,) on the validation rows, honest ones, and on the test rows."""

    method: str
    n_models: int  # trained in each repeat; the mean where searches stop early
    apparent: FloatArray
    honest: FloatArray
    test: FloatArray
    note: str = ""

    @classmethod
    def of(cls, method: str, choices: Sequence[Choice]) -> Row:
        """What a method chose in all repeats."""
        n_models = round(np.mean([choice.n_models for choice in choices]))
        names = ("apparent", "honest", "test")
        apparent, honest, test = (np.array([getattr(one, name) for one in choices]) for name in names)
        note = next((one.note for one in choices if one.note), "")
        return cls(method, n_models, apparent, honest, test, note)

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
    test_rows_margin: float  # of the mean moew − unweighted on test, from resampling the test rows

    def __getitem__(self, method: str) -> Row:
        for row in self.rows:
            if row.method == method:
                return row
        raise KeyError(f"{method!r} is not one of {', '.join(row.method for row in self.rows)}")

    @property
    def difference(self) -> FloatArray:
        """moew − unweighted on the test rows in each repeat (repeats,)."""
        return np.asarray(self[MOEW].test - self[UNWEIGHTED].test)

    @property
    def gain(self) -> FloatArray:
        """`difference` with the sign that makes it positive where moew is better (repeats,)."""
        return self.difference if self.greater_is_better else -self.difference

    @property
    def record(self) -> dict[str, Any]:
        """The whole comparison as a JSON-able dict, with scores and gains for each repeat."""
        scores = ("apparent", "honest", "test")
        return {
            **{name: getattr(self, name) for name in ("metric", "greater_is_better", "repeats", "n_test")},
            "gain": self.gain.tolist(),
            "gain_margin": margin(self.gain),
            "test_rows_margin": self.test_rows_margin,
            "methods": {
                row.method: {
                    "models": row.n_models,
                    **{name: getattr(row, name).tolist() for name in scores},
                    "margin": row.margin,
                    "note": row.note,
                }
                for row in self.rows
            },
        }

    def to_frame(self) -> DataFrame:
        """The comparison as a pandas data frame, a row for each method.

        Columns: `method`; `n_models`, trained in each repeat; the means over the repeats of `best`, `honest`
        and `test`; `margin`, half the width of the 95 % interval of `test`; and `note`. The scores of each
        repeat are in `rows`.
        """
        names = ("method", "n_models", "apparent", "honest", "test", "margin", "note")
        columns = {name: [getattr(row, name) for row in self.rows] for name in names}
        for name in ("apparent", "honest", "test"):
            columns[name] = [float(scores.mean()) for scores in columns[name]]
        return data_frame(columns, "a comparison")

    @property
    def texts(self) -> list[tuple[str, str, str, str]]:
        """For each method its mean best, honest and test score and the latter's margin, as a person reads
        them."""
        margins = [row.margin for row in self.rows]
        scores = [
            float(value)
            for row in self.rows
            for value in (row.apparent.mean(), row.honest.mean(), row.test.mean(), row.margin)
        ]
        shown = alike(scores, errors=margins)
        return [(shown[k], shown[k + 1], shown[k + 2], shown[k + 3]) for k in range(0, len(shown), 4)]

    @property
    def difference_in_words(self) -> str:
        """The mean of `difference`, with its margins over the repeats and over the choice of test rows."""
        over_repeats = with_margin(float(self.difference.mean()), margin(self.gain), sign=True)
        return (
            f"{over_repeats} over the repeats, ± {number(self.test_rows_margin, 2)} over the choice of test "
            "rows"
        )

    @property
    def _caption(self) -> str:
        better = "higher" if self.greater_is_better else "lower"
        return f"{self.metric}, {better} is better; {self.repeats} repeats, {self.n_test:,} test rows"

    @property
    def _below(self) -> list[str]:
        notes = [f"{row.method}: {row.note}" for row in self.rows if row.note]
        return [f"moew − unweighted on test: {self.difference_in_words}.", *notes]

    def __repr__(self) -> str:
        return printable(f"<Comparison: {self._caption}\n {self._below[0]}") + ">"

    def _repr_html_(self) -> str:
        pairs = zip(self.rows, self.texts, strict=True)
        rows = [(row.method, str(row.n_models), *texts) for row, texts in pairs]
        heads = ("method", "models", "apparent", "honest", "test", "± 95 %")
        return html_table(self._caption, heads, rows, self._below)

    def __str__(self) -> str:
        rows = [
            f"{row.method:28}{row.n_models:>8}{''.join(f'{text:>11}' for text in texts)}"
            for row, texts in zip(self.rows, self.texts, strict=True)
        ]
        heads = f"{'':28}{'models':>8}{'apparent':>11}{'honest':>11}{'test':>11}{'± 95 %':>11}"
        gain, *notes = self._below
        what = "apparent and honest are validation scores: as chosen, and corrected for the choice."
        return "\n".join([self._caption, heads, *rows, gain, what, *notes])


@dataclass(frozen=True)
class Choice:
    """What a method chose in one repeat: its scores, how it came about, and what its model predicts on the
    test rows."""

    apparent: float
    honest: float
    n_models: int
    test: float
    on_test: Predictions
    weight_function: Any
    note: str = ""


@dataclass(frozen=True)
class _Runs:
    """The finished searches of one method in all repeats."""

    searches: list[Search]
    outcomes: list[Outcome]
    n_models: int
    note: str = ""


def choices_of_all(
    prepared: Sequence[Prepared], methods: Sequence[str] | None = None
) -> dict[str, list[Choice]]:
    """What each strategy alone, tuned or not, and the whole search choose in each repeat; only those of
    `methods`, if they are given."""
    choices: dict[str, list[Choice]] = {}
    for strategy in COMPARED:
        names = {strategy.name: False}  # and whether decisions are tuned
        if strategy.can_be_tuned or strategy.name == UNWEIGHTED:
            names[TUNED if strategy.name == UNWEIGHTED else strategy.name + AND_TUNED] = True
        wanted = {name: tuned for name, tuned in names.items() if methods is None or name in methods}
        if not wanted or not strategy.is_for(prepared[0]) or (runs := _runs(strategy, prepared)) is None:
            continue
        evaluator, first = prepared[0].evaluator, next(iter(runs.outcomes[0].predictions.values()))
        can_tune = not evaluator.always_tuned and evaluator.can_tune(first)
        for name, tuned in wanted.items():
            if can_tune or not tuned:
                choices[name] = _choices(prepared, runs, tuned)
    if methods is None or MOEW in methods:
        choices[MOEW] = _moew(prepared)
    return choices


def _runs(strategy: Strategy, prepared: Sequence[Prepared]) -> _Runs | None:
    """The finished searches of one strategy in all repeats; None if it trains nothing by itself."""
    if (listed := [strategy.fixed(one) for one in prepared])[0] is not None:
        weights, notes = zip(*(one for one in listed if one is not None), strict=True)
        return _with_weights(prepared, weights, strategy.name, notes[0])
    searches = [search for one in prepared for search in strategy.searches(one, ALL_CANDIDATES, alone=True)]
    return _run(prepared, searches, strategy.name) if searches else None


def choices_with_weights(
    prepared: Sequence[Prepared], weights: Sequence[FloatArray], note: str = ""
) -> list[Choice]:
    """In each repeat the best of as many models as a search trains, all with the same weights (n,)."""
    runs = _with_weights(prepared, [one[None] for one in weights], "given weights", note)
    return _choices(prepared, runs, tuned=False)


def _with_weights(
    prepared: Sequence[Prepared], weights: Sequence[FloatArray], name: str, note: str = ""
) -> _Runs:
    """The searches of all repeats with the weights (K, n) of each: as many models as a search trains, or one
    with each of the weights if the model is deterministic."""
    n_weights, n_models = len(weights[0]), None
    listed = [
        ListedWeighting(w, one.data.training.sample_weight) for w, one in zip(weights, prepared, strict=True)
    ]
    if all(map(_is_deterministic, prepared, listed)):
        n_models, models = n_weights, "one" if n_weights == 1 else "one of each"
        all_alike = f"the model is deterministic, so {models} stands for all."
        note = f"{note.removesuffix('.')}; {all_alike}" if note else all_alike
        few: dict[str, Any] = dict.fromkeys(("n_candidates", "batch_size"), max(1, n_weights - 1))
        prepared = [replace(one, settings=replace(one.settings, **few)) for one in prepared]
    return _run(prepared, list(map(_listed_search, prepared, listed)), name, note, n_models)


def _listed_search(prepared: Prepared, weighting: ListedWeighting) -> Search:
    """A search that begins with each of the listed weights."""
    n_weights = len(weighting.weights)
    study = make_study(prepared, weighting, domain=Ball(1, max(1.0, n_weights - 1.0)))
    study.suggest(study.alpha_zero_repeats, np.arange(1.0, n_weights)[:, None])
    return Search(study, prepared.data, prepared.trainer, weighting, prepared.evaluator)


def _prepare_repeats(
    settings: SearchSettings,
    training: Rows,
    validation: Rows,
    test: Rows,
    seeds: Sequence[int],
    fit_params: Mapping[str, Any] | None = None,
) -> list[Prepared]:
    """Prepare the search with each seed. Where candidates are evaluated on the given validation rows alone,
    the repeats share them and their trainer, so that they can be trained together."""
    prepared = [
        prepare(replace(settings, random_state=seed, calibrate=None), training, validation, test, fit_params)
        for seed in seeds
    ]
    data = prepared[0].data
    if data.n_given_rows < len(data.validation) or data.holdout is not None:
        return [look_at_unweighted(one) for one in prepared]  # every seed draws and splits its own way
    first = look_at_unweighted(prepared[0])
    return [replace(first, settings=one.settings, seed=one.seed) for one in prepared]


def _run(
    prepared: Sequence[Prepared],
    searches: list[Search],
    method: str,
    note: str = "",
    n_models: int | None = None,
) -> _Runs:
    """Run the searches of one method in all repeats side by side."""
    settings = prepared[0].settings
    budget = Budget(settings.n_candidates, settings.batch_size, most_failures=settings.most_failures)
    show = partial(progress, enabled=settings.verbose, name=method)
    outcomes = search_side_by_side(searches, budget, show=show)
    return _Runs(searches, outcomes, n_models or len(outcomes[0].trials), note)


def _choices(prepared: Sequence[Prepared], runs: _Runs, tuned: bool) -> list[Choice]:
    """The best model of each search, with its decisions tuned if `tuned`, evaluated on the test rows."""
    made = []
    for one, search, outcome in zip(prepared, runs.searches, runs.outcomes, strict=True):
        honest, model = conclude_alone(one, search, outcome, tuned=tuned)
        made.append(_choice(one, honest, model, None, runs.n_models, runs.note))
    return made


def _moew(prepared: Sequence[Prepared]) -> list[Choice]:
    """What the whole search selects in each repeat; the searches of all repeats run side by side."""
    listed = [list_searches(one) for one in prepared]
    every = [search for searches in listed for search in searches.values()]
    outcomes = iter(_run(prepared, every, MOEW).outcomes)
    made = []
    for one, searches in zip(prepared, listed, strict=True):
        fitted = conclude(one, searches, {name: next(outcomes) for name in searches})
        result, function = fitted.result, fitted.weight_function
        note = "" if result.stopped is None else "stopped early, with fewer models than the others."
        made.append(_choice(one, result.honest, fitted.winner, function, result.n_models, note))
    return made


def _choice(
    prepared: Prepared, honest: HonestScore, model: FinalModel, weight_function: Any, n_models: int, note: str
) -> Choice:
    """What a model of this score is worth on the test rows."""
    try:
        on_test = prepared.evaluator.predictions_on(model, _test(prepared))
    except MoewError:
        raise
    except (ValueError, TypeError) as error:  # the model's own, of rows that it does not take
        raise InvalidInputError(
            f"the model cannot predict the test rows: {error}", argument="test"
        ) from error
    value = prepared.evaluator.value_as_decided(on_test, _test(prepared))
    return Choice(honest.apparent, honest.value, n_models, value, on_test, weight_function, note)


def _test(prepared: Prepared) -> LabelledRows:
    if prepared.test is None:
        raise InvalidInputError("a comparison needs test rows.", argument="test")
    return prepared.test


def _is_deterministic(prepared: Prepared, fixed: ListedWeighting) -> bool:
    """Whether two seeds give the same predictions, so that training more models is of no use."""
    seeds = [integer_seed(prepared.seed, "twin", k) for k in (0, 1)]
    twins = Training.each(fixed.training_weights(np.zeros((2, 1))), seeds)
    evaluator, data = prepared.evaluator, prepared.data
    found = train_folds(prepared.trainer, prepared.data, twins)
    trained = [models for _, models in found if not isinstance(models, Exception)]
    try:
        made = [evaluator.predictions(models, data) for models in trained]
    except Exception:  # the search records why a model cannot predict
        return False
    return len(made) == 2 and made[0].equals(made[1])


def _bootstrap_margin(
    prepared: Prepared, choices: Mapping[str, list[Choice]], rng: np.random.Generator
) -> float:
    """Half the width of the 95 % interval of mean(moew − unweighted), from resampling the test rows."""
    evaluator, gains = prepared.evaluator, []
    n_draws = _SLOW_BOOTSTRAPS if evaluator.metric.slow else _BOOTSTRAPS
    for numbers, rows in bootstrap_samples(_test(prepared), n_draws, rng):
        try:
            moew, unweighted = (
                np.mean(
                    [evaluator.value_as_decided(one.on_test.take(numbers), rows) for one in choices[name]]
                )
                for name in (MOEW, UNWEIGHTED)
            )
        except Exception:  # undefined on these rows, such as a group without negatives
            continue
        gains.append(moew - unweighted)
    finite = np.isfinite(gains)
    return float(TWO_SIDED * np.std(np.array(gains)[finite])) if finite.sum() > n_draws / 2 else math.nan
