"""The benchmark of searches whose training rows differ."""

from argparse import Namespace

import numpy as np
import pytest
from benchmark_modules import importable

with importable():
    import shifted_problems as problems
    import shifted_truth as truth


@pytest.mark.parametrize("name", list(problems.PROBLEMS))
def test_every_problem_draws_rows_that_its_model_and_metric_take(name):
    problem = problems.PROBLEMS[name]
    rng = np.random.default_rng(0)
    training, test = problem.draw(200, False, rng), problem.draw(300, True, rng)
    assert (len(training.X), len(test.y)) == (200, 300)
    assert (training.columns is None) == (test.columns is None)
    problem.estimator().fit(training.X, training.y).predict(test.X)


def test_a_search_is_one_line_of_numbers(monkeypatch):
    monkeypatch.setattr(truth, "N_TEST", 500)
    monkeypatch.setattr(truth, "N_CANDIDATES", 3)
    line = truth.one_search(truth.case_of("cost column 1 / 10", 100, truth.AS_IT_COMES), 0)
    found = dict(zip(truth.FIELDS, line, strict=True))
    assert found["training rows"] == 0
    assert abs(found["honest"] - found["test"]) < 4 * found["error"]


def cell(honest, test, alone):
    columns = dict.fromkeys(truth.NUMBERS, np.zeros(4))
    found = {
        **columns,
        "honest": np.array(honest),
        "test": np.array(test),
        "error": np.full(4, 0.1),
        "gain": np.array([0.0, 0.1, 0.1, 0.5]),
        "gain error": np.array([0.0, 0.1, 0.1, 0.1]),
    }
    return truth.Cell(found, {**columns, "test": np.array(alone)})


def test_cells_are_in_reported_errors_and_paired():
    one = cell([0.7, 0.7, 0.9, np.nan], [0.6, 0.6, 0.8, 0.8], [0.5, 0.5, 0.7, 0.7])
    assert one.off == pytest.approx([1.0, 1.0, 1.0])
    assert one.held.tolist() == [True, True, False]  # the first claims no gain
    assert one.lead == pytest.approx(np.full(4, 0.1))


def test_the_page_has_the_table_of_the_raw_numbers():
    page = (truth.RESULTS.parent / "shifted-truth.md").read_text(encoding="utf-8")
    options = Namespace(problems="reported", out=truth.RESULTS / "shifted", repeats=40, jobs=1)
    assert page.partition(truth.HEADING)[2] == truth.table(truth.cells_of(options), 40) + "\n"
