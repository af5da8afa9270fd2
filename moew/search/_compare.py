"""Compare the ways to the metric at the same number of trained models: uniform, random and importance
weights, as the paper does, tuned decisions, class weights, and moew."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from moew._printable import printable
from moew._util.margins import TWO_SIDED, margin
from moew._util.numbers import alike, number, with_margin
from moew._util.seeds import generator, integer_seed
from moew.data import LabelledRows, UserRows, two_dimensional
from moew.data._groups import columns_of_names, copies_apart, count_groups
from moew.data._splits import bootstrap_rows
from moew.exceptions import Argument, InvalidInputError, MoewError
from moew.metrics import Predictions
from moew.search._conclude import conclude, conclude_alone
from moew.search._estimator import ExampleWeightSearch
from moew.search._evaluate import FinalModel
from moew.search._loop import Outcome, Search, search_side_by_side, train_folds
from moew.search._prepare import Prepared, fit_weighting, make_study, prepare
from moew.search._searches import list_searches, parameters_search, simple_search
from moew.search._settings import SearchSettings
from moew.search._tables import data_frame, html_table
from moew.search._ways import AND_TUNED, CLASS_WEIGHTS, PARAMETERS, POWERS, TUNED
from moew.types import FloatArray, Labels, Rows, Weighting
from moew.weighting import CovariateShift, FixedWeighting, RandomWeighting

if TYPE_CHECKING:
    from pandas import DataFrame

UNIFORM, RANDOM, MOEW = "uniform", "random", "moew"
_MOST_REPEATS = 100_000  # more are a mistake, and their seeds alone would take the memory
METHODS = (
    UNIFORM,
    RANDOM,
    "importance",
    TUNED,
    CLASS_WEIGHTS,
    CLASS_WEIGHTS + AND_TUNED,
    POWERS,
    POWERS + AND_TUNED,
    PARAMETERS,
    PARAMETERS + AND_TUNED,
    MOEW,
)
"""All methods; powers of the target are for regression, class weights for classification, hyper-parameters
for a search space, and decisions are tuned where the metric looks at nothing else."""
_BOOTSTRAPS, _SLOW_BOOTSTRAPS = 200, 20


@dataclass(frozen=True)
class Row:
    """One method: its scores (repeats,) on the validation rows, honest ones, and on the test rows."""

    method: str
    n_models: int  # trained in each repeat; the mean where searches stop early
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
    test_rows_margin: float  # of the mean moew − uniform on test, from resampling the test rows

    def __getitem__(self, method: str) -> Row:
        for row in self.rows:
            if row.method == method:
                return row
        raise KeyError(f"{method!r} is not one of {', '.join(METHODS)}")

    @property
    def difference(self) -> FloatArray:
        """moew − uniform on the test rows in each repeat (repeats,)."""
        return np.asarray(self["moew"].test - self["uniform"].test)

    @property
    def gain(self) -> FloatArray:
        """`difference` with the sign that makes it positive where moew is better (repeats,)."""
        return self.difference if self.greater_is_better else -self.difference

    @property
    def record(self) -> dict[str, Any]:
        """The whole comparison as a JSON-able dict, with scores and gains for each repeat."""
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

    def to_frame(self) -> DataFrame:
        """The comparison as a pandas data frame, a row for each method.

        Columns: `method`; `n_models`, trained in each repeat; the means over the repeats of `best`, `honest`
        and `test`; `margin`, half the width of the 95 % interval of `test`; and `note`. The scores of each
        repeat are in `rows`.
        """
        columns = {
            "method": [row.method for row in self.rows],
            "n_models": [row.n_models for row in self.rows],
            **{
                name: [float(getattr(row, name).mean()) for row in self.rows]
                for name in ("best", "honest", "test")
            },
            "margin": [row.margin for row in self.rows],
            "note": [row.note for row in self.rows],
        }
        return data_frame(columns, "a comparison")

    @property
    def texts(self) -> list[tuple[str, str, str, str]]:
        """For each method its mean best, honest and test score and the latter's margin, as a person reads
        them."""
        scores = [
            float(value)
            for row in self.rows
            for value in (row.best.mean(), row.honest.mean(), row.test.mean(), row.margin)
        ]
        shown = alike(scores, errors=[row.margin for row in self.rows])
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
    def _gain_words(self) -> str:
        return f"moew − uniform on test: {self.difference_in_words}."

    def __repr__(self) -> str:
        return printable(f"<Comparison: {self._caption}\n {self._gain_words}") + ">"

    def _repr_html_(self) -> str:
        rows = [
            (row.method, str(row.n_models), *texts) for row, texts in zip(self.rows, self.texts, strict=True)
        ]
        below = [self._gain_words, *(f"{row.method}: {row.note}" for row in self.rows if row.note)]
        return html_table(
            self._caption, ("method", "models", "best", "honest", "test", "± 95 %"), rows, below
        )

    def __str__(self) -> str:
        lines = [
            self._caption,
            f"{'':28}{'models':>8}{'best':>11}{'honest':>11}{'test':>11}{'± 95 %':>11}",
        ]
        lines += [
            f"{row.method:28}{row.n_models:>8}{''.join(f'{text:>11}' for text in texts)}"
            for row, texts in zip(self.rows, self.texts, strict=True)
        ]
        lines.append(self._gain_words)
        lines.append("best and honest are validation scores: as chosen, and corrected for the choice.")
        return "\n".join([*lines, *(f"{row.method}: {row.note}" for row in self.rows if row.note)])


def compare(
    search: ExampleWeightSearch,
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
    groups: Any = None,
    groups_val: Any = None,
    groups_test: Any = None,
    fit_params: Mapping[str, Any] | None = None,
    repeats: int = 10,
    random_state: int = 0,
) -> Comparison:
    """Compare uniform, random, importance and metric-optimized weights at equal budget.

    Every method trains as many models as `search`, an `ExampleWeightSearch` that is not fitted here,
    picks the one that is best on the validation rows, and is then evaluated once on the test rows. The
    data are the same in all repeats; seeds differ. The searches of all repeats run side by side, so that a
    model that trains many weightings at once trains those of all repeats together.

    `groups`, `groups_val` and `groups_test` name the query, patient or customer of each row, as in
    `ExampleWeightSearch.fit`; with `groups_test` the margin over the choice of test rows is one over groups.
    `fit_params` are what the model's `fit` takes besides weights, as there.

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
    >>> [(row.method, row.n_models) for row in table.rows]  # doctest: +NORMALIZE_WHITESPACE
    [('uniform', 1), ('random', 5), ('importance', 1), ('tuned decisions', 1), ('class weights', 5),
     ('class weights, tuned', 5), ('moew', 5)]
    >>> table.gain.shape
    (2,)
    """
    if not isinstance(repeats, Integral) or isinstance(repeats, bool) or repeats < 2:
        raise InvalidInputError(
            Argument("repeats"),
            f" must be a whole number, and an error margin needs at least 2 repeats, got {repeats!r}.",
            argument="repeats",
        )
    if not isinstance(random_state, Integral) or random_state < 0:
        raise InvalidInputError(
            Argument("random_state"),
            f" must be a whole number of 0 or more, got {random_state!r}.",
            argument="random_state",
        )
    if not isinstance(search, ExampleWeightSearch):
        raise InvalidInputError(
            f"compare needs an ExampleWeightSearch, got {type(search).__name__}.", argument="search"
        )
    if search.storage is not None:
        raise InvalidInputError(
            "compare runs many searches of its own: pass a search without a ",
            Argument("storage"),
            ".",
            argument="storage",
        )
    X, X_val, X_test = (None if rows is None else two_dimensional(rows) for rows in (X, X_val, X_test))
    training = UserRows(X, y, sample_weight, metadata, groups)
    validation = UserRows(X_val, y_val, sample_weight_val, metadata_val, groups_val)
    test = UserRows(X_test, y_test, sample_weight_test, metadata_test, groups_test)
    return compare_settings(search.settings, training, validation, test, repeats, random_state, fit_params)


def compare_settings(
    settings: SearchSettings,
    training: UserRows,
    validation: UserRows,
    test: UserRows,
    repeats: int,
    random_state: int = 0,
    fit_params: Mapping[str, Any] | None = None,
) -> Comparison:
    """As `compare`, from the settings of a search and records of rows."""
    if repeats > _MOST_REPEATS:
        raise InvalidInputError(
            Argument("repeats"),
            f" must be at most {_MOST_REPEATS:,}, since each trains many models, got {repeats!r}.",
            argument="repeats",
        )
    if settings.timeout is not None:
        raise InvalidInputError(
            "a comparison trains equally many models with every method, however long it takes: leave out ",
            Argument("timeout"),
            ".",
            argument="timeout",
        )
    seeds = [integer_seed(random_state, "repeat", repeat) for repeat in range(repeats)]
    prepared = _prepare_repeats(settings, training, validation, test, seeds, fit_params)
    choices = choices_of_all(METHODS, prepared)
    evaluator, rows = prepared[0].evaluator, _test(prepared[0])
    return Comparison(
        evaluator.metric.name,
        evaluator.metric.greater_is_better,
        tuple(_row(method, made) for method, made in choices.items()),
        repeats,
        len(rows),
        _bootstrap_margin(prepared[0], choices, generator(random_state, "bootstrap")),
    )


@dataclass(frozen=True)
class Choice:
    """What a method chose in one repeat: its scores, how it came about, and what its model predicts on the
    test rows."""

    best: float
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


def choices_of_all(methods: Sequence[str], prepared: Sequence[Prepared]) -> dict[str, list[Choice]]:
    """What each of the methods chooses in each repeat; those that do not exist here are left out."""
    trained: dict[str, _Runs] = {}
    choices = {}
    for method in methods:
        if method == MOEW:
            choices[method] = _moew(prepared)
            continue
        base = {TUNED: UNIFORM}.get(method, method.removesuffix(AND_TUNED))
        if base in _not_here(prepared[0]):
            continue
        tuned = base != method
        if tuned and not _can_tune(prepared[0], trained, base):
            continue
        if base not in trained:
            trained[base] = _trained(base, prepared)
        choices[method] = _choices(prepared, trained[base], tuned)
    return choices


def choices_with_weights(
    prepared: Sequence[Prepared], weights: Sequence[FloatArray], note: str = ""
) -> list[Choice]:
    """In each repeat the best of as many models as a search trains, all with the same weights (n,)."""
    return _choices(prepared, _with_weights(prepared, weights, "given weights", note), tuned=False)


def _not_here(prepared: Prepared) -> tuple[str, ...]:
    other = POWERS if prepared.data.task == "classification" else CLASS_WEIGHTS
    return (other, PARAMETERS) if prepared.space is None else (other,)


def _can_tune(prepared: Prepared, trained: Mapping[str, _Runs], base: str) -> bool:
    evaluator = prepared.evaluator
    if evaluator.always_tuned or evaluator.rule is not None or base not in trained:
        return False
    predictions = next(iter(trained[base].outcomes[0].predictions.values()))
    return evaluator.can_tune(predictions)


def _trained(method: str, prepared: Sequence[Prepared]) -> _Runs:
    """Run the searches of a method in all repeats."""
    if method in (CLASS_WEIGHTS, POWERS):
        return _search(prepared, [simple_search(one) for one in prepared], method)
    if method == PARAMETERS:
        return _search(prepared, [parameters_search(one) for one in prepared], method)
    if method == RANDOM:
        own = [one.data.training for one in prepared]
        weightings = [
            RandomWeighting(len(rows), rows.sample_weight, one.seed)
            for rows, one in zip(own, prepared, strict=True)
        ]
        return _search(prepared, _plain_searches(prepared, weightings), method)
    note, data = "", prepared[0].data
    weights: list[FloatArray] = [np.ones(len(one.data.training)) for one in prepared]
    if method == "importance" and not data.given_validation:
        note = "no validation rows were given, so there is no shift to weight for: uniform."
    elif method == "importance" and hasattr(data.training.X, "tocsr"):
        note = "a shift of sparse rows is not estimated: uniform."
    elif method == "importance":
        weights = [_importance(one) for one in prepared]
    return _with_weights(prepared, weights, method, note)


def _with_weights(prepared: Sequence[Prepared], weights: Sequence[FloatArray], name: str, note: str) -> _Runs:
    weightings = [
        FixedWeighting(w, one.data.training.sample_weight) for w, one in zip(weights, prepared, strict=True)
    ]
    if not all(_is_deterministic(one, fixed) for one, fixed in zip(prepared, weightings, strict=True)):
        return _search(prepared, _plain_searches(prepared, weightings), name, note)
    note = " ".join([note, "the model is deterministic, so one stands for all."]).strip()
    one_model: dict[str, Any] = {"n_batches": 1, "batch_size": 1, "n_candidates": None}
    short = [replace(one, settings=replace(one.settings, **one_model)) for one in prepared]
    return replace(_search(short, _plain_searches(short, weightings), name, note), n_models=1)


def _prepare_repeats(
    settings: SearchSettings,
    training: UserRows,
    validation: UserRows,
    test: UserRows,
    seeds: Sequence[int],
    fit_params: Mapping[str, Any] | None = None,
) -> list[Prepared]:
    """Prepare the search with each seed; repeats with the same rows share them and their trainer, so that
    they can be trained together."""
    prepared = [
        prepare(replace(settings, random_state=seed, calibrate=None), training, validation, test, fit_params)
        for seed in seeds
    ]
    first = prepared[0]
    if not first.data.given_validation or first.data.holdout is not None:
        return prepared  # every seed splits the rows in its own way
    return [replace(one, data=first.data, trainer=first.trainer, test=first.test) for one in prepared]


def _plain_searches(prepared: Sequence[Prepared], weightings: Sequence[Weighting]) -> list[Search]:
    return [
        Search(make_study(one, weighting), one.data, one.trainer, weighting, one.evaluator)
        for one, weighting in zip(prepared, weightings, strict=True)
    ]


def _search(prepared: Sequence[Prepared], searches: list[Search], method: str, note: str = "") -> _Runs:
    """Run the searches of one method in all repeats side by side."""
    outcomes = search_side_by_side(searches, **_how(prepared, method))
    return _Runs(searches, outcomes, len(outcomes[0].trials), note)


def _how(prepared: Sequence[Prepared], method: str) -> dict[str, Any]:
    """The arguments of `search_side_by_side` for all repeats of a method."""
    settings = prepared[0].settings
    return {
        "n_batches": settings.n_batches,
        "batch_size": settings.batch_size,
        "n_candidates": settings.n_candidates,
        "show_progress": settings.show_progress,
        "progress_name": method,
        "most_failures": settings.most_failures,
    }


def _choices(prepared: Sequence[Prepared], runs: _Runs, tuned: bool) -> list[Choice]:
    """The best model of each search, with its decisions tuned if `tuned`, evaluated on the test rows."""
    made = []
    for one, search, outcome in zip(prepared, runs.searches, runs.outcomes, strict=True):
        alone = conclude_alone(one, search, outcome, tuned=tuned)
        made.append(_choice(one, alone.best, alone.honest, alone.model, None, runs.n_models, runs.note))
    return made


def _moew(prepared: Sequence[Prepared]) -> list[Choice]:
    """What the whole search hands out in each repeat; the searches of all repeats run side by side."""
    listed = [list_searches(one, fit_weighting(one)) for one in prepared]
    every = [search for searches in listed for search in searches.values()]
    outcomes = iter(search_side_by_side(every, **_how(prepared, MOEW)))
    made = []
    for one, searches in zip(prepared, listed, strict=True):
        fitted = conclude(one, searches, {name: next(outcomes) for name in searches})
        result = fitted.result
        made.append(
            _choice(
                one,
                result.best_score,
                result.honest_score,
                fitted.winner,
                fitted.weight_function,
                result.n_models,
                "" if result.stopped is None else "stopped early, with fewer models than the others.",
            )
        )
    return made


def _choice(
    prepared: Prepared,
    best: float,
    honest: float,
    model: FinalModel,
    weight_function: Any,
    n_models: int,
    note: str,
) -> Choice:
    try:
        on_test = prepared.evaluator.predictions_on(model, _test(prepared))
    except MoewError:
        raise
    except (ValueError, TypeError) as error:  # the model's own, of rows that it does not take
        raise InvalidInputError(
            f"the model cannot predict the test rows: {error}", argument="X_test"
        ) from error
    value = prepared.evaluator.value_as_decided(on_test, _test(prepared))
    return Choice(best, honest, n_models, value, on_test, weight_function, note)


def _test(prepared: Prepared) -> LabelledRows:
    if prepared.test is None:
        raise InvalidInputError("a comparison needs test rows.", argument="X_test")
    return prepared.test


def _importance(prepared: Prepared) -> FloatArray:
    """The estimated density ratio p_V(x) / p_T(x) of the training rows, with mean one."""
    shift = CovariateShift(random_state=integer_seed(prepared.seed, "baseline"))
    training, validation = prepared.data.training, prepared.data.given
    weights = shift.fit_weights(training.X, training.y, validation.X, validation.y, task=prepared.data.task)
    return np.asarray(weights / weights.mean())


def _is_deterministic(prepared: Prepared, fixed: FixedWeighting) -> bool:
    """Whether two seeds give the same predictions, so that training more models is of no use."""
    seeds = [integer_seed(prepared.seed, "twin", k) for k in (0, 1)]
    twins = train_folds(prepared.trainer, prepared.data, fixed.training_weights(np.zeros((2, 1))), seeds)
    evaluator, data = prepared.evaluator, prepared.data
    trained = [models for _, models in twins if not isinstance(models, Exception)]
    try:
        made = [evaluator.predictions(models, data) for models in trained]
    except Exception:  # the search records why a model cannot predict
        return False
    return len(made) == 2 and made[0].equals(made[1])


def _row(method: str, choices: Sequence[Choice]) -> Row:
    notes = [choice.note for choice in choices if choice.note]
    return Row(
        method,
        round(np.mean([choice.n_models for choice in choices])),
        np.array([choice.best for choice in choices]),
        np.array([choice.honest for choice in choices]),
        np.array([choice.test for choice in choices]),
        notes[0] if notes else "",
    )


def _bootstrap_margin(
    prepared: Prepared, choices: Mapping[str, list[Choice]], rng: np.random.Generator
) -> float:
    """Half the width of the 95 % interval of mean(moew − uniform), from resampling the test rows."""
    evaluator, test = prepared.evaluator, _test(prepared)
    if test.groups is not None and count_groups(test.groups) < 2:
        return math.nan
    names = [] if test.groups is None else columns_of_names(test.columns, test.groups)
    gains = []
    n_draws = _SLOW_BOOTSTRAPS if evaluator.metric.slow else _BOOTSTRAPS
    for _ in range(n_draws):
        numbers = bootstrap_rows(len(test), rng, test.groups)
        rows = test.take(numbers)
        if names:
            rows = replace(rows, columns={**rows.columns, **copies_apart(test.columns, names, numbers)})
        try:
            moew, uniform = (
                np.mean(
                    [
                        evaluator.value_as_decided(choice.on_test.take(numbers), rows)
                        for choice in choices[method]
                    ]
                )
                for method in ("moew", "uniform")
            )
        except Exception:  # undefined on these rows, such as a group without negatives
            continue
        gains.append(moew - uniform)
    finite = np.isfinite(gains)
    return float(TWO_SIDED * np.std(np.array(gains)[finite])) if finite.sum() > n_draws / 2 else math.nan
