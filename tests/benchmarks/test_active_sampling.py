"""The benchmark of rows to label next: the ways to pick rows, its file, and a small version of it."""

from dataclasses import replace

import numpy as np
import pytest
from benchmark_modules import importable
from sklearn.linear_model import LogisticRegression

with importable():
    import active_sampling as active
    import one_kind_problems as problems
SMALL = active.Plan(start=40, picked=10, rounds=1, pool=100, validation=40, n_candidates=3, batch_size=3)


def small_table():
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, 300)
    X = np.column_stack([rng.standard_normal((300, 2)), group])
    y = (X[:, 0] + 0.5 * group + rng.standard_normal(300) > 1).astype(int)
    return problems.Table(X, y, {"group": group})


SMALL_PROBLEM = problems.Problem("small", small_table, "logistic", problems.worst_cell, "groups", 140, 40)


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(active, "PLAN", SMALL)
    monkeypatch.setattr(active, "all_problems", lambda: {"small": SMALL_PROBLEM})


@pytest.mark.heavy
def test_a_small_benchmark_writes_lines_goes_on_and_prints_tables(tmp_path, small, monkeypatch, capsys):
    run = ["run", "--jobs", "1", "--out", str(tmp_path), "--repeats"]
    active.main([*run, "2"])
    path = tmp_path / "results.csv"
    lines = active.read_lines(path)
    assert len(lines) == 2 * (6 * 2 + 1)
    for repeat in (0, 1):  # all strategies begin with the same rows, and get as many
        of_strategies = [
            line for line in lines.values() if line.repeat == repeat and line.strategy != active.WHOLE
        ]
        assert len({(line.moew, line.plain) for line in of_strategies if line.round == 0}) == 1
        assert {(line.round, line.labelled) for line in of_strategies} == {(0, 40), (1, 50)}
        assert lines["small", repeat, active.WHOLE, 1].labelled == 140
    written = path.read_text(encoding="utf-8")
    path.write_text(written.rsplit(",", 3)[0], encoding="utf-8")  # a run that was ended while writing
    ran = []
    run_task = active.run_task
    monkeypatch.setattr(active, "run_task", lambda *task: ran.append(task) or run_task(*task))
    active.main([*run, "2"])
    assert len(ran) == 1 and path.read_text(encoding="utf-8") == written
    capsys.readouterr()
    active.main(["table", "--out", str(tmp_path)])
    printed = capsys.readouterr().out
    assert printed.count("### ") == 9 and "| small, worst cell ↑ |" in printed and "2 repeats" in printed


def test_no_table_without_results(tmp_path, small):
    with pytest.raises(SystemExit, match="no results"):
        active.main(["table", "--out", str(tmp_path)])


def test_picked_rows_do_not_depend_on_the_labels_of_the_pool():
    rows, validation, _ = SMALL_PROBLEM.split(0)
    search = active.fitted(
        SMALL_PROBLEM, rows.take(np.arange(40)), validation, 0, SMALL, {**active.LEARNED, "final": "best"}
    )
    pool = rows.take(np.arange(40, 140))
    weights = active.pool_weights(search, pool)
    for strategy in (active.RANDOM, *active.PICKING):
        picked = active.pick(strategy, search, pool, weights, 10, 5)
        assert len(set(picked.tolist())) == 10
        other = active.pick(strategy, search, replace(pool, y=1 - pool.y), weights, 10, 5)
        np.testing.assert_array_equal(picked, other)
    highest = active.pick(active.HIGHEST, search, pool, weights, 10, 5)
    assert weights[highest].min() >= np.delete(weights, highest).max()
    unsure = active.pick(active.UNCERTAIN, search, pool, weights, 10, 5)
    distance = np.abs(search.predict_proba(pool.X)[:, 1] - 0.5)
    assert distance[unsure].max() <= np.delete(distance, unsure).min()


def test_uncertainty_is_high_between_two_classes():
    X = np.array([[-2.0], [-1.0], [1.0], [2.0], [4.0], [5.0]])
    model = LogisticRegression().fit(X, [0, 0, 1, 1, 2, 2])
    assert active.uncertainty(model, np.array([[0.0], [-5.0]]))[0] > 0.5
    assert active.uncertainty(model, np.array([[-5.0]]))[0] < 0.1


def test_the_first_rows_hold_every_class():
    y = np.array([0] * 50 + [1] * 5)
    np.testing.assert_array_equal(active.first_rows(y, 10), [0, 1, 2, 3, 4, 5, 6, 50, 51, 52])


def test_gains_are_positive_where_better_and_averaged_over_rounds():
    problem = replace(SMALL_PROBLEM, metric=problems.cost)
    lines = {
        ("small", repeat, strategy, at): active.Line("small", repeat, strategy, at, 10, value, 0.0)
        for repeat in (0, 1)
        for strategy, at, value in (
            (active.RANDOM, 1, 0.5),
            (active.RANDOM, 2, 0.4),
            (active.SUGGEST, 1, 0.3 + repeat),
            (active.SUGGEST, 2, 0.3),
        )
    }
    results = active.Results(lines, [problem])
    np.testing.assert_allclose(results.gains("small", active.SUGGEST, "moew", [1, 2]), [0.15, -0.35])
