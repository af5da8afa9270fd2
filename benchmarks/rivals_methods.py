"""What people do today to score well on a metric, and moew: the methods of benchmarks/rivals.py.

Every method has the same rows: training rows T and validation rows V. The rivals judge a candidate by the
metric on out-of-fold predictions on T (two folds) pooled with the mean of the folds' models on V; on problems
of kind "shift" on V alone, with models trained on all of T. What is chosen is trained again on all of T.
Seconds of fitting are CPU seconds of the process in all fits of the model, which include a network's
compilation.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial, wraps
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
from rivals_judge import Judge, Rule, lower_end, plain
from scipy.special import expit
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold

from moew import MetricSearch, Rows
from moew.decision import Tuned

if TYPE_CHECKING:
    from one_kind_problems import Problem

LEAST_CANDIDATES = 20  # of a searched rival, however little moew has used
REACH, N_GRID = 4.0, 12  # of the logarithm of class weights, and of powers of the target
FINEST = 0.02  # two logarithms of class weights closer than this are one
POOL_SEED, N_POOL, N_POOL_CLASS_WEIGHTS = 20260101, 60, 13

VARIANTS: dict[str, dict[str, Any]] = {
    "moew": {},
    "moew, weights alone": {"strategies": "example weights"},
    "moew 0.1": {
        "embedding": "autoencoder",
        "base_weights": "label_shift",
        "n_candidates": 100,
        "batch_size": 20,
        "final": "best",
        "strategies": "example weights",
        "evaluate_on": "validation",
    },
}
FEWER: dict[str, dict[str, Any]] = {  # what a default search reaches with fewer models
    "moew, 20 models": {"n_candidates": 20},
    "moew, 40 models": {"n_candidates": 40},
}
SHARED = ("moew", "moew, weights alone")  # the same trainings: the second continues the first's study
SIMPLE = (
    "unweighted",
    "best constant",
    "threshold",
    "class weights",
    "class weights, averaged",
    "class weights and threshold",
    "importance weights",
    "hyper-parameters",
    "hyper-parameters and threshold",
)
METHODS = (*VARIANTS, *SIMPLE, "achievable", *FEWER)
ASKED: dict[str, dict[str, Any]] = {  # run by name only; it shows what the adaptive search adds to optimism
    "moew, weights alone, random alphas": {"strategies": "example weights", "sampler": "random"},
}


@dataclass
class Watch:
    """Counts fits and their seconds."""

    fits: int = 0
    seconds: float = 0.0

    @contextmanager
    def running(self, fits: int = 1) -> Iterator[None]:
        start = time.process_time()
        try:
            yield
        finally:
            self.seconds += time.process_time() - start
            self.fits += fits


@contextmanager
def watched(kind: type) -> Iterator[Watch]:
    """Count and time the fits of all models of this class, whoever calls them."""
    watch = Watch()
    own = {name: kind.__dict__.get(name) for name in ("fit", "fit_many")}

    def timed_fit(fit: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(fit)
        def run(self: Any, *args: Any, **kwargs: Any) -> Any:
            with watch.running():
                return fit(self, *args, **kwargs)

        return run

    def timed_fit_many(fit_many: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(fit_many)
        def run(self: Any, *args: Any, **kwargs: Any) -> Iterator[Any]:
            with watch.running(0):
                models = iter(fit_many(self, *args, **kwargs))
            while True:  # the networks are trained while they are asked for
                try:
                    with watch.running(0):
                        model = next(models)
                except StopIteration:
                    return
                watch.fits += 1
                yield model

        return run

    kind.fit = timed_fit(kind.fit)  # type: ignore[attr-defined]
    if hasattr(kind, "fit_many"):
        kind.fit_many = timed_fit_many(kind.fit_many)
    try:
        yield watch
    finally:
        for name, function in own.items():
            if function is not None:
                setattr(kind, name, function)
            elif name in kind.__dict__:
                delattr(kind, name)


@dataclass(frozen=True)
class Outcome:
    """What a method reached on the test rows, in the metric's units, and what it cost."""

    value: float
    fits: int = 0
    fit_seconds: float = 0.0
    extra: dict[str, Any] = field(default_factory=dict)


Outcomes = Iterator[tuple[str, Outcome]]  # of methods that share their work, as each is done


@dataclass(frozen=True)
class Candidate:
    """What a search tried: its place, its score (higher is better) and its raw outputs on the evaluation
    rows."""

    place: Any
    score: float
    raw: np.ndarray


class Bench:
    """A problem and one of its splits, with what all rivals need."""

    def __init__(self, problem: Problem, split: int) -> None:
        self.problem, self.split = problem, split
        self.T, self.V, self.E = problem.split(split)
        self.judge = Judge.of(problem.metric, self.T.y, problem.task)
        self.evaluated_on_V = problem.kind == "shift"
        self.classes = self.judge.classes
        T, V = self.T, self.V
        if self.evaluated_on_V:
            self.y, self.columns = V.y, V.columns
        else:
            self.y = np.concatenate([T.y, V.y])
            self.columns = {name: np.concatenate([c, V.columns[name]]) for name, c in T.columns.items()}
        kind = KFold if self.classes is None else StratifiedKFold
        folds = kind(2, shuffle=True, random_state=split)
        self.folds = list(folds.split(T.X, T.y))

    @property
    def sizes(self) -> dict[str, Any]:
        """The numbers of rows, and how many rows each was drawn from, for error margins."""
        learning_pool, test_pool = self.problem.pools(len(self.T), len(self.V), len(self.E))
        return {
            "n_train": len(self.T.y),
            "n_val": len(self.V.y),
            "n_test": len(self.E.y),
            "learning_pool": learning_pool,
            "test_pool": test_pool,
            "greater_is_better": bool(self.judge.metric.greater_is_better),
            "metric": self.judge.metric.name,
            "kind": self.problem.kind,
            "model": self.problem.model,
        }

    def fit(self, watch: Watch, rows: Any = slice(None), weights: Any = None, estimator: Any = None) -> Any:
        """A model trained on these of the training rows."""
        model = clone(self.problem.estimator() if estimator is None else estimator)
        given = {} if weights is None else {"sample_weight": weights[rows]}
        with watch.running():
            return model.fit(self.T.X[rows], self.T.y[rows], **given)

    def evaluated(self, watch: Watch, weights: Any = None, estimator: Any = None) -> np.ndarray:
        """Raw outputs on the evaluation rows of the models with these weights (n,) of T."""
        T, V, judge = self.T, self.V, self.judge
        if self.evaluated_on_V:
            return judge.outputs(self.fit(watch, slice(None), weights, estimator), V.X)
        out, on_V = None, []
        for train, rest in self.folds:
            model = self.fit(watch, train, weights, estimator)
            part = judge.outputs(model, T.X[rest])
            out = np.empty((len(T.y), *part.shape[1:])) if out is None else out
            out[rest] = part
            on_V.append(judge.outputs(model, V.X))
        assert out is not None
        return np.concatenate([out, np.mean(on_V, axis=0)])

    def score(self, raw: np.ndarray, rule: Rule = plain) -> float:
        """The metric on the evaluation rows, higher is better."""
        return self.judge.score(self.y, rule(raw, self.columns), self.columns)

    def tuned(self, raw: np.ndarray) -> Rule:
        return self.judge.tuned(self.y, raw, self.columns, self.problem.group_at_prediction)

    def outcome(self, watch: Watch, raw: np.ndarray, rule: Rule = plain, **extra: Any) -> Outcome:
        """The metric on the test rows, from raw outputs on them; and on either half of them."""
        E = self.E
        moved = rule(raw, E.columns)
        first, second = (
            self.judge.value(E.y[rows], moved[rows], {name: c[rows] for name, c in E.columns.items()})
            for rows in halves(len(E.y))
        )
        value = self.judge.value(E.y, moved, E.columns)
        return Outcome(value, watch.fits, watch.seconds, {**extra, "halves": [first, second]})

    def on_test(self, watch: Watch, weights: Any = None, estimator: Any = None) -> np.ndarray:
        """Raw outputs on the test rows of a model trained on all of T."""
        return self.judge.outputs(self.fit(watch, slice(None), weights, estimator), self.E.X)


def halves(n: int) -> tuple[slice, slice]:
    """The two halves of rows whose order is random."""
    return slice(None, n // 2), slice(n // 2, None)


def methods_for(problem: Problem) -> tuple[str, ...]:
    """The methods that can be run on the problem here."""
    ranks = Judge(_resolved(problem), None).ranks
    left_out: set[str] = set()
    if ranks:
        left_out |= {name for name in SIMPLE if "threshold" in name or name == "best constant"}
    if find_spec("optuna") is None:
        left_out |= {name for name in SIMPLE if name.startswith("hyper-parameters")}
    return tuple(method for method in (*METHODS, *ASKED) if method not in left_out)


def _resolved(problem: Problem) -> Any:
    return Judge.of(problem.metric, np.zeros(1), problem.task).metric


# moew -------------------------------------------------------------------------------------------------------


def settings_of(variant: str) -> dict[str, Any]:
    """The variant's settings, by name."""
    return {**VARIANTS, **FEWER, **ASKED}[variant]


def run_moew(bench: Bench, **settings: Any) -> Outcome:
    T, V, E = bench.T, bench.V, bench.E
    estimator, named = bench.problem.estimator(), bench.problem.features
    if bench.problem.group_at_prediction and settings.get("final") != "best":  # as the rivals' thresholds
        settings = {"decision": Tuned(by="group"), **settings}
    with watched(type(estimator)) as watch:
        search = MetricSearch.from_settings(
            estimator, metric=bench.problem.metric, random_state=bench.split, **settings
        )
        search.fit(
            named(T.X),
            T.y,
            validation=Rows(named(V.X), V.y, columns=V.columns or None),
            columns=T.columns or None,
        )
    value, first, second = (
        search.metric_value(
            named(E.X[rows]), E.y[rows], columns={name: c[rows] for name, c in E.columns.items()}
        )
        for rows in (slice(None), *halves(len(E.y)))
    )
    extra = {
        "honest": float(search.honest_score_),
        "honest_error": float(search.result_.honest.standard_error),
        "best": float(search.best_score_),
        "gain_interval": [float(end) for end in search.result_.gain_interval],
        "halves": [first, second],
    }
    if hasattr(search, "selected_"):
        extra["chosen"] = str(search.selected_)
    return Outcome(value, watch.fits, watch.seconds, extra)


# Rivals -----------------------------------------------------------------------------------------------------


def unweighted(bench: Bench) -> Outcomes:
    """The model as it is; and with its decision tuned on the evaluation rows."""
    watch = Watch()
    on_test = bench.on_test(watch)
    yield "unweighted", bench.outcome(watch, on_test, **bench.sizes)
    if not bench.judge.ranks:
        yield "threshold", _with_threshold(bench, watch, bench.evaluated(watch), on_test)


def _with_threshold(bench: Bench, watch: Watch, raw: np.ndarray, on_test: np.ndarray) -> Outcome:
    rule = bench.tuned(raw)
    return bench.outcome(watch, on_test, rule, tuned=str(rule))


def best_constant(bench: Bench) -> Outcomes:
    """One class for all rows, or one of 99 quantiles of y, the best on the evaluation rows."""
    judge = bench.judge
    if judge.classes is None:
        constants: list[Any] = list(np.quantile(bench.T.y, np.arange(1, 100) / 100))
    elif len(judge.classes) == 2:
        constants = [-1.0, 1.0]
    else:
        constants = list(np.eye(len(judge.classes)))
    scores = [bench.score(np.array([constant] * len(bench.y))) for constant in constants]
    best = constants[int(np.argmax(scores))]
    yield "best constant", bench.outcome(Watch(), np.array([best] * len(bench.E.y)))


def class_weights(bench: Bench, place: Any) -> np.ndarray:
    """Weights (n,) with mean one of the training rows.

    `place` is the logarithm of the second class's weight over the first's; of each class's weight (C,); or,
    in regression, the power of the target (made positive where it is not) that a row's weight is.
    """
    y, classes = bench.T.y, bench.classes
    if classes is None:
        logs = place * np.log(y - lower_end(y))
    elif len(classes) == 2:
        logs = place * (y == classes[1])
    else:
        logs = np.asarray(place)[np.searchsorted(classes, y)]
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.mean())


def next_on_line(tried: list[Candidate]) -> float | None:
    """The middle of the wider gap beside the best place, else of the widest; None where all are narrow."""
    places = np.sort([candidate.place for candidate in tried])
    gaps = np.diff(places)
    at = int(np.searchsorted(places, max(tried, key=lambda candidate: candidate.score).place))
    beside = [k for k in (at - 1, at) if 0 <= k < len(gaps)]
    k = max(beside, key=lambda k: gaps[k])
    if gaps[k] < FINEST:
        k = int(np.argmax(gaps))
    return None if gaps[k] < FINEST else float(places[k] + gaps[k] / 2)


def search(
    tries: Callable[[Any], Candidate],
    starts: Sequence[Any],
    watch: Watch,
    budget: float,
    following: Callable[[list[Candidate]], Any] = next_on_line,
) -> list[Candidate]:
    """Candidates, best first: those at the starts, and at the places that follow until the seconds are used,
    but `LEAST_CANDIDATES` at least."""
    tried: list[Candidate] = []
    while len(tried) < LEAST_CANDIDATES or watch.seconds < budget:
        place = starts[len(tried)] if len(tried) < len(starts) else following(tried)
        if place is None:
            break
        tried.append(tries(place))
    return sorted(tried, key=lambda candidate: -candidate.score)


def search_class_weights(bench: Bench, budget: float, watch: Watch) -> list[Candidate]:
    """Candidates, best first: a grid on the line of weights and its refinement, or random steps."""
    n_classes = 0 if bench.classes is None else len(bench.classes)
    rng = np.random.default_rng([bench.split, n_classes])
    starts: list[Any] = [0.0, *np.linspace(-REACH, REACH, N_GRID)]
    if n_classes > 2:
        counts = np.array([(bench.T.y == c).sum() for c in bench.classes])  # type: ignore[union-attr]
        starts = [np.zeros(n_classes), -np.log(counts), *rng.standard_normal((N_GRID - 1, n_classes))]

    def tries(place: Any) -> Candidate:
        raw = bench.evaluated(watch, class_weights(bench, place))
        return Candidate(place, bench.score(raw), raw)

    def step(tried: list[Candidate]) -> Any:
        best = max(tried, key=lambda candidate: candidate.score)
        return best.place + rng.choice([1.0, 0.5, 0.25]) * rng.standard_normal(n_classes)

    return search(tries, starts, watch, budget, step if n_classes > 2 else next_on_line)


def searched_class_weights(bench: Bench, budget: float) -> Outcomes:
    """The best class weights; the mean of the best three models; the best with its decision tuned."""
    watch = Watch()
    tried = search_class_weights(bench, budget, watch)
    of_search = Watch(watch.fits, watch.seconds)
    best = bench.on_test(watch, class_weights(bench, tried[0].place))
    extra = {"place": np.asarray(tried[0].place).tolist(), "candidates": len(tried)}
    yield "class weights", bench.outcome(watch, best, **extra)
    if not bench.judge.ranks:
        yield "class weights and threshold", _with_threshold(bench, watch, tried[0].raw, best)
    three = [bench.on_test(of_search, class_weights(bench, candidate.place)) for candidate in tried[:3]]
    yield "class weights, averaged", bench.outcome(of_search, np.mean(three, axis=0))


def odds(X: np.ndarray, X_val: np.ndarray) -> np.ndarray:
    """The ratio (n,) of the density of validation rows to that of training rows, at these."""
    source = np.repeat([0, 1], [len(X), len(X_val)])
    of_rows = LogisticRegression(max_iter=300).fit(np.vstack([X, X_val]), source)
    return np.asarray(np.exp(of_rows.decision_function(X)) * len(X) / len(X_val))


def ratio_of_labels(y: np.ndarray, y_val: np.ndarray, classes: np.ndarray | None) -> np.ndarray:
    """The ratio (n,) of the shares of each class, or tenth of y, among validation and training rows."""
    cuts = np.quantile(y, np.arange(1, 10) / 10) if classes is None else classes
    codes = [np.searchsorted(cuts, labels) for labels in (y, y_val)]
    n = max(part.max() for part in codes) + 1
    shares, shares_val = (np.bincount(part, minlength=n) / len(part) for part in codes)
    return np.asarray((shares_val / np.maximum(shares, 1 / len(y)))[codes[0]])


def clipped(ratio: np.ndarray) -> np.ndarray:
    """Weights (n,) with mean one."""
    weights = np.clip(ratio, 0.1, 10.0)
    return np.asarray(weights / weights.mean())


def importance_weights(bench: Bench) -> Outcomes:
    """The ratio of rows of V to rows of T by x, and by y; the better on V of the models trained with them."""
    T, V, watch = bench.T, bench.V, Watch()
    by_x = odds(T.X, V.X)
    found = []
    for name, ratio in (("by x", by_x), ("by y", ratio_of_labels(T.y, V.y, bench.classes))):
        model = bench.fit(watch, weights=clipped(ratio))
        found.append((bench.judge.score(V.y, bench.judge.outputs(model, V.X), V.columns), name, model))
    _, name, model = max(found, key=lambda one: one[0])
    yield "importance weights", bench.outcome(watch, bench.judge.outputs(model, bench.E.X), ratio=name)


def suggested(trial: Any, model: str) -> dict[str, Any]:
    """Parameters of the model, from its usual space."""
    if model == "logistic":
        return {
            "C": trial.suggest_float("C", 1e-4, 1e2, log=True),
            "class_weight": trial.suggest_categorical("class_weight", [None, "balanced"]),
        }
    if model == "ridge":
        return {"alpha": trial.suggest_float("alpha", 1e-3, 1e4, log=True)}
    if model == "boosting":
        return {
            "num_leaves": trial.suggest_int("num_leaves", 4, 64),
            "min_child_samples": trial.suggest_int("min_child_samples", 5, 100),
            "learning_rate": trial.suggest_float("learning_rate", 0.01, 0.3, log=True),
            "reg_lambda": trial.suggest_float("reg_lambda", 1e-3, 10.0, log=True),
            "n_estimators": trial.suggest_int("n_estimators", 50, 300),
        }
    return {
        "learning_rate": trial.suggest_float("learning_rate", 1e-3, 2e-2, log=True),
        "l2": trial.suggest_float("l2", 1e-6, 1e-2, log=True),
        "hidden": (trial.suggest_int("width", 8, 64),),
    }


def usual(estimator: Any, model: str) -> dict[str, Any]:
    """What the model has without a search, as near as the spaces come to it: the first candidate."""
    own = estimator.get_params()
    if model == "logistic":
        return {"C": own["C"], "class_weight": own["class_weight"]}
    if model == "ridge":
        return {"alpha": own["alpha"]}
    if model == "boosting":
        names = ("num_leaves", "min_child_samples", "learning_rate", "n_estimators")
        return {"reg_lambda": 1e-3, **{name: own[name] for name in names}}
    return {"l2": 1e-6, "learning_rate": own["learning_rate"], "width": own["hidden"][0]}


def hyper_parameters(bench: Bench, budget: float) -> Outcomes:
    """The best parameters by Optuna's TPE; and with the decision tuned."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    watch, model = Watch(), bench.problem.model
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=bench.split))
    study.enqueue_trial(usual(bench.problem.estimator(), model))
    best: tuple[Candidate, Any] | None = None
    n = 0
    while n < LEAST_CANDIDATES or watch.seconds < budget:
        trial = study.ask()
        estimator = bench.problem.estimator().set_params(**suggested(trial, model))
        raw = bench.evaluated(watch, estimator=estimator)
        score = bench.score(raw)
        study.tell(trial, score if np.isfinite(score) else -1e9)
        if best is None or score > best[0].score:
            best = Candidate(trial.params, score, raw), estimator
        n += 1
    assert best is not None
    on_test = bench.on_test(watch, estimator=best[1])
    yield "hyper-parameters", bench.outcome(watch, on_test, place=best[0].place, candidates=n)
    if not bench.judge.ranks:
        yield "hyper-parameters and threshold", _with_threshold(bench, watch, best[0].raw, on_test)


# What could be gained ---------------------------------------------------------------------------------------


def pool(bench: Bench) -> list[np.ndarray]:
    """Weights (n,) of the training rows: none, class weights, and random ones of the form σ(zᵀα).

    z holds the label, the cells of group and class where there are groups, and three principal components of
    the features, all standardised. α is the same in every split: its numbers come from POOL_SEED.
    """
    T, classes = bench.T, bench.classes
    rng = np.random.default_rng(POOL_SEED)
    labels = T.y[:, None] if classes is None else (T.y[:, None] == classes[1:]).astype(float)
    blocks = [labels, T.X @ np.linalg.svd(T.X - T.X.mean(axis=0), full_matrices=False)[2][:3].T]
    if "group" in T.columns and classes is not None:
        groups = np.unique(T.columns["group"])
        cells = [(T.columns["group"] == g) & (T.y == c) for g in groups for c in classes]
        blocks.append(np.column_stack(cells).astype(float))
    sizes = [block.shape[1] for block in blocks]
    z = np.column_stack(blocks)
    spread = z.std(axis=0)
    z = (z - z.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    made = [np.ones(len(T.y))]
    if classes is None or len(classes) == 2:
        places: list[Any] = list(np.linspace(-REACH, REACH, N_POOL_CLASS_WEIGHTS))
    else:
        places = list(rng.standard_normal((N_POOL_CLASS_WEIGHTS, len(classes))))
    made += [class_weights(bench, place) for place in places]
    for _ in range(N_POOL):
        scales = rng.choice([0.0, 1.0, 3.0], len(sizes))
        scales[0] = scales[0] if scales.any() else 3.0
        alpha = rng.standard_normal(z.shape[1]) * np.repeat(scales / np.sqrt(sizes), sizes)
        weights = expit(z @ alpha) + 1e-6
        made.append(weights / weights.mean())
    return made


def achievable(bench: Bench) -> Outcomes:
    """The gain of the best of a pool, chosen on one half of the test rows and scored on the other, both
    strategies.

    Every model of the pool is tried as it is and with its decision tuned on the half that chooses. The value
    is the gain over the unweighted model, positive where better.
    """
    watch, judge, E = Watch(), bench.judge, bench.E
    outputs = [bench.on_test(watch, weights) for weights in pool(bench)]
    parts = [
        (E.y[rows], [raw[rows] for raw in outputs], {name: c[rows] for name, c in E.columns.items()})
        for rows in halves(len(E.y))
    ]
    gains, chosen = [], []
    for (y, raws, columns), (y_other, raws_other, columns_other) in (parts, parts[::-1]):
        tried: list[tuple[float, int, Rule]] = []
        for k, raw in enumerate(raws):
            tuned = judge.tuned(y, raw, columns, bench.problem.group_at_prediction)
            tried += [(judge.score(y, rule(raw, columns), columns), k, rule) for rule in (plain, tuned)]
        _, k, rule = max(tried, key=lambda one: one[0])
        reached = judge.score(y_other, rule(raws_other[k], columns_other), columns_other)
        gains.append(reached - judge.score(y_other, raws_other[0], columns_other))
        chosen.append(f"{k} {'plain' if rule is plain else rule}")
    extra = {"halves": gains, "chosen": chosen}
    yield "achievable", Outcome(float(np.mean(gains)), watch.fits, watch.seconds, extra)


Step = tuple[
    tuple[str, ...], Callable[[float], Outcomes]
]  # methods, and how their outcomes come from a budget
Write = Callable[[str, Outcome, float], None]  # (method, outcome, seconds)


def run_steps(steps: Sequence[Step], wanted: set[str], budget: float | None, write: Write) -> None:
    """Run the steps that have wanted methods; `write` gets each outcome as it is done.

    `budget` are the fitting seconds of moew in an earlier run, None if it has not run. A method that fails
    has the value NaN and says why.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of models that have not converged, and of classes without rows
        for names, run in steps:
            left = [name for name in names if name in wanted]
            if not left:
                continue
            start = time.perf_counter()
            try:
                for name, outcome in run(budget or 0.0):
                    if name in left:
                        write(name, outcome, time.perf_counter() - start)
                        left.remove(name)
                    if name == "moew" and budget is None:
                        budget = outcome.fit_seconds
            except Exception as error:
                failed = Outcome(np.nan, extra={"error": f"{type(error).__name__}: {error}"[:500]})
                for name in left:
                    write(name, failed, time.perf_counter() - start)


def run_methods(problem: Problem, split: int, wanted: set[str], budget: float | None, write: Write) -> None:
    """Run the wanted methods on one split of a problem; see `run_steps`."""
    bench = Bench(problem, split)
    shared = wanted.issuperset(SHARED)
    steps: list[Step] = [
        *([(SHARED, lambda _: _with_and_without_others(bench))] if shared else []),
        *(((name,), partial(_variant, bench, name)) for name in VARIANTS if not (shared and name in SHARED)),
        (("unweighted", "threshold"), lambda _: unweighted(bench)),
        (("best constant",), lambda _: best_constant(bench)),
        (
            ("class weights", "class weights, averaged", "class weights and threshold"),
            lambda budget: searched_class_weights(bench, budget),
        ),
        (("importance weights",), lambda _: importance_weights(bench)),
        (
            ("hyper-parameters", "hyper-parameters and threshold"),
            lambda budget: hyper_parameters(bench, budget),
        ),
        (("achievable",), lambda _: achievable(bench)),
        *(((name,), partial(_variant, bench, name)) for name in (*FEWER, *ASKED)),
    ]
    run_steps(steps, wanted & set(methods_for(problem)), budget, write)


def _variant(bench: Bench, name: str, _budget: float) -> Outcomes:
    yield name, run_moew(bench, **settings_of(name))


def _with_and_without_others(bench: Bench) -> Outcomes:
    with TemporaryDirectory() as folder:
        whole = Outcome(np.nan)
        for name in SHARED:
            found = run_moew(bench, storage=Path(folder) / "study.db", **settings_of(name))
            fits, seconds = whole.fits + found.fits, whole.fit_seconds + found.fit_seconds
            whole = replace(found, fits=fits, fit_seconds=seconds)
            yield name, whole
