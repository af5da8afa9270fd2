"""Cases of `compare`: the same rows and settings as a fit, with test rows."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
from fuzz_cases import chance, checking, expect, expect_close, expect_same, odd_value, pick
from fuzz_fit import is_fast, make_search
from fuzz_rows import ODDITIES, Problem, Rng, make_problem
from sklearn.base import clone
from sklearn.metrics import get_scorer

from moew import ExampleWeightSearch, compare
from moew.data import two_dimensional
from moew.search import Comparison


def compare_case(rng: Rng) -> None:
    """Compare all ways on generated rows."""
    problem = make_problem(rng, odd=chance(rng, 0.5))
    search, settings = make_search(rng, problem)
    search.set_params(n_batches=1, honest=None if chance(rng, 0.9) else "halves")
    if problem.sound:
        search.set_params(timeout=None)  # a comparison refuses it
    if problem.sound and not is_fast(search.metric) and chance(rng, 0.9):
        search.set_params(metric=None, constraint=None)  # resampling the test rows takes thousands of calls
    if not isinstance(search.batch_size, int) or search.batch_size > 2:
        search.set_params(batch_size=2)
    arguments: dict[str, Any] = {**problem.rows, **_test_rows(rng, problem), "repeats": 2, "random_state": 3}
    if not problem.sound and chance(rng, 0.4):
        arguments[pick(rng, ["repeats", "random_state", "X_test", "y_test", "groups_test"])] = odd_value(rng)
    if not problem.sound:
        found = compare(search, **arguments)
    else:
        with checking(f"a sound comparison, {settings}"):
            found = compare(search, **arguments)
    with checking("the properties of a comparison"):
        _check(found, arguments["repeats"])
        if problem.sound:
            _check_uniform(found, search, problem, arguments)
    if problem.sound and chance(rng, 0.1) and search.honest is None:
        again = compare(search, **arguments)
        for one, other in zip(found.rows, again.rows, strict=True):
            expect_same(one.test, other.test, f"compared twice: {one.method}")


def _test_rows(rng: Rng, problem: Problem) -> dict[str, Any]:
    rows = problem.rows
    n = min(problem.n_rows, 30)
    test: dict[str, Any] = {"X_test": rows.get("X"), "y_test": rows.get("y")}
    for key, value in list(test.items()):
        with suppress(TypeError, IndexError, KeyError):  # odd rows may be anything
            test[key] = value.iloc[:n] if hasattr(value, "iloc") else value[:n]
    if not problem.sound and chance(rng, 0.3):
        _, change = pick(rng, ODDITIES[:23])
        parts = {"X": test["X_test"], "y": test["y_test"]}
        try:
            change(rng, parts)
        except Exception:  # not every one can be made of these rows
            return test
        test = {"X_test": parts["X"], "y_test": parts["y"]}
    return test


def _check(found: Comparison, repeats: int) -> None:
    for row in found.rows:
        for scores in (row.best, row.honest, row.test):
            expect(scores.shape == (repeats,), f"{row.method} has scores of the shape {scores.shape}")
        expect(np.isfinite(row.best).all(), f"{row.method} has no score on the judged rows: {row.best}")
    names = [row.method for row in found.rows]
    expect({"uniform", "random", "moew"} <= set(names) and len(set(names)) == len(names), f"rows {names}")
    sign = 1 if found.greater_is_better else -1
    expect_close(found.gain, sign * (found["moew"].test - found["uniform"].test), "the gain")
    expect(isinstance(str(found), str) and isinstance(found.record, dict), "it has no text")


def _check_uniform(
    found: Comparison, search: ExampleWeightSearch, problem: Problem, rows: dict[str, Any]
) -> None:
    """The uniform method is the model itself: trained here, it scores the same on the test rows."""
    if search.decision is not None or search.metric is not None or "sample_weight" in rows:
        return
    if hasattr(search.estimator, "random_state") or "X_val" not in rows:
        return  # which seed it got, and which rows it was trained on, is not known here
    model = clone(search.estimator).fit(two_dimensional(rows["X"]), np.asarray(rows["y"]))
    scorer: Any = get_scorer("accuracy" if problem.task == "classification" else "r2")
    value = scorer(model, two_dimensional(rows["X_test"]), np.asarray(rows["y_test"]))
    expect_close(
        found["uniform"].test, np.full(2, value), "the uniform model's test score", rtol=1e-6, atol=1e-6
    )
