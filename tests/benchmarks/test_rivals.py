"""The benchmark of rivals: its judge, its statistics, and a small version of it."""

import math
import re

import numpy as np
import pytest
from benchmark_modules import importable
from pages import ROOT
from sklearn.linear_model import LogisticRegression, Ridge

from moew.metrics import precision_at_recall, worst_class_error

with importable():
    import compared_methods as stats
    import one_kind_problems as problems
    import problem_runs as runs
    import rivals
    import rivals_methods as methods
    import rivals_tables
    from rivals_judge import GroupThresholds, Judge, Offsets, Threshold, plain


def small_table():
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, 200)
    X = np.column_stack([rng.standard_normal((200, 2)), group])
    y = (X[:, 0] + 0.5 * group + rng.standard_normal(200) > 1).astype(int)
    return problems.Table(X, y, {"group": group})


def small_problem(metric, kind="decisions", **more):
    return problems.Problem("small", small_table, "logistic", metric, kind, 80, 40, **more)


# The judge


def test_the_judge_agrees_with_the_models_own_decisions():
    table = small_table()
    model = LogisticRegression().fit(table.X, table.y)
    judge = Judge.of("f1", table.y, "classification")
    raw = judge.outputs(model, table.X)
    np.testing.assert_array_equal(judge.decisions(raw), model.predict(table.X))
    from sklearn.metrics import f1_score

    assert judge.score(table.y, raw, {}) == pytest.approx(f1_score(table.y, model.predict(table.X)))


def test_lower_is_better_has_the_other_sign_and_ranking_has_no_rule():
    y = np.array([0, 0, 1, 1])
    raw = np.array([-1.0, 2.0, 1.0, 3.0])
    error = Judge.of(worst_class_error(), y, "classification")
    assert error.value(y, raw, {}) == 0.5 and error.score(y, raw, {}) == -0.5
    ranking = Judge.of(precision_at_recall(1.0), y, "classification")
    assert ranking.ranks and ranking.score(y, raw, {}) == pytest.approx(2 / 3)
    assert ranking.tuned(y, raw, {}) is plain


def test_thresholds_are_tuned_for_all_rows_or_for_each_group():
    y = np.array([0, 0, 1, 1] * 10)
    group = np.repeat([0, 1], 20)
    raw = np.tile([1.0, 2.0, 3.0, 4.0], 10) + 10 * group
    judge = Judge.of(worst_class_error(), y, "classification")
    columns = {"group": group}
    one = judge.tuned(y, raw, columns)
    assert isinstance(one, Threshold) and judge.score(y, one(raw, columns), columns) == -0.5
    each = judge.tuned(y, raw, columns, for_groups=True)
    assert isinstance(each, GroupThresholds) and judge.score(y, each(raw, columns), columns) == 0.0


def test_offsets_of_classes_and_moved_predictions_are_found():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    raw = 2.0 * np.eye(3)[y] + 0.1 * rng.standard_normal((300, 3)) + [0.0, 2.5, 0.0]
    judge = Judge.of(worst_class_error(), y, "classification")
    rule = judge.tuned(y, raw, {})
    assert isinstance(rule, Offsets)
    assert judge.score(y, raw, {}) < -0.9 and judge.score(y, rule(raw, {}), {}) > -0.05
    target = rng.standard_normal(300)
    numbers = Judge.of("neg_mean_absolute_error", target, "regression")
    shrunk = 0.5 * target - 1
    assert numbers.score(target, numbers.tuned(target, shrunk, {})(shrunk, {}), {}) > -0.2


def test_every_fit_of_a_class_is_counted_and_the_class_is_left_as_it_was():
    table, before = small_table(), LogisticRegression.fit
    with methods.watched(LogisticRegression) as watch:
        LogisticRegression().fit(table.X, table.y)
        Ridge().fit(table.X, table.y)
    assert watch.fits == 1 and watch.seconds > 0 and LogisticRegression.fit is before


# Methods


def test_weights_on_a_line_are_refined_around_the_best():
    tried = [methods.Candidate(x, -abs(x - 0.9), np.empty(0)) for x in (-4.0, 0.0, 1.0, 4.0)]
    assert methods.next_on_line(tried) == 2.5
    everywhere = [methods.Candidate(x, 0.0, np.empty(0)) for x in np.arange(0, 1, 0.01)]
    assert methods.next_on_line(everywhere) is None


@pytest.mark.parametrize("kind", ["decisions", "shift"])
def test_evaluation_rows_are_out_of_fold_or_validation_rows(kind):
    bench = methods.Bench(small_problem("f1", kind), 0)
    watch = methods.Watch()
    raw = bench.evaluated(watch)
    assert (len(raw), watch.fits) == ((40, 1) if kind == "shift" else (120, 2))
    assert len(raw) == len(bench.y) == len(bench.columns["group"])
    assert math.isfinite(bench.score(raw))


def test_a_method_that_fails_does_not_stop_the_others(monkeypatch):
    def broken(*_):
        raise ValueError("no")

    monkeypatch.setattr(methods, "best_constant", broken)
    found = {}
    wanted = {"best constant", "unweighted", "threshold"}
    methods.run_methods(small_problem("f1"), 0, wanted, None, lambda name, got, _: found.update({name: got}))
    assert math.isnan(found["best constant"].value) and "no" in found["best constant"].extra["error"]
    assert 0 < found["unweighted"].value <= 1 and found["threshold"].fits == 3


def test_a_small_benchmark_writes_lines_and_tables(tmp_path, monkeypatch):
    monkeypatch.setattr(
        methods, "VARIANTS", {"moew": {"n_candidates": 3, "batch_size": 3, "embedding": "label"}}
    )
    monkeypatch.setattr(methods, "N_POOL", 3)
    problem = small_problem(problems.worst_cell, "groups")
    path = tmp_path / "results.csv"
    wanted = set(methods.methods_for(problem)) - {"moew 0.1", "moew, weights alone", *methods.ASKED}
    for split in (0, 1):
        rivals.BENCHMARK.run_split(problem, split, wanted, None, path)
    lines = runs.read_lines(path)
    assert {method for _, _, method in lines} == wanted
    assert [line.extra["error"] for line in lines.values() if "error" in line.extra] == []
    assert rivals.BENCHMARK.missing(lines, problem, 0, sorted(wanted), again=False) == set()
    assert rivals.BENCHMARK.missing(lines, problem, 0, ["moew"], again=True) == {"moew"}
    assert runs.budget_of(lines, "small", 1) == lines["small", 1, "moew"].fit_seconds
    assert lines["small", 0, "class weights"].extra["candidates"] >= methods.LEAST_CANDIDATES
    runs.append(path, runs.Line("small", 0, "moew", 2.0, 1, 0.1, 0.1))
    again = runs.read_lines(path)
    assert again["small", 0, "moew"].value == 2.0 and len(again) == len(lines)
    runs.write_all(path, lines)
    assert runs.read_lines(path).keys() == lines.keys()
    for correction in ("rows", "overlap"):
        text = rivals_tables.tables(lines, ["small"], correction, tmp_path / "rivals.png")
        assert "worst cell ↑" in text and "### Summary" in text
    assert (tmp_path / "rivals.png").stat().st_size > 10_000


# Statistics


def test_errors_of_overlapping_splits():
    gains = np.array([1.0, 2.0, 3.0, 4.0])
    assert stats.error_by_rows(gains, 0, 10) == pytest.approx(gains.std(ddof=1) / 2)
    assert stats.error_by_rows(gains, 5, 10) == pytest.approx(gains.std(ddof=1) * math.sqrt(0.75))
    same = np.column_stack([gains, gains])
    assert stats.error_by_overlap(gains, same, 0.9, 0.0) == pytest.approx(gains.std(ddof=1) / 2)


def test_the_error_by_overlap_holds_in_a_simulation():
    """Gains are sums of effects of the rows that were drawn, so the true variance of their mean is known."""
    rng = np.random.default_rng(0)
    means, errors = [], []
    for _ in range(300):
        learning, test = rng.standard_normal((2, 400))
        gains, halves = [], []
        for _ in range(10):
            order = rng.permutation(400)
            of_test = test[order[100:300]]
            luck = learning[order[:100]].mean()
            gains.append(luck + of_test.mean())
            halves.append([luck + of_test[:100].mean(), luck + of_test[100:].mean()])
        means.append(np.mean(gains))
        errors.append(stats.error_by_overlap(np.array(gains), np.array(halves), 200 / 400, 100 / 400))
    assert np.std(means) == pytest.approx(np.sqrt(np.mean(np.square(errors))), rel=0.15)


def test_holm_and_p_values():
    np.testing.assert_allclose(stats.holm([0.01, 0.04, 0.03]), [0.03, 0.06, 0.06])
    assert stats.p_value(0.0, 0.0, 5) == 1.0
    assert stats.p_value(2.776, 1.0, 5) == pytest.approx(0.05, abs=1e-3)


def _lines(method, values, **extra):
    return {
        ("p", split, method): runs.Line(
            "p", split, method, value, 1, 1.0, 1.0, {**extra, "halves": [value] * 2}
        )
        for split, value in enumerate(values)
    }


def test_gains_shares_bias_and_intervals():
    facts = {
        "greater_is_better": False, "n_train": 50, "n_val": 50, "n_test": 100,
        "learning_pool": 1000, "test_pool": 1000, "metric": "error", "kind": "decisions", "model": "ridge",
    }  # fmt: skip
    lines = {
        **_lines("unweighted", [1.0, 1.1, 0.9], **facts),
        **_lines("threshold", [0.9, 1.0, 0.81]),
        **_lines("moew", [0.5, 0.61, 0.4], honest=0.4, gain_interval=[0.4, 0.495]),
        **_lines("achievable", [1.0, 1.01, 0.99]),
    }
    results = stats.Results(lines, "overlap", simple=methods.SIMPLE)
    assert results.difference("p", "moew").mean == pytest.approx((0.5 + 0.49 + 0.5) / 3)
    assert results.share("p", "moew") == pytest.approx((0.5 + 0.49 + 0.5) / 3)
    assert results.best_simple("p") == "threshold"
    assert results.verdicts(["p"], "moew", results.best_simple) == {"p": 1}
    off = np.array([0.1, 0.21, 0.0])  # the honest error is lower than the test error: it promises too much
    assert results.honest_bias("p", "moew") == pytest.approx(off.mean() / off.std(ddof=1))
    held, width = results.intervals("p", "moew")
    assert held == pytest.approx(1 / 3) and width == pytest.approx(0.095)
    gains = results.honest_gains("p", "moew")
    np.testing.assert_allclose(gains.test, [0.5, 0.49, 0.5])
    np.testing.assert_allclose(gains.honest, 0.4475)
    assert gains.held.tolist() == [False, True, False] and gains.has_width.all()


def test_the_size_bias_of_test_rows_is_taken_from_their_halves():
    """An error of 0.5 that is 0.6 on half the rows is biased by 0.1, and is 0.4 on many."""
    facts = {"greater_is_better": False}
    lines = {
        **_lines("unweighted", [1.0, 1.2], **facts),
        **_lines("moew", [0.5, 0.8], honest=0.45, gain_interval=[0.5, 0.5]),
    }
    for key in [("p", 0, "moew"), ("p", 1, "moew")]:
        lines[key].extra["halves"] = [lines[key].value, lines[key].value + 0.2]
    results = stats.Results(lines)
    np.testing.assert_allclose(results.honest_gains("p", "moew").size_bias, -0.1)
    off = np.array([0.05, 0.35]) - 0.1
    found = results.honest_bias("p", "moew", without_size_bias=True)
    assert found == pytest.approx(off.mean() / off.std(ddof=1))
    assert not results.honest_gains("p", "moew").has_width.any()


def test_means_over_problems():
    mean, margin = stats.over_problems([1.0, math.nan, 3.0])
    assert mean == 2.0 and margin == pytest.approx(12.706 * 1.0, rel=1e-3)  # t(0.975, 1) times √2 / √2
    assert math.isnan(stats.over_problems([])[0]) and math.isnan(stats.over_problems([1.0])[1])


# The page


def test_the_page_ends_with_the_tables_of_the_raw_numbers():
    names = [problem.name for problem in problems.UNTOUCHED]
    every = runs.read_lines(ROOT / rivals.BENCHMARK.out / "results.csv")
    lines = {key: line for key, line in every.items() if key[0] in names}
    page = (ROOT / "docs/rivals.md").read_text(encoding="utf-8")
    assert page.partition(runs.HEADING)[2] == rivals_tables.tables(lines, names, "overlap") + "\n"


def test_figures_elsewhere_are_those_of_the_page():
    """Shares in the README's table, and how many searches ended with example weights."""
    page = (ROOT / "docs/rivals.md").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shares = re.findall(r"-?\d+ % ± \d+", readme)
    assert len(shares) >= 6 and all(share in page for share in shares)
    searches, ended = re.search(r"\| of (\d+) searches .*?\| example weights \| (\d+)", page, re.S).groups()
    for text in (readme, (ROOT / "docs/when-weights-cannot-help.md").read_text(encoding="utf-8")):
        assert f"{ended} of {searches} searches" in " ".join(text.split())
