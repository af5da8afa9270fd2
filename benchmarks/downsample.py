"""The metric against the share of rows kept, by weight or at random. Run `python benchmarks/downsample.py`.

For each draw of the data a search learns weights on all training rows. Then the model is trained on fewer
rows with the learned weights: rows kept in proportion to weight with weights corrected (`downsample`), and
rows kept at random with weights divided by the rate, so that the model's own regularisation counts the same.
Both see the same number of rows; 95 % margins over the draws of the data. What rows kept by weight gain on
rare classes depends on how well the classes can be told apart, so it is printed for several `--class-sep`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from paper_way import PAPER, own_decisions
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

from moew import ExampleWeightSearch, metrics
from moew._util.margins import margin
from moew.data import LabelledRows
from moew.datasets import draw_figure_1
from moew.embedding import ColumnsEmbedding, LabelEmbedding

RATES = (1.0, 0.5, 0.2, 0.1, 0.05)
DRAWS = 5  # samples for each rate and draw of the data, averaged
Rows = tuple[np.ndarray, np.ndarray]
Make = Callable[[int, float], "Case"]


class Case(NamedTuple):
    search: ExampleWeightSearch
    train: Rows
    validation: Rows
    test: Rows


def toy_case(number: int, _: float) -> Case:
    """The problem of Figure 1: precision at 95 % recall, test features distributed otherwise."""
    rng = np.random.default_rng(number)
    search = ExampleWeightSearch(
        LogisticRegression(), metric=metrics.precision_at_recall(0.95), embedding=ColumnsEmbedding([0, 1]),
        **PAPER, radius=3.0, n_batches=5, batch_size=10, honest=None, random_state=number,
    )  # fmt: skip
    return Case(
        search,
        draw_figure_1(rng, 5_000, 2, 1),
        draw_figure_1(rng, 2_000, 1, 2),
        draw_figure_1(rng, 50_000, 1, 2),
    )


def rare_case(number: int, class_sep: float) -> Case:
    """Four classes, the rarest 3 % of the rows, judged by the worst class's error: weights differ much."""
    X, y = make_classification(
        30_000, 8, n_informative=4, n_classes=4, weights=[0.62, 0.25, 0.1, 0.03], class_sep=class_sep,
        random_state=number,
    )  # fmt: skip
    search = ExampleWeightSearch(
        LogisticRegression(max_iter=300), metric=own_decisions(metrics.worst_class_error()),
        embedding=LabelEmbedding(), base_weights="uniform", **PAPER, radius=3.0, n_batches=5, batch_size=10,
        honest=None, random_state=number,
    )  # fmt: skip
    parts = np.split(np.arange(len(y)), [5_000, 8_000])
    train, validation, test = ((X[rows], y[rows]) for rows in parts)
    return Case(search, train, validation, test)


def all_cases(class_seps: list[float]) -> list[tuple[str, Make, float]]:
    """The name of each case, and what makes one draw of its data."""
    rare = [(f"rare classes, class_sep={sep:g} (worst class error)", rare_case, sep) for sep in class_seps]
    return [("toy (precision at 95 % recall)", toy_case, 0.0), *rare]


def test_score(search: ExampleWeightSearch, rows: Any, weights: Any, case: Case) -> float:
    """The metric on the test rows of the model trained on these rows of the training set."""
    X, y = case.train
    model = clone(search.estimator).fit(X[rows], y[rows], sample_weight=weights)
    fitted = search.fitted_
    return fitted.evaluator.value_on(replace(fitted.winner, model=model), LabelledRows(*case.test))


def run_repeat(make: Make, number: int, class_sep: float) -> np.ndarray:
    """Test scores (rates, 2): rows kept by weight, and at random; then two more rows of one number each:
    how unequal the weights are, and the test score of all rows without weights."""
    case = make(number, class_sep)
    search = case.search.fit(*case.train, X_val=case.validation[0], y_val=case.validation[1])
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
    return np.vstack([scores, [effective] * 2, [unweighted] * 2])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--class-sep", type=float, nargs="*", default=[0.5, 1.0, 1.5, 2.0])
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    for name, make, sep in all_cases(given.class_sep):
        jobs = (delayed(run_repeat)(make, number, sep) for number in range(given.repeats))
        results = np.array(Parallel(n_jobs=given.jobs)(jobs))
        print(f"{name}\n{'share of rows':>14}{'by weight':>20}{'at random':>20}{'by weight − random':>24}")
        for j, rate in enumerate(RATES):
            columns = [results[:, j, 0], results[:, j, 1], results[:, j, 0] - results[:, j, 1]]
            cells = [f"{100 * values.mean():.2f} ± {100 * margin(values):.2f} %" for values in columns]
            print(f"{rate:>14g}{cells[0]:>20}{cells[1]:>20}{cells[2]:>24}")
        plain = results[:, -1, 0]
        print(f"all rows, no weights: {100 * plain.mean():.2f} ± {100 * margin(plain):.2f} %")
        print(f"effective share of rows (Σw)²/(n Σw²): {results[:, -2, 0].mean():.2f}\n", flush=True)
    print(f"{given.repeats} draws of the data, {DRAWS} samples for each share below 1.")


if __name__ == "__main__":
    main()
