"""The metric against the share of rows kept, by weight or at random. Run `python benchmarks/downsample.py`.

For each draw of the data a search learns weights on all training rows. Then the model is trained on fewer
rows with the learned weights: rows kept in proportion to weight with weights corrected (`downsample`), and
rows kept at random with weights divided by the rate, so that the model's own regularisation counts the same.
Both see the same number of rows; 95 % margins over the draws of the data. What rows kept by weight gain on
rare classes depends on how well the classes can be told apart, so it is printed for several `--class-sep`.
Raw numbers are in docs/results/downsampling/downsampling.csv; draws that are there are not run again.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import checkout  # noqa: F401  # finds experiments/, beside this folder
import numpy as np
from paper_way import PAPER, own_decisions
from raw_numbers import RESULTS, measured
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

from experiments.datasets import draw_figure_1
from moew import MetricSearch, metrics
from moew._util.margins import margin
from moew.data import LabelledRows
from moew.embedding import ColumnsEmbedding, LabelEmbedding

RATES = (1.0, 0.5, 0.2, 0.1, 0.05)
DRAWS = 5  # samples for each rate and draw of the data, averaged
FIELDS = (
    *(f"{strategy}, {rate:g}" for rate in RATES for strategy in ("by weight", "at random")),
    "effective share",
    "unweighted",
)
TOY, RARE = "toy (precision at 95 % recall)", "rare classes, class_sep="
Rows = tuple[np.ndarray, np.ndarray]


class Case(NamedTuple):
    search: MetricSearch
    train: Rows
    validation: Rows
    test: Rows


def toy_case(number: int) -> Case:
    """The problem of Figure 1: precision at 95 % recall, test features distributed otherwise."""
    rng = np.random.default_rng(number)
    search = MetricSearch.from_settings(
        LogisticRegression(),
        metric=metrics.precision_at_recall(0.95),
        embedding=ColumnsEmbedding([0, 1]),
        **PAPER,
        radius=3.0,
        n_candidates=50,
        batch_size=10,
        honest=None,
        random_state=number,
    )
    return Case(
        search,
        draw_figure_1(rng, 5_000, 2, 1),
        draw_figure_1(rng, 2_000, 1, 2),
        draw_figure_1(rng, 50_000, 1, 2),
    )


def rare_case(number: int, class_sep: float) -> Case:
    """Four classes, the rarest 3 % of the rows, evaluated by the worst class's error: weights differ much."""
    X, y = make_classification(
        30_000, 8, n_informative=4, n_classes=4, weights=[0.62, 0.25, 0.1, 0.03], class_sep=class_sep,
        random_state=number,
    )  # fmt: skip
    search = MetricSearch.from_settings(
        LogisticRegression(max_iter=300),
        metric=own_decisions(metrics.worst_class_error()),
        embedding=LabelEmbedding(),
        base_weights="uniform",
        **PAPER,
        radius=3.0,
        n_candidates=50,
        batch_size=10,
        honest=None,
        random_state=number,
    )
    parts = np.split(np.arange(len(y)), [5_000, 8_000])
    train, validation, test = ((X[rows], y[rows]) for rows in parts)
    return Case(search, train, validation, test)


def test_score(search: MetricSearch, rows: Any, weights: Any, case: Case) -> float:
    """The metric on the test rows of the model trained on these rows of the training set."""
    X, y = case.train
    model = clone(search.estimator).fit(X[rows], y[rows], sample_weight=weights)
    fitted = search.fitted_
    return fitted.evaluator.value_on(replace(fitted.winner, model=model), LabelledRows(*case.test))


def run_repeat(name: str, number: int) -> list[float]:
    """Test scores for each rate, of rows kept by weight and at random; then how unequal the weights are, and
    the test score of all rows without weights. As FIELDS."""
    sep = None if name == TOY else float(name.removeprefix(RARE).split()[0])
    case = toy_case(number) if sep is None else rare_case(number, sep)
    search = case.search.fit(*case.train, validation=(case.validation[0], case.validation[1]))
    weights, n = search.sample_weight_, len(case.train[1])
    scores = np.zeros((len(RATES), 2))
    for j, rate in enumerate(RATES):
        for seed in range(1 if rate == 1 else DRAWS):
            kept, corrected = search.downsample(rate, seed=seed)
            at_random = np.random.default_rng([number, seed]).permutation(n)[: len(kept)]
            scores[j] += [
                test_score(search, kept, corrected, case),
                test_score(search, at_random, weights[at_random] / rate, case),
            ]
        scores[j] /= 1 if rate == 1 else DRAWS
    effective = weights.sum() ** 2 / (weights**2).sum() / n
    unweighted = test_score(search, np.arange(n), None, case)
    return [*scores.ravel().tolist(), effective, unweighted]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--class-sep", type=float, nargs="*", default=[0.5, 1.0, 1.5, 2.0])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=RESULTS / "downsampling" / "downsampling.csv")
    given = parser.parse_args()
    cases = [TOY, *(f"{RARE}{sep:g} (worst class error)" for sep in given.class_sep)]
    for name, found in measured(given.out, FIELDS, run_repeat, cases, given.repeats, given.jobs).items():
        every = np.array(found, dtype=float)
        results = every[:, :-2].reshape(len(every), len(RATES), 2)
        print(f"{name}\n{'share of rows':>14}{'by weight':>20}{'at random':>20}{'by weight − random':>24}")
        for j, rate in enumerate(RATES):
            columns = [results[:, j, 0], results[:, j, 1], results[:, j, 0] - results[:, j, 1]]
            cells = [f"{100 * values.mean():.2f} ± {100 * margin(values):.2f} %" for values in columns]
            print(f"{rate:>14g}{cells[0]:>20}{cells[1]:>20}{cells[2]:>24}")
        plain = every[:, -1]
        print(f"all rows, no weights: {100 * plain.mean():.2f} ± {100 * margin(plain):.2f} %")
        print(f"effective share of rows (Σw)²/(n Σw²): {every[:, -2].mean():.2f}\n")
    print(f"{given.repeats} draws of the data, {DRAWS} samples for each share below 1.")


if __name__ == "__main__":
    main()
