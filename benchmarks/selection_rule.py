"""What rules of selecting a strategy cost: their regret where there is something to gain, and where not.

    python benchmarks/selection_rule.py run [--splits 12] [--problems NAME …]
    python benchmarks/selection_rule.py table

`run` fits the development problems of problems.py, without the slowest, and planted ones, with 40 candidates
each. For every strategy it records the honest score, the standard errors of its difference to the others, and
the test score of the model that it alone would have selected, in docs/results/selection/strategies.csv; a run
that was interrupted goes on. `table` plays the rules on these records, without training anything. A rule's
loss is the test score of the best strategy of a split less that of the selected one, in units of the
problem's spread: the root mean square, over its splits and strategies that are no constants, of the
difference of a strategy to the best. The table is in docs/decisions.md.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import csv
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from one_kind_problems import DEVELOPMENT, Table, cost
from planted import PLANTED
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from moew import MetricSearch
from moew._util.margins import is_beyond_chance, margin
from moew.data import LabelledRows, Rows
from moew.search._choices import EFFORTS
from moew.search._conclude import Pool
from moew.search._estimator import train_candidates
from moew.search._honest_score import NEAR, gain_error
from moew.search._prepare import prepare
from moew.search._strategies import CONSTANT, UNWEIGHTED, list_variants

PATH = Path(__file__).parents[1] / "docs/results/selection/strategies.csv"
FIELDS = ("problem", "split", "place", "strategy", "simple", "best", "honest", "optimism", "test", "errors")
SKIPPED = ("credit-top", "credit-cost", "compas-gap")  # the slowest
FEWER = {"adult-f1": 3, "adult-at-80": 3, "wine-boosting": 3}  # a share of the splits of slow ones: one in …
CANDIDATES = 40
N_TEST = 20_000


@dataclass(frozen=True)
class Case:
    """Rows of one split of a problem, its model and its metric."""

    estimator: Any
    metric: Any
    parts: tuple[Rows, Rows, Rows]  # training, validation and test rows


def cases() -> dict[str, Callable[[int], Case]]:
    """All problems by name, as functions of the split's number."""
    found: dict[str, Callable[[int], Case]] = {}
    for problem in DEVELOPMENT:
        if problem.name not in SKIPPED:
            found[problem.name] = partial(_development, problem)
    for planted in PLANTED:
        found[planted.name] = partial(_planted, planted)
    # Few rows of one kind, without validation rows: F1 of a rare class, its accuracy, a cost, equal classes.
    for name, metric, share, n in (
        ("small, f1", "f1", 0.07, 300),
        ("small, accuracy", "accuracy", 0.07, 300),
        ("small, cost", cost, 0.07, 300),
        ("even, accuracy", "accuracy", 0.5, 500),
    ):
        found[name] = partial(_small, metric, share, n)
    return found


def _development(problem: Any, number: int) -> Case:
    parts = [_user_rows(problem, part) for part in problem.split(number, N_TEST)]
    return Case(problem.estimator(), problem.metric, (parts[0], parts[1], parts[2]))


def _user_rows(problem: Any, part: Table) -> Rows:
    return Rows(problem.features(part.X), part.y, None, part.columns or None, None)


def _planted(planted: Any, number: int) -> Case:
    rng = np.random.default_rng([number, planted.n_train])
    parts = [planted.draw(n, rng) for n in (planted.n_train, planted.n_val, N_TEST)]
    train, val, test = (Rows(X, y, None, None, None) for X, y in parts)
    return Case(LogisticRegression(), planted.metric, (train, val, test))


def _small(metric: Any, share: float, n: int, number: int) -> Case:
    """Logistic rows in five dimensions with about this share of positives."""
    rng = np.random.default_rng([number, n, round(100 * share)])
    offset = math.log(share / (1 - share)) * (1.5 if share < 0.5 else 1.0)

    def draw(n: int) -> Rows:
        X = rng.standard_normal((n, 5))
        y = (rng.random(n) < expit(X @ [1.5, -1.0, 0.5, 0.0, 0.0] + offset)).astype(int)
        return Rows(X, y, None, None, None)

    train = draw(n)
    return Case(LogisticRegression(), metric, (train, Rows(None, None, None, None, None), draw(N_TEST)))


def run_split(name: str, number: int) -> list[dict[str, Any]]:
    """The records of all strategies of one fit; scores are signed so that higher is better."""
    case = cases()[name](number)
    search = MetricSearch(
        case.estimator,
        metric=case.metric,
        n_candidates=CANDIDATES,
        verbose=False,
        random_state=number,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        prepared = prepare(search.settings, *case.parts)
        searches, outcomes = train_candidates(prepared)
        pool = Pool.of(prepared, searches, outcomes)
        chooser = pool.chooser(EFFORTS[0])
        strategies = list_variants(chooser, pool.numbers, search.settings.strategy_names, averages=True)
        scores = pool.scores(chooser, strategies, [])
        evaluator, rows = prepared.evaluator, prepared.test
        assert isinstance(rows, LabelledRows)
        sign = 1.0 if evaluator.metric.greater_is_better else -1.0
        records = []
        for place, score in enumerate(scores):
            model = pool.train(score.choice).model
            test = sign * evaluator.value_as_decided(evaluator.predictions_on(model, rows), rows)
            records.append(
                {
                    "problem": name,
                    "split": number,
                    "place": place,
                    "strategy": score.variant.name,
                    "simple": int(score.variant.simple),
                    "best": f"{score.apparent:.8g}",
                    "honest": f"{score.honest:.8g}",
                    "optimism": f"{score.optimism:.8g}",
                    "test": f"{test:.8g}",
                    "errors": " ".join(f"{gain_error(score, other):.6g}" for other in scores),
                }
            )
    return records


def run(splits: int, names: Sequence[str], path: Path) -> None:
    """Fit every split that has no records yet."""
    done = {(record["problem"], int(record["split"])) for record in read(path)}
    is_new = not path.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    for number in range(splits):
        for name in names or cases():
            if (name, number) in done or number % FEWER.get(name, 1):
                continue
            records = run_split(name, number)
            with path.open("a", newline="") as file:
                writer = csv.DictWriter(file, FIELDS)
                if is_new:
                    writer.writeheader()
                writer.writerows(records)
            is_new = False
            print(name, number, flush=True)


def read(path: Path) -> list[dict[str, str]]:
    """All records."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@dataclass(frozen=True)
class Fit:
    """The strategies of one fit, the simplest first; arrays are (S,)."""

    problem: str
    names: list[str]
    simple: np.ndarray
    honest: np.ndarray
    test: np.ndarray
    errors: np.ndarray  # (S, S), standard errors of the differences of honest scores

    @property
    def every(self) -> np.ndarray:
        return np.flatnonzero(np.isfinite(self.honest))

    def without_chance_constants(self) -> np.ndarray:
        """The strategies without a constant that is not ahead of the unweighted model beyond chance."""
        if CONSTANT not in self.names or UNWEIGHTED not in self.names:
            return self.every
        k, plain = self.names.index(CONSTANT), self.names.index(UNWEIGHTED)
        ahead = is_beyond_chance(self.honest[k] - self.honest[plain], self.errors[k, plain])
        return self.every if ahead else self.every[self.every != k]

    def best(self, among: np.ndarray) -> int:
        return int(max(among, key=lambda k: self.honest[k]))

    def simplest(self, among: np.ndarray, c: float) -> int:
        """The simplest strategy that is behind the best by no more than c standard errors."""
        best = self.best(among)
        near = (k for k in among if self.honest[best] - self.honest[k] <= c * self.errors[best, k])
        return int(next(near))


Rule = Callable[[Fit], int]


def near_best(c: float, fit: Fit) -> int:
    """The simplest within c standard errors of the best; a constant only beyond chance."""
    return fit.simplest(fit.without_chance_constants(), c)


def weights_apart(c: float, any_constant: bool, fit: Fit) -> int:
    """The simplest within 0.25 standard errors of the best of the simple strategies; example weights if they
    are ahead of the best of these by more than c."""
    among = fit.every if any_constant else fit.without_chance_constants()
    simple, learned = among[fit.simple[among]], among[~fit.simple[among]]
    best, weights = fit.best(simple), fit.best(learned)
    ahead = fit.honest[weights] - fit.honest[best] > c * fit.errors[weights, best]
    return weights if ahead else fit.simplest(simple, NEAR)


def weights_beyond_chance(fit: Fit) -> int:
    """The same, but example weights if they are ahead of every simple strategy beyond chance."""
    among = fit.without_chance_constants()
    simple, learned = among[fit.simple[among]], among[~fit.simple[among]]
    weights = fit.best(learned)
    ahead = (
        is_beyond_chance(fit.honest[weights] - fit.honest[k], fit.errors[weights, k]) for k in simple.tolist()
    )
    return weights if all(ahead) else fit.simplest(simple, NEAR)


def shrunk(fit: Fit) -> int:
    """The highest posterior mean of the difference to the simplest, with a normal prior around zero whose
    variance is that of the strategies' differences beyond their errors."""
    among = fit.without_chance_constants()
    ahead, errors = fit.honest[among] - fit.honest[among[0]], fit.errors[among, among[0]]
    variance = max(0.0, float(np.mean((ahead**2 - errors**2)[1:]))) if len(among) > 1 else 0.0
    share = variance / np.maximum(variance + errors**2, 1e-300)
    return int(among[np.argmax(ahead * share)])


AS_IT_IS = f"as it is: simplest within {NEAR} errors of the best"
RULES: dict[str, Rule] = {
    AS_IT_IS: partial(near_best, NEAR),  # `decide`
    "best honest score": lambda fit: fit.best(fit.every),
    "best honest score, constant beyond chance": partial(near_best, 0.0),
    **{f"simplest within {c} errors of the best": partial(near_best, c) for c in (0.5, 1.0, 1.96)},
    "highest posterior mean": shrunk,
    "weights ahead by 1 error": partial(weights_apart, 1.0, False),
    "weights ahead by 1.5 errors": partial(weights_apart, 1.5, False),
    "before: weights ahead by 1.5 errors, any constant": partial(weights_apart, 1.5, True),
    "before: weights ahead of all beyond chance": weights_beyond_chance,
}
NOTHING = ("no help", "even")  # problems on which there is nothing to gain from weights


def fits_of(records: Sequence[Mapping[str, str]]) -> dict[str, list[Fit]]:
    """All fits by problem."""
    grouped: dict[tuple[str, str], list[Mapping[str, str]]] = {}
    for record in records:
        grouped.setdefault((record["problem"], record["split"]), []).append(record)
    found: dict[str, list[Fit]] = {}
    for (problem, _), rows in grouped.items():
        numbers = {key: np.array([float(row[key]) for row in rows]) for key in ("simple", "honest", "test")}
        errors = np.array([[float(text) for text in row["errors"].split()] for row in rows])
        names = [row["strategy"] for row in rows]
        fit = Fit(problem, names, numbers["simple"] > 0, numbers["honest"], numbers["test"], errors)
        found.setdefault(problem, []).append(fit)
    return found


def losses(rule: Rule, fits: Sequence[Fit]) -> np.ndarray:
    """The loss (splits,) of a rule on a problem, in units of its spread."""
    behind = [(fit.test.max() - fit.test)[np.array(fit.names) != CONSTANT] for fit in fits]
    spread = math.sqrt(float(np.mean(np.concatenate(behind) ** 2)))
    return np.array([(fit.test.max() - fit.test[rule(fit)]) / spread for fit in fits])


def table(records: Sequence[Mapping[str, str]]) -> list[str]:
    """A line for each rule: its mean loss over the problems, the margin of its difference to the rule as it
    is, how often it selects example weights, and how often two splits agree."""
    fits = fits_of(records)
    n_fits = sum(map(len, fits.values()))
    means = {
        name: np.array([losses(rule, of).mean() for of in fits.values()]) for name, rule in RULES.items()
    }
    reference = means[AS_IT_IS]
    idle = [of for name, of in fits.items() if name.startswith(NOTHING)]
    lines = [
        f"{n_fits} fits of {len(fits)} problems",
        "",
        "| rule | loss | less the first | loss, nothing to gain | weights there | constants | agree |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, rule in RULES.items():
        chosen = {problem: [fit.names[rule(fit)] for fit in of] for problem, of in fits.items()}
        agree = [np.mean([a == b for k, a in enumerate(c) for b in c[:k]]) for c in chosen.values()]
        weights = np.mean([not fit.simple[rule(fit)] for of in idle for fit in of])
        constants = np.mean([one == CONSTANT for c in chosen.values() for one in c])
        difference = means[name] - reference
        lines.append(
            f"| {name} | {means[name].mean():.3f} | {difference.mean():+.3f} ± {margin(difference):.3f} | "
            f"{np.mean([losses(rule, of).mean() for of in idle]):.3f} | {weights:.1%} | {constants:.1%} | "
            f"{np.mean(agree):.0%} |"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("command", choices=("run", "table"))
    parser.add_argument("--splits", type=int, default=12)
    parser.add_argument("--problems", nargs="*", default=[])
    parser.add_argument("--path", type=Path, default=PATH)
    options = parser.parse_args()
    if options.command == "run":
        run(options.splits, options.problems, options.path)
    else:
        print("\n".join(table(read(options.path))))


if __name__ == "__main__":
    main()
