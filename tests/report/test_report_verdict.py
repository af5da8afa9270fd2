"""What the page says of the model that is handed out, of repeats, and of decisions that change."""

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

from moew import ExampleWeightSearch, make_metric
from moew.inspection import changed_decisions
from moew.report import advice, collect, render, told
from moew.report._charts import intervals
from moew.report._plain import in_words, model_name
from moew.search import Row


def data_of(name, guard=True, **more):
    search, rows = getattr(searches, name)(guard=guard)
    return collect(search, rows.X, rows.y, X_val=rows.X_val, y_val=rows.y_val, **more)


def with_methods(comparison, **tests):
    """The comparison with the test scores of some methods changed, or methods added."""
    rows = [replace(row, test=tests.pop(row.method, row.test)) for row in comparison.rows]
    extra = [Row(name.replace("_", " "), 13, test, test, test) for name, test in tests.items()]
    return replace(comparison, rows=(*extra, *rows))


def words_of(page):
    return re.sub(
        r"\s+", " ", re.sub(r"<style>.*?</style>|<script>.*?</script>|<[^>]+>", " ", page, flags=re.DOTALL)
    )


def test_with_a_comparison_the_verdict_stays_about_what_is_handed_out():
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
    assert shown.index("Yes: tuned decisions") < shown.index("repeated 6 times") < shown.index("All ways to")


def test_headline_and_table_have_the_same_numbers():
    search, rows = searches.multiclass(guard=True)
    test = {"X_test": rows.X_val[:90], "y_test": rows.y_val[:90]}
    data = collect(search, rows.X, rows.y, **test, comparison=searches.comparison_of(0.1, 0.02, False))
    page = render(data)
    cells = re.search(r'<table id="scores-table".*?</table>', page, re.DOTALL)[0]
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
    remarkable = with_methods(plain, random=moew + 0.0, class_weights=moew + 0.0, tuned_decisions=moew + 0.0)
    said = words(told(data_of("multiclass", comparison=remarkable)))
    assert "Random weights, the best of as many models, did as well" in said
    assert "as far as can be told: class weights." in said  # tuned decisions are what is handed out
    better = with_methods(plain, class_weights=moew - 0.05)  # smaller is better
    said = words(told(data_of("multiclass", comparison=better)))
    assert "Class weights alone, with as many models, did better in the repeats" in said
    lost = with_methods(searches.comparison_of(-0.1, 0.01, False), random=np.full(6, 0.6))
    assert "Random weights" not in words(told(data_of("multiclass", comparison=lost)))


def test_changes_are_those_of_the_two_models():
    search, rows = searches.multiclass(guard=True)
    X, y = rows.X_val, rows.y_val
    before = LogisticRegression().fit(rows.X, rows.y).predict(X)
    after = search.predict(X)
    found = changed_decisions(search.fitted_, rows.X, rows.y, X_test=X, y_test=y)
    assert (found.seen_on, found.n_rows, found.n_changed) == ("test", len(y), (before != after).sum())
    assert found.n_right == ((before != y) & (after == y)).sum() > 0
    assert found.n_wrong == ((before == y) & (after != y)).sum() > 0
    for i in range(3):
        for j in range(3):
            assert found.counts[i, j] == ((before == i) & (after == j)).sum()
    assert found.right.sum() == found.n_right and found.wrong.sum() == found.n_wrong
    data = collect(search, rows.X, rows.y, X_test=X, y_test=y)
    words = words_of(render(data))
    assert f"Of {len(y)} test rows, {found.n_changed} are decided otherwise" in words
    assert f"{found.n_right} become right, {found.n_wrong} become wrong" in words
    assert 'id="matrix-table"' in render(data) and 'id="changes-table"' in render(data)


@pytest.mark.parametrize("name", ["multiclass", "binary", "regression"])
def test_without_test_rows_changes_are_those_of_the_recorded_predictions(name):
    search, rows = getattr(searches, name)(guard=False)
    found = changed_decisions(search.fitted_, rows.X, rows.y)
    result = search.result_
    assert (found.seen_on, found.n_rows) == ("judged", result.n_validation + result.n_out_of_fold)
    judged = search.fitted_.judged
    metric = search.fitted_.evaluator.metric
    if name == "multiclass":  # the metric of the recorded decisions is the recorded score
        assert metric(judged.y, judged.after) == pytest.approx(search.best_score_)
        assert metric(judged.y, judged.before) == pytest.approx(result.unweighted_score)
    if name == "regression":
        nearer = np.abs(judged.after - judged.y) < np.abs(judged.before - judged.y)
        assert found.n_right == nearer.sum() and found.counts is None
        assert "nearer to the target" in words_of(render(collect(search, rows.X, rows.y)))
    without = replace(search.fitted_, judged=None)  # as after loading
    on_validation = changed_decisions(without, rows.X, rows.y, rows.X_val, rows.y_val)
    assert (on_validation.seen_on, on_validation.n_rows) == ("validation", len(rows.y_val))
    assert changed_decisions(replace(without, unweighted=None), rows.X, rows.y) is None


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
    assert "none is decided otherwise" in same and 'id="changes-table"' not in same
    assert 'id="changes"' not in render({**data, "changes": None})


def test_the_title_names_data_model_day_and_metric():
    data = data_of("multiclass", data_name="rides <2026>.csv", date=date(2026, 3, 9))
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
    search = ExampleWeightSearch(
        LogisticRegression(), metric=metric, embedding="label", n_batches=1, batch_size=2, random_state=0
    ).fit(rows.X, rows.y, X_val=rows.X_val, y_val=rows.y_val)
    page = render(collect(search, rows.X, rows.y))
    assert "<b>money lost per day</b>: What wrong decisions cost, in euros &lt;a day&gt;.</p>" in page
    assert "e+0" not in words_of(page) and "e+0" not in str(search.result_)


def test_an_arrow_points_to_the_better_scores():
    rows = [{"name": "moew", "value": 0.9, "margin": 0.3, "best": None, "style": "a"}]
    assert "loss, better →" in intervals("x", "Scores", "loss", rows)
    assert "← better, loss" in intervals("x", "Scores", "loss", rows, greater_is_better=False)
    lower, higher = render(data_of("multiclass")), render(data_of("binary"))
    assert "↓ better" in lower and "↑ better" not in lower
    assert "↑ better" in higher and "↓ better" not in higher


def test_axes_are_named_after_classes_and_columns():
    assert "class 0" in data_of("multiclass")["landscape"]["names"]
    names = data_of("binary")["landscape"]["names"]
    assert set(names) <= {"column 0", "column 1", "class 1"}
    assert data_of("regression")["landscape"]["names"] == ["α1"]  # a function's dimensions have no names
    assert f"{names[0]} →" in render(data_of("binary"))


@pytest.mark.parametrize("name", ["multiclass", "binary", "regression"])
@pytest.mark.parametrize("guard", [True, False])
def test_there_is_no_jargon_before_the_settings(name, guard):
    page = words_of(render(data_of(name, guard, comparison=searches.comparison_of(0.1))))
    page = page[: page.index("Settings and data")].lower()
    for word in ("uneven", "domain", "baseline", "alpha = 0", "gaussian process", "label", "uniform"):
        assert word not in page
