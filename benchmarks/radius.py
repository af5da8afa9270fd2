"""Which radius should be the default? Run `python benchmarks/radius.py` (about ten minutes on 2 cores).

Searches of equal budget with several radii on six problems: test score with 95 % margins over repeats, and
the gain over uniform weights as a share of the best radius' gain, averaged over the problems where there is
one. Raw numbers are in docs/results/choosing/radius.csv; repeats that are there are not run again.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import checkout  # noqa: F401  # finds experiments/, beside this folder
import numpy as np
from paper_way import PAPER, own_decisions
from raw_numbers import RESULTS, measured
from sklearn.datasets import load_digits, make_classification
from sklearn.linear_model import LogisticRegression, Ridge

from experiments.datasets import draw_figure_1
from moew import MetricSearch, Rows, metrics
from moew._util.margins import margin
from moew.decision import ShareSelected
from moew.embedding import AutoencoderEmbedding, ColumnsEmbedding, DiscriminativeEmbedding, LabelEmbedding

RADII = (0.5, 1.0, 2.0, 3.0, 5.0, 10.0)
FIELDS = ("uniform", *(f"R = {radius:g}" for radius in RADII))
Part = tuple[Any, Any, dict[str, Any]]


class Problem(NamedTuple):
    draw: Callable[[np.random.Generator], tuple[Part, Part, Part]]
    settings: Callable[[], dict[str, Any]]


def split(rng: np.random.Generator, X: Any, y: Any, columns: dict[str, Any], sizes: tuple[int, int]) -> Any:
    rows = np.split(rng.permutation(len(y)), np.cumsum(sizes))
    return tuple((X[r], y[r], {name: values[r] for name, values in columns.items()}) for r in rows)


def digits(rng: np.random.Generator) -> Any:
    X, y = load_digits(return_X_y=True)
    noisy = X / 16 + rng.normal(0, 0.3, X.shape)  # clean digits leave no worst class to speak of
    train, *rest = split(rng, noisy, y, {}, (700, 500))
    kept = (train[1] < 5) | (rng.random(700) < 0.2)  # five digits are rare in training
    return (train[0][kept], train[1][kept], {}), *rest


def even_digits(rng: np.random.Generator) -> Any:
    """Nothing is shifted and no class is rare: little to gain, and classes to starve."""
    X, y = load_digits(return_X_y=True)
    return split(rng, X / 16 + rng.normal(0, 0.15, X.shape), y, {}, (700, 500))


def toy_rows(rng: np.random.Generator) -> Any:
    return tuple(
        (*draw_figure_1(rng, n, a, b), {}) for n, a, b in ((2_000, 2, 1), (1_000, 1, 2), (20_000, 1, 2))
    )


def rare_classes(rng: np.random.Generator) -> Any:
    shares = [0.6, 0.25, 0.1, 0.05]
    X, y = make_classification(
        9_000, 8, n_informative=4, n_classes=4, weights=shares, class_sep=0.8,
        random_state=int(rng.integers(2**31)),
    )  # fmt: skip
    return split(rng, X, y, {}, (1_500, 1_000))


def prices(rng: np.random.Generator) -> Any:
    X = rng.normal(size=(9_000, 5))
    log_price = 3 + 0.5 * X[:, 0] + 0.3 * X[:, 1] ** 2 + 0.3 * rng.standard_t(4, 9_000)
    return split(rng, X, log_price, {}, (1_500, 1_000))


def money(rng: np.random.Generator) -> Any:
    X, y = make_classification(
        12_000, 6, n_informative=3, weights=[0.8], flip_y=0.15, random_state=int(rng.integers(2**31))
    )
    amount = np.exp(X[:, 0] + rng.normal(0, 0.5, len(y)))
    return split(rng, X, y, {"value": amount, "harm": np.ones(len(y))}, (2_000, 1_500))


def settings_of(embedding: Any, estimator: Any, metric: Any, **more: Any) -> Callable[[], dict[str, Any]]:
    return lambda: {"embedding": embedding, "estimator": estimator, "metric": own_decisions(metric), **more}


LOGISTIC = LogisticRegression(max_iter=200)
BANDS = metrics.worst_band_relative_error(thresholds=(15, 20, 30), inverse="exp")
PROBLEMS = {
    "toy": Problem(toy_rows, settings_of(ColumnsEmbedding([0, 1]), LOGISTIC, metrics.precision_at_recall())),
    "digits": Problem(digits, settings_of(LabelEmbedding(), LOGISTIC, metrics.worst_class_error())),
    "even digits": Problem(even_digits, settings_of(LabelEmbedding(), LOGISTIC, metrics.worst_class_error())),
    "rare classes": Problem(
        rare_classes, settings_of(DiscriminativeEmbedding(steps=1_000), LOGISTIC, metrics.worst_class_error())
    ),
    "prices": Problem(prices, settings_of(AutoencoderEmbedding(4, steps=2_000), Ridge(), BANDS)),
    "money": Problem(
        money,
        settings_of(
            ColumnsEmbedding([0, 1, 2]), LOGISTIC, metrics.value_per_harm(), decision=ShareSelected(0.05)
        ),
    ),
}


def run_repeat(name: str, number: int) -> list[float]:
    """Test scores of uniform weights and of each radius, as FIELDS."""
    problem = PROBLEMS[name]
    (X, y, _), (X_val, y_val, val), (X_test, y_test, test) = problem.draw(np.random.default_rng(number))

    def score(n_candidates: int, batch_size: int, radius: float) -> float:
        search = MetricSearch.from_settings(
            **problem.settings(),
            **PAPER,
            radius=radius,
            n_candidates=n_candidates,
            batch_size=batch_size,
            honest=None,
            base_weights="uniform",
            random_state=number,
        )
        search.fit(X, y, validation=Rows(X_val, y_val, columns=val))
        return search.metric_value(X_test, y_test, columns=test)

    uniform = score(1, 1, 1e-9)  # so small a ball holds only uniform weights
    return [uniform, *(score(50, 10, radius) for radius in RADII)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=RESULTS / "choosing" / "radius.csv")
    given = parser.parse_args()
    every = measured(given.out, FIELDS, run_repeat, list(PROBLEMS), given.repeats, given.jobs)
    print(f"{'test score':14}" + "".join(f"{name:>15}" for name in FIELDS))
    shares = []
    for name, found in every.items():
        table = np.array(found, dtype=float)
        cells = [f"{c.mean():.3g} ± {margin(c):.2g}" for c in table.T]
        print(f"{name:14}" + "".join(f"{cell:>15}" for cell in cells))
        greater = PROBLEMS[name].settings()["metric"].greater_is_better
        gains = (table[:, 1:] - table[:, :1]) * (1 if greater else -1)
        best = gains[:, gains.mean(axis=0).argmax()]
        if best.mean() > margin(best):  # where nothing is to be gained, shares of it mean nothing
            shares.append(gains.mean(axis=0) / best.mean())
    mean = np.mean(shares, axis=0)
    print(f"{'share of the best gain':29}" + "".join(f"{share:>15.2f}" for share in mean))
    print(f"{given.repeats} repeats, 51 models each. The largest share is at R = {RADII[mean.argmax()]:g}.")


if __name__ == "__main__":
    main()
