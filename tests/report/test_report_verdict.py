"""What the page says of the selected model, of repeats, and of decisions that change."""

import re
from dataclasses import replace
from datetime import date
from functools import partial

import numpy as np
import pytest
import searches
from problems import shifted_classes
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from moew import MetricSearch, make_metric
from moew.data import Rows
from moew.inspection import changed_decisions
from moew.report import About, advice, collect, render, told
from moew.report._plain import in_words, model_name
from moew.report._record import from_json
from moew.report._words import why
from moew.search import Row


def data_of(name, strategies="auto", **more):
    all_of_them = strategies == "auto"
    search, rows = searches.simple(name) if all_of_them else getattr(searches, name)(strategies=strategies)
    return collect(search, Rows(rows.X, rows.y), validation=Rows(rows.X_val, rows.y_val), **more)


def with_methods(comparison, **tests):
    """The comparison with the test scores of some methods changed, or methods added."""
    rows = [replace(row, test=tests.pop(row.method, row.test)) for row in comparison.rows]
    extra = [Row(name.replace("_", " "), 13, test, test, test) for name, test in tests.items()]
    return replace(comparison, rows=(*extra, *rows))


def words_of(page):
    return re.sub(
        r"\s+", " ", re.sub(r"<style>.*?</style>|<script>.*?</script>|<[^>]+>", " ", page, flags=re.DOTALL)
    )


def test_with_a_comparison_the_verdict_stays_about_what_is_selected():
    alone = data_of("multiclass")
    lost = searches.comparison_of(-0.3, greater_is_better=False)
    data = data_of("multiclass", comparison=lost)
    assert data["verdict"] == alone["verdict"]
    assert told(data)[0] == told(alone)[0] == "Yes: tuned decisions."
    assert told(data)[1] == told(alone)[1]
    assert data["repeats"]["kind"] == "worse"
    assert "repeated 6 times with other seeds, gains −0.300 ± " in " ".join(told(data))
    assert "so other seeds lose" in " ".join(told(data))
    shown = words_of(render(data))
    assert (
        shown.index("Yes: tuned decisions") < shown.index("repeated 6 times") < shown.rindex("All strategies")
    )


def strategy(name, difference, margin=0.02, **more):
    simple = not name.startswith("example")
    found = {"name": name, "simple": simple, "difference": difference, "margin": margin, "honest": 0.5}
    return {**found, "apparent": 0.5, "members": 1, "selected": False, **more}


def why_of(name, *others, selects=True):
    """Why this strategy is selected, of a page with these other strategies."""
    data = {
        **data_of("multiclass"),
        "selected": {"name": name, "reason": "", "selects": selects, "members": 1, "honest": None},
    }
    return why(from_json({**data, "strategies": [strategy(name, 0.0, selected=True), *others]}))


def test_why_a_strategy_is_selected_is_told_by_the_rule():
    """The best honest score, or the simplest that is as good; a lead within chance is called that."""
    weights, tuned = strategy("example weights", -0.03), strategy("tuned decisions", -0.01)
    first = "Class weights have the best honest score; the next best, "
    assert why_of("class weights", weights) == f"{first}example weights, are behind by 0.030 ± 0.020."
    within = f"{first}tuned decisions, are behind by 0.010 ± 0.020, which is within chance."
    assert why_of("class weights", weights, tuned) == within
    unknown = why_of("class weights", strategy("tuned decisions", -0.01, None))
    assert unknown == f"{first}tuned decisions, are behind by 0.01."
    near = why_of("unweighted", strategy("tuned decisions", 0.001), weights)
    assert near == "Tuned decisions are ahead by 0.001 ± 0.020, too little to give up what is simpler."
    constant = why_of("tuned decisions", strategy("constant prediction", 0.01), weights)
    assert constant.startswith("Tuned decisions have the best honest score; the next best, example weights")
    assert constant.endswith(
        "A constant is ahead by 0.010 ± 0.020; it is selected only where it is ahead of the unweighted "
        "model beyond chance."
    )
    assert why_of("unweighted", strategy("tuned decisions", None)) == ""


def test_headline_and_table_have_the_same_numbers():
    search, rows = searches.simple("multiclass")
    test = Rows(rows.X_val[:90], rows.y_val[:90])
    compared = searches.comparison_of(0.1, 0.02, False)
    data = collect(search, Rows(rows.X, rows.y), test=test, comparison=compared)
    page = render(data)
    cells = re.search(r'<table id="strategies-table".*?</table>', page, re.DOTALL)[0]
    of_table = [float(value) for value in re.findall(r'data-value="([^"]+)"', cells)]
    assert data["verdict"]["before"] == data["tested"]["unweighted"] == of_table[0]
    assert data["verdict"]["after"] == data["tested"]["moew"]
    assert data["tested"]["moew"] in of_table


def test_advice_names_the_larger_error():
    maybe = {**data_of("multiclass")["verdict"], "kind": "maybe"}
    seeds = searches.comparison_of(0.1, 0.01, False)
    from_seeds = {
        **data_of("multiclass", comparison=replace(seeds, test_rows_margin=0.001)),
        "verdict": maybe,
    }
    assert "more validation rows or candidates: the gain differs more from seed to seed" in advice(from_seeds)
    from_rows = {**data_of("multiclass", comparison=replace(seeds, test_rows_margin=0.5)), "verdict": maybe}
    assert "get more test rows: the gain depends more on the test rows (± 0.5)" in advice(from_rows)
    # Better here, but other searches need not be.
    sure = {**from_rows, "verdict": {**maybe, "kind": "better"}}
    assert "Another search may gain less: the gain depends more on the test rows" in advice(sure)
    no = {**data_of("multiclass", comparison=seeds), "verdict": {**maybe, "kind": "no"}}
    assert "other seeds do gain on average" in advice(no)
    assert "other seeds" not in advice({**no, "repeats": None})


def test_what_is_remarkable_in_a_comparison_is_said():
    plain = searches.comparison_of(0.1, 0.01, False)
    words = partial(" ".join)
    assert "Random weights" not in words(told(data_of("multiclass", comparison=plain)))
    moew = plain["moew"].test
    remarkable = with_methods(
        plain, random_weights=moew + 0.0, class_weights=moew + 0.0, tuned_decisions=moew + 0.0
    )
    said = words(told(data_of("multiclass", comparison=remarkable)))
    assert "Random weights, the best of as many models, did as well" in said
    assert "as far as can be told: class weights." in said  # tuned decisions are the selected model
    better = with_methods(plain, class_weights=moew - 0.05)  # smaller is better
    said = words(told(data_of("multiclass", comparison=better)))
    assert "Class weights alone, with as many models, did better in the repeats" in said
    lost = with_methods(searches.comparison_of(-0.1, 0.01, False), random_weights=np.full(6, 0.6))
    assert "Random weights" not in words(told(data_of("multiclass", comparison=lost)))


def test_changes_are_those_of_the_two_models():
    search, rows = searches.simple("multiclass")
    X, y = rows.X_val, rows.y_val
    before = LogisticRegression(C=0.1).fit(rows.X, rows.y).predict(X)
    after = search.predict(X)
    found = changed_decisions(search.fitted_, Rows(rows.X, rows.y), test=Rows(X, y))
    assert (found.seen_on, found.n_rows, found.n_changed) == ("test", len(y), (before != after).sum())
    assert found.n_right == ((before != y) & (after == y)).sum() > 0
    assert found.n_wrong == ((before == y) & (after != y)).sum() > 0
    for i in range(3):
        for j in range(3):
            assert found.counts[i, j] == ((before == i) & (after == j)).sum()
    assert found.right.sum() == found.n_right and found.wrong.sum() == found.n_wrong
    data = collect(search, Rows(rows.X, rows.y), test=Rows(X, y))
    words = words_of(render(data))
    assert f"Of {len(y)} test rows, {found.n_changed} are decided differently" in words
    assert f"{found.n_right} become right, {found.n_wrong} become wrong" in words
    assert 'id="matrix-table"' in render(data) and 'id="changes-table"' in render(data)


@pytest.mark.parametrize("name", ["multiclass", "binary", "regression"])
def test_without_test_rows_changes_are_those_of_the_recorded_predictions(name):
    search, rows = getattr(searches, name)(strategies="example weights")
    found = changed_decisions(search.fitted_, Rows(rows.X, rows.y))
    result = search.result_
    assert (found.seen_on, found.n_rows) == ("evaluation", result.n_validation + result.n_out_of_fold)
    evaluated = search.fitted_.evaluation_decisions
    metric = search.fitted_.evaluator.metric
    if name == "multiclass":  # the metric of the recorded decisions is the recorded score
        assert metric(evaluated.y, evaluated.after) == pytest.approx(search.best_score_)
        assert metric(evaluated.y, evaluated.before) == pytest.approx(result.unweighted.apparent)
    if name == "regression":
        nearer = np.abs(evaluated.after - evaluated.y) < np.abs(evaluated.before - evaluated.y)
        assert found.n_right == nearer.sum() and found.counts is None
        assert "nearer to the target" in words_of(render(collect(search, Rows(rows.X, rows.y))))
    without = replace(search.fitted_, evaluation_decisions=None)  # as after loading
    on_validation = changed_decisions(without, Rows(rows.X, rows.y), Rows(rows.X_val, rows.y_val))
    assert (on_validation.seen_on, on_validation.n_rows) == ("validation", len(rows.y_val))
    assert changed_decisions(replace(without, unweighted=None), Rows(rows.X, rows.y)) is None


def test_many_classes_have_their_changes_listed():
    data = data_of("multiclass")
    n = 12
    counts = np.diag(np.full(n, 5)) + np.eye(n, k=1, dtype=int)
    changes = {
        **data["changes"],
        "classes": [f"c{k}" for k in range(n)],
        **{key: counts.tolist() for key in ("counts", "right", "wrong")},
    }
    page = render({**data, "changes": changes})
    assert 'id="changes-table"' in page and 'id="matrix-table"' not in page
    same = render({**data, "changes": {**changes, "n_changed": 0}})
    assert "no decision differs" in same and 'id="changes-table"' not in same
    assert 'id="changes"' not in render({**data, "changes": None})


def test_the_title_names_data_model_day_and_metric():
    data = data_of("multiclass", about=About("rides <2026>.csv", date(2026, 3, 9)))
    page = render(data)
    shown = "rides &lt;2026&gt;.csv"
    assert f"<title>{shown}: worst class error of LogisticRegression, 9 March 2026 – moew</title>" in page
    assert f'<p class="about">{shown} · LogisticRegression · 9 March 2026</p>' in page
    assert "The highest error rate of any class" in page
    assert data_of("multiclass")["about"]["date"] == date.today().isoformat()
    assert model_name(make_pipeline(StandardScaler(), LogisticRegression())) == "LogisticRegression"
    assert (in_words("money_lost"), in_words("a name, as given_by"), in_words("f1")) == (
        "money lost",
        "a name, as given_by",
        "f1",
    )


def test_a_metric_of_the_users_is_called_as_they_say():
    rows = shifted_classes(120)

    def per_day(y_true, decision):
        """What wrong decisions cost, in euros <a day>.

        More.
        """
        return 1000.0 * np.mean(y_true != decision)

    metric = make_metric(per_day, greater_is_better=False, name="money lost per day")
    search = MetricSearch.from_settings(
        LogisticRegression(), metric=metric, embedding="label", n_candidates=2, batch_size=2, random_state=0
    ).fit(rows.X, rows.y, validation=(rows.X_val, rows.y_val))
    page = render(collect(search, Rows(rows.X, rows.y)))
    assert "<b>money lost per day</b>: What wrong decisions cost, in euros &lt;a day&gt;.</p>" in page
    assert "e+0" not in words_of(page) and "e+0" not in str(search.result_)


def test_an_arrow_points_to_the_better_scores():
    lower, higher = (
        render(data_of(name, comparison=searches.comparison_of(0.1))) for name in ("multiclass", "binary")
    )
    assert "accuracy, better →" in higher and "← better, worst class error" in lower
    assert "↓ better" in lower and "↑ better" not in lower
    assert "↑ better" in higher and "↓ better" not in higher


def test_axes_are_named_after_classes_and_columns():
    assert set(data_of("multiclass")["landscape"]["names"]) <= {"class 0", "class 1", "class 2"}
    names = data_of("binary")["landscape"]["names"]
    assert set(names) <= {"column 0", "column 1", "class 1"}
    assert data_of("regression")["landscape"]["names"] == ["α1"]  # a function's dimensions have no names
    assert f"{names[0]} →" in render(data_of("binary"))


@pytest.mark.parametrize("name", ["multiclass", "binary", "regression"])
@pytest.mark.parametrize("strategies", ["auto", "example weights"])
def test_there_is_no_jargon_before_the_settings(name, strategies):
    page = words_of(render(data_of(name, strategies, comparison=searches.comparison_of(0.1))))
    page = page[: page.index("Settings and data")].lower()
    for word in ("uneven", "domain", "baseline", "alpha = 0", "gaussian process", "label", "uniform"):
        assert word not in page
