"""Which settings "moew" has in the paper's experiments: tried on validation rows alone.

Half of the validation rows choose among the 200 candidates (50 in crime), the other half judge the choice, so
that an embedding that fits the validation rows too closely shows. Wine, crime and spam are split at random,
here by another seed than that of the results: the same rows, other parts. MNIST and pages have fixed parts,
and no test row is touched; in MNIST training rows that are left out of training judge.

    python -m benchmarks.paper_settings wine mnist crime spam pages --device gpu --precision tf32 --jobs 8
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import checkout  # noqa: F401  # finds experiments/, beside this folder
import numpy as np

from experiments import mnist, pages, spam
from experiments._autoencoder import middle_layer
from experiments._crime_measures import all_measures
from experiments._crime_settings import POST, VANILLA
from experiments._crime_study import Crime, Setting, judge_of
from experiments._experiment import Options, Prepared, Run, chosen
from experiments._scaling import standardized
from experiments._searches import Arm, Fixed, Judge, Learned, given_weights, uniform_weights
from experiments._wine_rows import HIDDEN_OF_AUTOENCODER, JUDGE, Part, Wine, range_flags
from experiments.datasets import load_blog, load_credit_default, load_crime, load_mnist, load_wine
from moew._util.margins import margin
from moew.samplers import GpBucb

SEED = 12345  # of other splits and first parameters than those of the results
HIDDEN = (10, 50)  # units of MNIST's networks
N_JUDGES = 10_000  # of MNIST's training rows
Trial = tuple[str, Prepared, bool, int]
"""What is tried, greater is better, candidates in a batch."""


def moew(Z: Any, radius: float, base_weights: Any = uniform_weights) -> Learned:
    return Learned(Z, radius, GpBucb(), SEED, base_weights)


def one_hot(kinds: Any, n_kinds: int) -> Any:
    """Standardised flags (R, n, n_kinds)."""
    return standardized(np.eye(n_kinds)[kinds])


def halves(part: Any) -> tuple[Any, Any]:
    """Rows (R, m, …) or (m, …) at even and at odd places."""
    return part[:, ::2], part[:, 1::2]


def wine_trials(options: Options) -> Iterator[Trial]:
    data = Wine(options, load_wine())
    both = [Part(*pair) for pair in zip(*map(halves, vars(data.validation).values()), strict=True)]
    data.validation, data.test = both
    problem = data.problem(False, options.repeats)
    y, points = data.train.y[..., None], data.train.X[..., -1:]
    ranges = standardized(range_flags(data.train.price).astype(float))
    own = wine_autoencoder(data)
    log_price = standardized(np.concatenate([y, (y - y.mean()) ** 2], axis=2))
    tried = {"autoencoder, R = 3": (own, 3.0), "autoencoder, R = 6": (own, 6.0)}
    tried |= {f"price ranges, R = {r:g}": (ranges, r) for r in (1.0, 2.0, 3.0, 6.0)}
    tried |= {f"log price and its square, R = {r:g}": (log_price, r) for r in (3.0, 6.0)}
    with_points = data.metric_columns(options.repeats)
    tried |= {f"price ranges and points, R = {r:g}": (with_points, r) for r in (3.0, 6.0)}
    numbers = standardized(np.concatenate([y, points], axis=2))
    products = np.concatenate([numbers, numbers**2, numbers[..., :1] * numbers[..., 1:]], axis=2)
    tried["log price, points, squares and product, R = 3"] = (standardized(products), 3.0)
    yield "uniform", Prepared(problem, Fixed(), JUDGE), False, 20
    for name, (Z, radius) in tried.items():
        yield name, Prepared(problem, moew(Z, radius), JUDGE), False, 20


def wine_autoencoder(data: Wine) -> Any:
    """The paper's with d = 8, hinge loss for the flags, on scaled numbers, and its outputs standardised."""
    R, price = data.options.repeats, standardized(data.train.y[..., None])
    inputs = np.concatenate([data.features(data.train, True, R), price], axis=2)
    flags = range(inputs.shape[2] - 2)  # points and price come last
    Z = middle_layer(
        inputs,
        HIDDEN_OF_AUTOENCODER,
        8,
        flags,
        n_repeats=R,
        seed=SEED,
        options=data.options,
        batch_size=data.rows_a_step,
    )
    return standardized(Z)


def mnist_trials(options: Options) -> Iterator[Trial]:
    data = mnist.Mnist(options, load_mnist())
    (data.X, data.X_test), (data.y, data.y_test) = (np.split(part, [-N_JUDGES]) for part in (data.X, data.y))
    flags = np.broadcast_to(one_hot(data.y[None], 10), (options.repeats, len(data.y), 10))
    for hidden in HIDDEN:
        networks = data.networks(hidden)
        problem, judge = data.problem(networks), Judge(mnist.EVALUATOR)
        yield f"h = {hidden}, uniform", Prepared(problem, Fixed(), judge), False, 20
        hard = data.difficulty(networks)
        tried = {f"label, R = {r:g}": (flags, r) for r in (0.25, 0.5, 1.0)}
        for times in (4, 10):  # so much further may α go in this direction than in those of the digits
            tried[f"label and {times} × difficulty, R = 0.5"] = (np.dstack([flags, times * hard]), 0.5)
        tried |= {f"difficulty, R = {r:g}": (hard, r) for r in (2.0, 5.0)}
        for name, (Z, radius) in tried.items():
            yield f"h = {hidden}, {name}", Prepared(problem, moew(Z, radius), judge), False, 20


def crime_trials(options: Options) -> Iterator[Trial]:
    for study in ("iid", "shifted"):
        data = Crime(options, load_crime("script"), study)
        data.rows[1], data.rows[2] = halves(data.rows[1])
        for rule, setting in (("vanilla", VANILLA), ("post-shift", POST)):

            def scores(*candidate: Any, setting: Setting = setting) -> dict[str, float]:
                found = all_measures(*candidate)
                shown = {
                    kind: found[f"{setting.rule}: test {kind}"] for kind in ("accuracy", setting.violation)
                }
                return {"test": found[f"{setting.rule}: test {setting.aim}"], **shown}

            judge = replace(judge_of(setting), scores=scores)
            for name, arm in crime_arms(data).items():
                prepared = Prepared(data.problem, arm, judge)
                yield f"{study}, {rule}, {name}", prepared, setting.greater_is_better, 5


def crime_arms(data: Crime) -> dict[str, Arm]:
    """What is tried in one study: embeddings where the rows are shifted in nothing, else π."""
    both = data.our_embedding
    if data.study == "shifted":
        arms: dict[str, Arm] = {
            "uniform": Fixed(),
            "Shimodaira": Fixed(data.base_weights["ratio"]),
        }
        for radius, pi in product((0.5, 1.0, 3.0), ("none", "ratio")):
            arms[f"groups × label, R = {radius:g}, π {pi}"] = moew(both, radius, data.base_weights[pi])
        return arms
    y, group = data.data.y[data.rows[0]], data.data.columns["group"][data.rows[0]]
    own = standardized(data.raw_embedding)
    negatives = np.concatenate([np.eye(4)[group] * (y == 0)[..., None], y[..., None]], axis=2)
    tried = {f"autoencoder, R = {r:g}": (own, r) for r in (3.0, 6.0)}
    tried |= {f"groups × label, R = {r:g}": (both, r) for r in (0.5, 1.0, 3.0)}
    tried |= {f"groups of negatives, label, R = {r:g}": (standardized(negatives), r) for r in (1.0, 3.0)}
    tried |= {"groups, R = 3": (one_hot(group, 4), 3.0)}
    return {"uniform": Fixed()} | {n: moew(Z, r) for n, (Z, r) in tried.items()}


def spam_trials(options: Options) -> Iterator[Trial]:
    for study in spam.SHARES:
        data = spam.Spam(options, load_credit_default(), study)
        both = [spam.Part(*pair) for pair in zip(*map(halves, data.validation), strict=True)]
        data.validation, data.test = both
        problem = data.problem(options.repeats)
        y, own = data.train.y, spam.metric_columns(data.train)
        money, importance = given_weights(data.money), given_weights(data.importance)
        Z = standardized(data.embedding)
        arms: dict[str, Arm] = {
            "uniform": Fixed(),
            "Shimodaira": Fixed(importance),
            "money as weight": Fixed(money),
            **{f"metric's columns, R = {r:g}": moew(own, r) for r in (1.0, 3.0, 6.0)},
            **{f"metric's columns, R = {r:g}, π money": moew(own, r, money) for r in (1.0, 3.0)},
            "metric's columns, R = 3, π": moew(own, 3.0, importance),
            "autoencoder, R = 3": moew(Z, 3.0),
            "features and label, R = 3": moew(
                np.concatenate([data.train.X, 2 * y[..., None] - 1], axis=2), 3.0
            ),
        }
        for name, arm in arms.items():
            yield f"study {study}, {name}", Prepared(problem, arm, spam.JUDGE), True, 20


def pages_trials(options: Options) -> Iterator[Trial]:
    data = pages.Pages(options, load_blog())
    data.X_val, data.X_test = halves(data.X_val)
    data.grades_val, data.grades_test = data.grades_val[::2], data.grades_val[1::2]
    problem = data.problem(pages.STATED, options.repeats)
    sign = 2 * data.y[..., None] - 1
    crossed = np.concatenate([sign, data.X[..., :3].clip(-2, 2) * (sign > 0)], axis=2)
    whole = np.concatenate([sign, data.X.clip(-2, 2)], axis=2)
    own = standardized(data.embedding)
    for share in (0.4, 0.1):
        tried = {f"autoencoder, R = {r:g}": (own, r) for r in (1.0, 3.0)}
        tried |= {f"label, features of positives, R = {r:g}": (crossed, r) for r in (1.0, 3.0)}
        tried |= {f"label and features, R = {r:g}": (whole, r) for r in (1.0, 3.0)}

        judge = Judge(pages.EVALUATORS[share])
        yield f"{pages.shown(share)}, uniform", Prepared(problem, Fixed(), judge), True, 20
        for name, (Z, radius) in tried.items():
            yield f"{pages.shown(share)}, {name}", Prepared(problem, moew(Z, radius), judge), True, 20


TRIALS = {
    "wine": wine_trials,
    "mnist": mnist_trials,
    "crime": crime_trials,
    "spam": spam_trials,
    "pages": pages_trials,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="+", choices=TRIALS)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--device")
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("out"))
    given = parser.parse_args()
    options = Options(given.repeats, SEED, given.device, given.precision, given.out, given.steps, given.jobs)
    for name in given.names:
        this = Run(f"settings-{name}", options)
        for trial, prepared, greater, K in TRIALS[name](options):

            def prepare(prepared: Prepared = prepared) -> Prepared:
                return prepared

            start = time.monotonic()
            seen = this.search(trial, prepare, n_batches=10, batch_size=K)
            scores = chosen(seen, greater)
            figures = [
                f"{kind} {values.mean():.4g} ± {margin(values):.2g}"
                for kind, values in scores.items()
                if kind in ("validation", "test", "accuracy", "FPR violation")
            ]
            shown = ", ".join(figures).replace("test", "evaluation")
            print(f"{name}, {trial}: {shown} ({time.monotonic() - start:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
