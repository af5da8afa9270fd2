"""Cases of `compare`: the same rows and settings as a fit, with test rows."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
from fuzz_cases import chance, checking, expect, expect_close, expect_same, odd_value, pick
from fuzz_fit import is_fast, make_search
from fuzz_rows import ODDITIES, Problem, Rng, make_problem, rows_of
from sklearn.base import clone
from sklearn.metrics import get_scorer

from moew import MetricSearch, compare
from moew.data import two_dimensional
from moew.search import Comparison


def compare_case(rng: Rng) -> None:
    """Compare all strategies on generated rows."""
    problem = make_problem(rng, odd=chance(rng, 0.5))
    search, settings = make_search(rng, problem)
    settings["honest"] = None if chance(rng, 0.9) else "halves"
    if problem.sound:
        settings["timeout"] = None  # a comparison refuses it
    if problem.sound and not is_fast(search.metric) and chance(rng, 0.9):
        settings |= {"metric": None, "constraints": None}  # resampling the test rows takes thousands of calls
    if not isinstance(settings["batch_size"], int) or settings["batch_size"] > 2:
        settings["batch_size"] = 2
    if isinstance(settings["n_candidates"], int) and settings["n_candidates"] > 2:
        settings["n_candidates"] = 2
    search = MetricSearch.from_settings(search.estimator, **settings)
    rows = {**problem.rows, **_test_rows(rng, problem)}
    more: dict[str, Any] = {"repeats": 2, "random_state": 3}
    if not problem.sound and chance(rng, 0.4):
        name = pick(rng, ["repeats", "random_state", "test", "X_test", "y_test", "groups_test"])
        (rows if name.endswith("_test") else more)[name] = odd_value(rng)
    arguments = {**problem.arguments, "test": rows_of(rows, "_test"), **more}
    if not problem.sound:
        found = compare(search, **arguments)
    else:
        with checking(f"a sound comparison, {settings}"):
            found = compare(search, **arguments)
    with checking("the properties of a comparison"):
        _check(found, arguments["repeats"])
        if problem.sound:
            _check_uniform(found, search, problem, rows)
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
        for scores in (row.apparent, row.honest, row.test):
            expect(scores.shape == (repeats,), f"{row.method} has scores of the shape {scores.shape}")
        expect(
            np.isfinite(row.apparent).all(),
            f"{row.method} has no score on the evaluation rows: {row.apparent}",
        )
    names = [row.method for row in found.rows]
    expect(
        {"unweighted", "random weights", "moew"} <= set(names) and len(set(names)) == len(names),
        f"rows {names}",
    )
    sign = 1 if found.greater_is_better else -1
    expect_close(found.gain, sign * (found["moew"].test - found["unweighted"].test), "the gain")
    expect(isinstance(str(found), str) and isinstance(found.record, dict), "it has no text")


def _check_uniform(found: Comparison, search: MetricSearch, problem: Problem, rows: dict[str, Any]) -> None:
    """The uniform method is the model itself: trained here, it scores the same on the test rows."""
    if search.decision is not None or search.metric is not None or "sample_weight" in rows:
        return
    if hasattr(search.estimator, "random_state") or "X_val" not in rows:
        return  # which seed it got, and which rows it was trained on, is not known here
    model = clone(search.estimator).fit(two_dimensional(rows["X"]), np.asarray(rows["y"]))
    scorer: Any = get_scorer("accuracy" if problem.task == "classification" else "r2")
    value = scorer(model, two_dimensional(rows["X_test"]), np.asarray(rows["y_test"]))
    expect_close(
        found["unweighted"].test, np.full(2, value), "the uniform model's test score", rtol=1e-6, atol=1e-6
    )
