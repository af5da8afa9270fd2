"""The benchmark of problems whose rows are of mixed origin: its methods, and a small version of it."""

import numpy as np
import pytest
from benchmark_modules import importable
from sklearn.linear_model import LogisticRegression

with importable():
    import compared_methods as stats
    import mixed
    import mixed_libraries
    import mixed_methods as methods
    import mixed_problems as problems
    import mixed_tables
    import problem_runs as runs
    import rivals_methods
    from one_kind_problems import Table


def draw(rng):
    """The labels of the second source are wrong, and those before 2015; amounts are log-normal."""
    X = rng.standard_normal((320, 2))
    y = (X[:, 0] + 0.3 * rng.standard_normal(320) > 0).astype(int)
    amount = np.exp(rng.standard_normal(320))
    source, year = rng.integers(2, size=120), rng.integers(2010, 2020, 120)
    given = np.where((source == 1) | (year < 2015), 1 - y[:120], y[:120])
    columns = {"source": np.array(["a", "b"])[source], "year": year, "amount": amount[:120]}
    val, test = (
        Table(X[rows], y[rows], {"amount": amount[rows]}) for rows in (slice(120, 200), slice(200, 320))
    )
    return problems.Drawn(Table(X[:120], given, columns), val, test, 320)


def small_problem(metric=problems.profit, origins=("source", "year", "amount")):
    return problems.MixedProblem("small", draw, "logistic", metric, False, origins)


def values(outcomes):
    return {name: outcome.value for name, outcome in outcomes}


def test_origins_are_levels_and_times_are_cut_into_parts():
    by_source = methods.MixedBench(small_problem(origins=("source", "amount")), 0)
    np.testing.assert_array_equal(by_source.codes, by_source.T.columns["source"] == "b")
    by_year = methods.MixedBench(small_problem(origins=("year",)), 0)
    assert len(np.unique(by_year.codes)) == methods.N_BINS
    assert (np.diff(by_year.codes[np.argsort(by_year.T.columns["year"])]) >= 0).all()
    assert not methods.MixedBench(small_problem(origins=()), 0).codes.any()


def test_rows_of_validation_are_evaluated_by_models_that_did_not_learn_from_them(monkeypatch):
    bench = methods.MixedBench(small_problem("accuracy"), 0)
    seen = []
    monkeypatch.setattr(LogisticRegression, "fit", _remembering(seen, LogisticRegression.fit))
    raw = bench.on_validation(methods.Watch(), methods.Recipe.of(np.zeros(120), 1.0))
    assert raw.shape == (80,) and np.isfinite(raw).all()
    assert [len(X) for X in seen] == [64] * 5
    assert all(
        not (X[:, None] == bench.V.X[rest]).all(axis=2).any()
        for X, (_, rest) in zip(seen, bench.folds_of_V, strict=True)
    )


def _remembering(seen, fit):
    def run(self, X, *args, **kwargs):
        seen.append(X)
        return fit(self, X, *args, **kwargs)

    return run


def test_wrong_origins_are_left_out_or_weigh_little():
    bench = methods.MixedBench(small_problem("accuracy", ("source",)), 0)
    wrong = bench.T.columns["year"] < 2015
    bench.T.y[wrong] = 1 - bench.T.y[wrong]  # the second source alone is wrong
    ((_, best),) = methods.best_origins(bench)
    assert best.value > 0.85 and not best.extra["place"][1]
    ((_, weighted),) = methods.weight_for_each(bench, "weight for each origin", bench.codes, 0.0)
    assert weighted.value > 0.85 and weighted.extra["candidates"] == rivals_methods.LEAST_CANDIDATES
    assert values(methods.ratio_of_both(bench))["ratio of p(x, y)"] > 0.85


def test_origins_are_left_out_one_after_the_other():
    worth = np.array([1.0, -2.0, 0.5, -1.0])

    def tries(chosen):
        return rivals_methods.Candidate(chosen, float(worth[chosen].sum()), np.empty(0))

    tried = methods._backwards(tries, 4)
    best = max(tried, key=lambda candidate: candidate.score)
    assert best.place.tolist() == [True, False, True, False]


def test_an_expected_value_is_of_the_calibrated_probability_and_the_amount():
    rule = methods.ExpectedValue(2.0, 0.5, np.log(3.0))
    raw, amount = np.array([0.0, 1.0, -1.0]), np.array([4.0, 4.0, 40.0])
    expected = amount / (1 + np.exp(-(2 * raw + 0.5)))
    np.testing.assert_array_equal(rule(raw, {"amount": amount}) > 0, expected > 3)


def test_a_library_that_does_not_fit_says_why():
    bench = methods.MixedBench(small_problem("accuracy"), 0)
    found = mixed_libraries.run_library(bench, "crowd-kit, Dawid-Skene")
    assert np.isnan(found.value) and found.extra == {"left out": "rows have no annotators"}


def test_a_small_benchmark_writes_lines_and_tables(tmp_path, monkeypatch):
    settings = {"n_candidates": 3, "batch_size": 3, "embedding": "label"}
    monkeypatch.setattr(methods, "VARIANTS", {"moew": settings})
    monkeypatch.setattr(rivals_methods, "LEAST_CANDIDATES", 3)
    monkeypatch.setattr(methods, "LEAST_CANDIDATES", 3)
    problem, path = small_problem(), tmp_path / "results.csv"
    libraries = {"crowd-kit, majority vote", "fairlearn, ExponentiatedGradient"}  # these do not fit
    wanted = (set(methods.methods_for(problem)) - {*mixed_libraries.LIBRARIES, *methods.ASKED}) | libraries
    for split in (0, 1):
        mixed.BENCHMARK.run_split(problem, split, wanted, 0.01, path)
    lines = runs.read_lines(path)
    assert {method for _, _, method in lines} == wanted
    assert [line.extra["error"] for line in lines.values() if "error" in line.extra] == []
    assert lines["small", 0, "unweighted"].extra["learning_pool"] == 320
    text = mixed_tables.tables(lines, ["small"], "overlap", tmp_path / "mixed.png")
    assert "profit for each row ↑" in text and "rows have no annotators | small |" in text
    assert (tmp_path / "mixed.png").stat().st_size > 10_000


def _lines(method, values, halves, **extra):
    return {
        ("p", split, method): runs.Line(
            "p", split, method, value, 1, 1.0, 1.0, {**extra, "halves": list(half)}
        )
        for split, (value, half) in enumerate(zip(values, halves, strict=True))
    }


@pytest.mark.parametrize("greater", [True, False])
def test_what_is_achievable_is_chosen_on_other_rows_than_it_is_scored_on(greater):
    sign = 1 if greater else -1
    facts = {"greater_is_better": greater}
    lines = {
        **_lines("unweighted", [0, 0], [(0, 0)] * 2, **facts),
        **_lines(methods.BASELINE, [0, 0], [(0, 0)] * 2),
        **_lines("moew", [2 * sign] * 2, [(4 * sign, 0)] * 2, honest=3 * sign, honest_error=0.5),
        **_lines("class weights", [1 * sign] * 2, [(1 * sign, 1 * sign)] * 2),
    }
    results = stats.Results(lines, "overlap", methods.BASELINE, methods.SIMPLE)
    found = mixed_tables.achievable(results, "p", ["moew", methods.BASELINE, "class weights"])
    # The first half chooses moew, which gains 0 on the second; the second class weights, 1 on the first.
    assert [line.extra["halves"] for line in found] == [[1, 0]] * 2 and found[0].value == 0.5
    np.testing.assert_allclose(mixed_tables.honest_errors(results, "p"), [2.0, 2.0])
