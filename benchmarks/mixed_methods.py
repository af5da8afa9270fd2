"""What people do with training rows of mixed origin, and moew: the methods of benchmarks/mixed.py.

Every method has training rows T, with the origins of each, and validation rows V of the kind that matters.
The decisions of all but "unweighted" are tuned on V where the metric is of decisions, and of its candidates a
method takes the one with the best metric on V with such decisions. Where it also learns from V, each row of V
is evaluated by a model that did not learn from it (five folds), and the final model learns from T and all of
V.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from importlib.util import find_spec
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from mixed_libraries import LIBRARIES, run_library
from rivals_judge import Columns, Rule, Threshold, plain
from rivals_methods import (
    LEAST_CANDIDATES,
    Bench,
    Candidate,
    Outcome,
    Outcomes,
    Step,
    Watch,
    Write,
    clipped,
    hyper_parameters,
    odds,
    ratio_of_labels,
    run_moew,
    run_steps,
    search,
    searched_class_weights,
    unweighted,
)
from scipy.special import log_expit
from scipy.stats import norm
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold

if TYPE_CHECKING:
    from mixed_problems import MixedProblem

N_FOLDS = 5  # of the validation rows where they are learnt from
TIMES = ("year", "month")  # origins that are numbers, by which rows grow old
AMOUNT = "amount"
N_BINS = 6  # of a time, where it stands for origins
MOST_SUBSETS = 6  # origins, with the validation rows, of which all subsets are tried
LOWEST, HIGHEST = -5.0, 3.0  # logarithms of an origin's weight
MOST_PRODUCTS = 300  # features of the ratio by both

VARIANTS: dict[str, dict[str, Any]] = {"moew": {}}
ASKED: dict[str, dict[str, Any]] = {"moew, weights alone": {"strategies": "example weights"}}
BASELINE = "unweighted, tuned"
SIMPLE = (
    "unweighted",
    BASELINE,
    "validation rows alone",
    "all rows together",
    "best origins",
    "weight for each origin",
    "recency",
    "class weights",
    "importance weights",
    "ratio of p(x, y)",
    "hyper-parameters",
    "amount as weight",
    "expected value",
)
REFERENCE = ("weight for each origin and class",)  # no usual strategy; it shows what origins and labels hold
METHODS = (*VARIANTS, *SIMPLE, *REFERENCE, *LIBRARIES)

Weigh = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Recipe:
    """What a model learns from: `weigh` gives, for numbers (k,) of rows of V, weights (n + k,) of the n rows
    of T and these; rows of weight 0 are left out."""

    weigh: Weigh
    learns_from_v: bool

    @classmethod
    def of(cls, weights: np.ndarray, of_V: float) -> Recipe:
        """Weights (n,) of T, and the one of all rows of V."""
        return cls(lambda rows: np.concatenate([weights, np.full(len(rows), of_V)]), of_V > 0)


class OneClassError(ValueError):
    """What is left to learn from has one class alone."""


class MixedBench(Bench):
    """A problem and one of its splits, with what the methods need."""

    def __init__(self, problem: MixedProblem, split: int) -> None:
        super().__init__(problem, split)  # type: ignore[arg-type]  # the fields of both kinds are the same
        folds = (KFold if self.classes is None else StratifiedKFold)(
            N_FOLDS, shuffle=True, random_state=split
        )
        self.folds_of_V = list(folds.split(self.V.X, self.V.y))
        self.all_of_V = np.arange(len(self.V))
        self.origins = tuple(problem.origins)

    @cached_property
    def codes(self) -> np.ndarray:
        """The origin (n,) of each row of T as a number; zeros where nothing is known of it."""
        every = [np.zeros(len(self.T), dtype=int)]
        for name in self.origins:
            column = self.T.columns[name]
            if name in TIMES:
                column = np.searchsorted(np.quantile(column, np.arange(1, N_BINS) / N_BINS), column)
            if name != AMOUNT:
                every.append(np.unique(column, return_inverse=True)[1])
        return np.unique(np.column_stack(every), axis=0, return_inverse=True)[1].ravel()

    @property
    def codes_with_class(self) -> np.ndarray:
        """The same, of each origin and class."""
        assert self.classes is not None
        cells = self.codes * len(self.classes) + np.searchsorted(self.classes, self.T.y)
        return np.unique(cells, return_inverse=True)[1]

    def score(self, raw: np.ndarray, rule: Rule = plain) -> float:
        """The metric on V with tuned decisions, higher is better."""
        return super().score(raw, self.tuned(raw) if rule is plain else rule)

    def learnt(self, watch: Watch, recipe: Recipe, rows: np.ndarray) -> Any:
        """A model of T and of these rows of V."""
        weights = recipe.weigh(rows)
        kept = weights > 0
        X = np.vstack([self.T.X, self.V.X[rows]])[kept]
        y = np.concatenate([self.T.y, self.V.y[rows]])[kept]
        if self.classes is not None and len(np.unique(y)) < 2:
            raise OneClassError("there is one class alone to learn from")
        with watch.running():
            return clone(self.problem.estimator()).fit(
                X, y, sample_weight=weights[kept] / weights[kept].mean()
            )

    def on_validation(self, watch: Watch, recipe: Recipe) -> np.ndarray:
        """Raw outputs on V of models that did not learn from the row."""
        judge, V = self.judge, self.V
        if not recipe.learns_from_v:
            return judge.outputs(self.learnt(watch, recipe, self.all_of_V[:0]), V.X)
        out = None
        for rows, rest in self.folds_of_V:
            part = judge.outputs(self.learnt(watch, recipe, rows), V.X[rest])
            out = np.empty((len(V), *part.shape[1:])) if out is None else out
            out[rest] = part
        assert out is not None
        return out

    def on_test_rows(self, watch: Watch, recipe: Recipe) -> np.ndarray:
        rows = self.all_of_V if recipe.learns_from_v else self.all_of_V[:0]
        return self.judge.outputs(self.learnt(watch, recipe, rows), self.E.X)

    def candidate(self, watch: Watch, place: Any, recipe: Recipe) -> Candidate:
        try:
            raw = self.on_validation(watch, recipe)
        except OneClassError:
            return Candidate(place, -np.inf, np.empty(0))
        return Candidate(place, self.score(raw), raw)

    def best_of(
        self, watch: Watch, tried: Sequence[Candidate], recipe_of: Callable[[Any], Recipe]
    ) -> Outcome:
        """The best on V, with its decision tuned there."""
        best = max(tried, key=lambda candidate: candidate.score)
        rule = self.tuned(best.raw)
        on_E, place = self.on_test_rows(watch, recipe_of(best.place)), best.place
        shown = place.tolist() if isinstance(place, np.ndarray) else place
        return self.outcome(watch, on_E, rule, place=shown, candidates=len(tried), tuned=str(rule))

    def best_recipe(self, recipes: dict[str, Recipe], watch: Watch | None = None) -> Outcome:
        watch = Watch() if watch is None else watch
        tried = [self.candidate(watch, name, recipe) for name, recipe in recipes.items()]
        return self.best_of(watch, tried, lambda name: recipes[name])


# With and without rows --------------------------------------------------------------------------------------


def which_rows(bench: MixedBench) -> Outcomes:
    n = len(bench.T)
    yield "validation rows alone", bench.best_recipe({"V": Recipe.of(np.zeros(n), 1.0)})
    yield "all rows together", bench.best_recipe({"T and V": Recipe.of(np.ones(n), 1.0)})


def best_origins(bench: MixedBench) -> Outcomes:
    """The best subset of origins, of which V is one."""
    watch, n = Watch(), bench.codes.max() + 2

    def recipe_of(chosen: np.ndarray) -> Recipe:
        return Recipe.of(chosen[bench.codes].astype(float), float(chosen[-1]))

    def tries(chosen: np.ndarray) -> Candidate:
        return bench.candidate(watch, chosen, recipe_of(chosen))

    if n <= MOST_SUBSETS:
        tried = [tries(np.array(chosen)) for chosen in product((True, False), repeat=n) if any(chosen)]
    else:
        tried = _backwards(tries, n)
    yield "best origins", bench.best_of(watch, tried, recipe_of)


def _backwards(tries: Callable[[np.ndarray], Candidate], n: int) -> list[Candidate]:
    """Candidates of origins left out while the score does not fall, first those without which alone it is
    highest."""
    best = tries(np.ones(n, dtype=bool))
    alone = [tries(np.arange(n) != k) for k in range(n)]
    tried = [best, *alone]
    for k in np.argsort([-candidate.score for candidate in alone], kind="stable"):
        if best.place.sum() == 1:
            break
        found = tries(best.place & (np.arange(n) != k))
        tried.append(found)
        best = found if found.score >= best.score else best
    return tried


# Searched weights -------------------------------------------------------------------------------------------


def weight_for_each(bench: MixedBench, name: str, codes: np.ndarray, budget: float) -> Outcomes:
    """Weights of the codes (n,) of T, and of V, by Optuna's TPE; the first candidate has all alike."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    watch, n = Watch(), int(codes.max()) + 2
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=bench.split))
    study.enqueue_trial({str(k): 0.0 for k in range(n)})

    def recipe_of(logs: np.ndarray) -> Recipe:
        weights = np.exp(logs)
        return Recipe.of(weights[codes], float(weights[-1]))

    tried: list[Candidate] = []
    while len(tried) < LEAST_CANDIDATES or watch.seconds < budget:
        trial = study.ask()
        logs = np.array([trial.suggest_float(str(k), LOWEST, HIGHEST) for k in range(n)])
        tried.append(bench.candidate(watch, logs, recipe_of(logs)))
        study.tell(trial, tried[-1].score if np.isfinite(tried[-1].score) else -1e9)
    yield name, bench.best_of(watch, tried, recipe_of)


def recency(bench: MixedBench, budget: float) -> Outcomes:
    """Weights that halve with every so many years; V is as new as the newest row of T."""
    watch = Watch()
    time = np.asarray(bench.T.columns[next(name for name in bench.origins if name in TIMES)], dtype=float)
    age = time.max() - time

    def recipe_of(log_half_life: float) -> Recipe:
        return Recipe.of(0.5 ** (age / np.exp(log_half_life)), 1.0)

    starts = np.log(age.max()) + np.linspace(np.log(3.0), -np.log(30.0), 12)
    tried = search(lambda place: bench.candidate(watch, place, recipe_of(place)), list(starts), watch, budget)
    yield "recency", bench.best_of(watch, tried, recipe_of)


def tuned_alone(outcomes: Outcomes, ranks: bool) -> Outcomes:
    """Of outcomes with and without tuned decisions the former, as methods are called here; all where the
    metric is of no decisions."""
    for name, outcome in outcomes:
        plain_name, tuned, _ = name.partition(" and threshold")
        if tuned or ranks or name == "unweighted":
            yield plain_name, outcome
        if name == "threshold" or (ranks and name == "unweighted"):
            yield BASELINE, outcome


# Ratios -----------------------------------------------------------------------------------------------------


def importance_weights(bench: MixedBench) -> Outcomes:
    """The ratio of rows of V to rows of T by x, by y and by both, as weights of T; the best on V."""
    T, V = bench.T, bench.V
    ratios = {
        "by x": odds(T.X, V.X),
        "by y": ratio_of_labels(T.y, V.y, bench.classes),
        "by both": odds(*_with_labels(bench)),
    }
    recipes = {name: Recipe.of(clipped(ratio), 0.0) for name, ratio in ratios.items()}
    yield "importance weights", bench.best_recipe(recipes)


def _with_labels(bench: MixedBench) -> list[np.ndarray]:
    """Features of T and of V with the label, and with their products where there are not too many."""
    found = []
    for part in (bench.T, bench.V):
        if bench.classes is None:
            z = (part.y - bench.T.y.mean()) / (bench.T.y.std() or 1.0)
            labels = np.column_stack([z, z**2])
        else:
            labels = (part.y[:, None] == bench.classes[1:]).astype(float)
        products = [part.X * label[:, None] for label in labels.T]
        many = part.X.shape[1] * labels.shape[1] > MOST_PRODUCTS
        found.append(np.hstack([part.X, labels, *([] if many else products)]))
    return found


def ratio_of_both(bench: MixedBench) -> Outcomes:
    """Importance reweighting for biquality learning (Nodet and others, 2021): rows of T weigh
    p_V(y | x) / p_T(y | x), those of V one; or T also by the ratio of x. p_T is cross-fitted."""
    T, V, watch = bench.T, bench.V, Watch()
    every = np.arange(len(T))
    by_x = np.clip(odds(T.X, V.X), 0.1, 10.0)
    of_T = _log_likelihood(
        bench, watch, [(Recipe.of(_only(rows, len(T)), 0.0), rest) for rows, rest in bench.folds]
    )

    def weigh(x: np.ndarray, rows: np.ndarray) -> np.ndarray:
        of_V = _log_likelihood(bench, watch, [(Recipe.of(np.zeros(len(T)), 1.0), every)], rows)
        return np.concatenate([x * np.exp(np.clip(of_V - of_T, -5.0, np.log(10.0))), np.ones(len(rows))])

    recipes = {
        "p(y | x)": Recipe(partial(weigh, np.ones(len(T))), True),
        "p(x, y)": Recipe(partial(weigh, by_x), True),
    }
    yield "ratio of p(x, y)", bench.best_recipe(recipes, watch)


def _only(rows: np.ndarray, n: int) -> np.ndarray:
    weights = np.zeros(n)
    weights[rows] = 1.0
    return weights


def _log_likelihood(
    bench: MixedBench,
    watch: Watch,
    models: Sequence[tuple[Recipe, np.ndarray]],
    rows: np.ndarray | None = None,
) -> np.ndarray:
    """log p(y | x) (n,) of the rows of T, by those of `models` that they are for. In regression a normal
    distribution, whose spread is that on V."""
    T, V, found = bench.T, bench.V, np.empty(len(bench.T))
    rows = bench.all_of_V[:0] if rows is None else rows
    for recipe, wanted in models:
        model = bench.learnt(watch, recipe, rows)
        if bench.classes is None:
            unseen = np.setdiff1d(bench.all_of_V, rows) if 0 < len(rows) < len(V) else bench.all_of_V
            spread = np.std(V.y[unseen] - model.predict(V.X[unseen])) or 1.0
            found[wanted] = norm.logpdf(T.y[wanted], model.predict(T.X[wanted]), spread)
        else:
            probabilities = np.full((len(wanted), len(bench.classes)), 1e-6)
            at = np.searchsorted(bench.classes, model.classes_)
            probabilities[:, at] = np.maximum(model.predict_proba(T.X[wanted]), 1e-6)
            label = np.searchsorted(bench.classes, T.y[wanted])
            found[wanted] = np.log(probabilities[np.arange(len(wanted)), label])
    return found


# Amounts ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ExpectedValue:
    """Act where the probability, calibrated by a sigmoid of the raw output, times the amount is above a
    factor."""

    slope: float
    shift: float
    log_factor: float

    def __call__(self, raw: np.ndarray, columns: Columns) -> np.ndarray:
        values = log_expit(self.slope * raw + self.shift) + np.log(columns[AMOUNT])
        return np.asarray(values - self.log_factor)


def amounts(bench: MixedBench) -> Outcomes:
    """The amount as weight; and the unweighted model's decision by expected value, with the best factor."""
    T, V, watch = bench.T, bench.V, Watch()
    amount = T.columns[AMOUNT] / T.columns[AMOUNT].mean()
    yield "amount as weight", bench.best_recipe({"amount": Recipe.of(amount, 0.0)})
    recipe = Recipe.of(np.ones(len(T)), 0.0)
    raw = bench.on_validation(watch, recipe)
    line = LogisticRegression(C=np.inf).fit(raw[:, None], V.y)
    values = ExpectedValue(float(line.coef_[0, 0]), float(line.intercept_[0]), 0.0)
    factor = bench.tuned(values(raw, V.columns))
    assert isinstance(factor, Threshold)
    rule = ExpectedValue(values.slope, values.shift, factor.value)
    yield "expected value", bench.outcome(watch, bench.on_test_rows(watch, recipe), rule, tuned=str(rule))


# All ------------------------------------------------------------------------------------------------------


def methods_for(problem: MixedProblem) -> tuple[str, ...]:
    """The methods that the problem has the columns for, and that can be run here. A library that does not
    fit the problem has a line that says why."""
    left_out: set[str] = set()
    if not set(TIMES) & set(problem.origins):
        left_out.add("recency")
    if AMOUNT not in problem.origins:
        left_out |= {"amount as weight", "expected value"}
    if problem.task == "regression":
        left_out |= set(REFERENCE)
    if find_spec("optuna") is None:
        left_out |= {"hyper-parameters", "weight for each origin", *REFERENCE}
    return tuple(method for method in (*METHODS, *ASKED) if method not in left_out)


def run_methods(
    problem: MixedProblem, split: int, wanted: set[str], budget: float | None, write: Write
) -> None:
    """Run the wanted methods on one split of a problem; see `run_steps`."""
    bench = MixedBench(problem, split)
    ranks = bench.judge.ranks
    steps: list[Step] = [
        *(((name,), partial(_moew, bench, name)) for name in (*VARIANTS, *ASKED)),
        (("unweighted", BASELINE), lambda _: tuned_alone(unweighted(bench), ranks)),
        (("validation rows alone", "all rows together"), lambda _: which_rows(bench)),
        (("best origins",), lambda _: best_origins(bench)),
        (
            ("weight for each origin",),
            lambda budget: weight_for_each(bench, "weight for each origin", bench.codes, budget),
        ),
        (REFERENCE, lambda budget: weight_for_each(bench, *REFERENCE, bench.codes_with_class, budget)),
        (("recency",), lambda budget: recency(bench, budget)),
        (
            ("class weights",),
            lambda budget: tuned_alone(searched_class_weights(bench, budget), ranks),
        ),
        (("importance weights",), lambda _: importance_weights(bench)),
        (("ratio of p(x, y)",), lambda _: ratio_of_both(bench)),
        (
            ("hyper-parameters",),
            lambda budget: tuned_alone(hyper_parameters(bench, budget), ranks),
        ),
        (("amount as weight", "expected value"), lambda _: amounts(bench)),
        *(((name,), partial(_library, bench, name)) for name in LIBRARIES),
    ]
    run_steps(steps, wanted & set(methods_for(problem)), budget, write)


def _moew(bench: MixedBench, name: str, _budget: float) -> Outcomes:
    yield name, run_moew(bench, **{**VARIANTS, **ASKED}[name])


def _library(bench: MixedBench, name: str, _budget: float) -> Outcomes:
    yield name, run_library(bench, name)
