"""The report: what it says, that it is plain JSON before it is a page, and that no text gets out of it."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import searches
from hypothesis import example, given
from hypothesis import strategies as st
from problems import mixed_frame, shifted_classes
from scipy.sparse import csr_array
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, Ridge

from moew import MetricSearch
from moew.data import Rows
from moew.decision import (
    AdjustedPredictions,
    ClassOffsets,
    EqualFalsePositiveRates,
    GroupThresholds,
    TunedThreshold,
)
from moew.exceptions import InvalidInputError
from moew.inspection import Tested as OnTestRows
from moew.metrics import make_metric, worst_class_error
from moew.report import About, advice, collect, render, write_report
from moew.report._collect import verdict_of
from moew.report._plain import setting_text
from moew.report._svg import Scale
from moew.report._words import alike

PLOTS = ("gain", "differences", "history", "landscape")
NASTY = "<script>alert('x')</script>\"&'><img src=x onerror=alert(1)>"


class Page(HTMLParser):
    """Tags with their attributes, the words on the page, and the words of scripts."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.words, self.script, self.ids = [], "", "", []
        self.open = []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in ("meta", "link", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.script += data
        elif not (self.open and self.open[-1] == "style"):
            self.words += data

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


def collected(name, strategies="auto", **more):
    """Collected from a search that selects a simple strategy; or from one with these strategies."""
    all_of_them = strategies == "auto"
    search, rows = searches.simple(name) if all_of_them else getattr(searches, name)(strategies=strategies)
    if name == "frame":
        return collect(search, Rows(*rows), **more)
    return collect(search, Rows(rows.X, rows.y), validation=Rows(rows.X_val, rows.y_val), **more)


@pytest.mark.parametrize("strategies", ["auto", "example weights"])
@pytest.mark.parametrize("name", ["binary", "multiclass", "regression", "frame"])
def test_a_report_is_json_and_then_a_whole_page(name, strategies):
    data = collected(name, strategies)
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    html = render(json.loads(json.dumps(data)))
    assert html == render(data)
    assert len(html.encode()) < 1_000_000
    page = Page(html)
    assert len(page.ids) == len(set(page.ids))
    learned = data["weights"]["learned"]
    assert learned is (strategies == "example weights")
    of_weights = {"by-label", "histogram", "rows-up", "rows-down", "labels-table"}
    assert (set(PLOTS) | of_weights if learned else set(PLOTS)) - {"gain"} <= set(page.ids)
    if not learned:
        assert set(page.ids).isdisjoint({"histogram", "rows-up", "rows-down", "slices"})
        assert data["rows"] is None and data["slices"] is None  # what is not shown is not passed on
        assert "every row counts the same. Example weights" in page.words
    for plot in page.all("svg"):
        named = plot["aria-labelledby"].split()
        assert set(named) <= set(page.ids)
    assert "strategies-table" in page.ids
    heads = [attributes for tag, attributes in page.tags if tag == "th"]
    assert len(page.all("button")) == len(heads)
    for words in ("Fingerprint of the data", "random_state", data["metric"]["evaluation"]):
        assert words in page.words
    assert ("rows of equal weight" in page.words) is learned
    assert ("Notes" in page.words) is bool(data["notes"])


def test_nothing_comes_from_outside_and_the_policy_says_so():
    html = render(collected("binary"))
    page = Page(html)
    (policy,) = (meta["content"] for meta in page.all("meta") if "Content-Security-Policy" in meta.values())
    assert policy.startswith("default-src 'none'")
    style = re.search(r"<style>(.*?)</style>", html, re.DOTALL)[1]
    for text in (style, page.script):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    for _, attributes in page.tags:
        assert "style" not in attributes
        for name in ("src", "href"):
            assert attributes.get(name, "#").startswith(("#", "data:"))
    assert "url(" not in style
    assert "@import" not in style


def test_the_verdict_is_first_and_from_honest_scores():
    search, _ = searches.simple("multiclass")
    data = collected("multiclass")
    verdict = data["verdict"]
    gain = search.result_.unweighted.value - search.honest_score_  # smaller is better
    assert verdict["gain"] == pytest.approx(gain)
    assert verdict["high"] - gain == pytest.approx(1.96 * search.result_.gain_error)
    assert verdict["kind"] == "better"
    words = Page(render(data)).words
    assert words.index("Yes: tuned decisions.") < words.rindex("All strategies")
    assert "lower is better" in words
    assert "Tuned decisions have the best honest score; the next best, " in words


def test_every_strategy_is_in_the_table_and_what_is_selected_is_marked():
    result = searches.simple("multiclass")[0].result_
    data = collected("multiclass")
    selected = next(strategy for strategy in result.strategies if strategy.name == result.selected)
    for found, strategy in zip(data["strategies"], result.strategies, strict=True):
        assert (found["name"], found["apparent"], found["honest"]) == (
            strategy.name,
            strategy.apparent,
            strategy.honest,
        )
        assert found["selected"] is (strategy.name == "tuned decisions")
        assert found["difference"] == pytest.approx(selected.honest - strategy.honest)  # smaller is better
        assert found["margin"] == pytest.approx(1.96 * strategy.error)
    html = render(data)
    marked = re.findall(r'<tr class="marked">(.*?)</tr>', html)
    assert len(marked) == 1 and "✓ tuned decisions" in marked[0] and "selected" in marked[0]
    assert all(f">{strategy.name}<" in html for strategy in result.strategies)


def test_what_the_unweighted_model_scores_is_not_a_gain():
    data = collected("binary")
    assert data["selected"]["name"] == "unweighted"
    assert (data["verdict"]["kind"], data["verdict"]["gain"]) == ("none", 0)
    page = Page(render(data))
    assert "No: keep the unweighted model." in page.words and "gain" not in page.ids
    assert data["search"]["shift_alone"] == searches.simple("binary")[0].result_.alpha_zero.value


def test_advice_follows_from_the_strategies():
    data = collected("multiclass")
    assert advice(data).startswith("Use it: the model is the same, only with other thresholds.")
    strategies = [
        {**strategy, "difference": 0.02} if not strategy["simple"] else strategy
        for strategy in data["strategies"]
    ]
    assert "Example weights may be better still (+0.020 ±" in advice({**data, "strategies": strategies})
    none = {**data, "strategies": strategies, "verdict": {**data["verdict"], "kind": "none"}}
    assert "Keep the unweighted model for now. Example weights may be better" in advice(none)
    constant = {**data, "selected": {**data["selected"], "name": "constant prediction"}}
    assert advice(constant).startswith("Look at the metric before you use this")
    learned = collected("multiclass", strategies="example weights")
    assert advice(learned).startswith("Use it, after a look at which rows lose weight.")
    strategies = [
        {**strategy, "difference": 0.03} if strategy["name"] == "tuned decisions" else strategy
        for strategy in learned["strategies"]
    ]
    told = advice({**learned, "strategies": strategies})
    assert "Tuned decisions are simpler, and are ahead by 0.030 ±" in told
    worse = {**learned, "strategies": strategies, "verdict": {**learned["verdict"], "kind": "worse"}}
    assert advice(worse).startswith("Let simpler strategies win, too: tuned decisions are ahead by 0.03")


def with_rule(name, rule, **more):
    """The words on the decision of a page whose search selects this rule."""
    search, rows = searches.simple(name)
    fitted = replace(search.fitted_, winner=replace(search.fitted_.winner, rule=rule), **more)
    html = render(collect(fitted, Rows(rows.X, rows.y)))
    return Page(re.search(r'<section id="decision">.*?</section>', html)[0]).words


def test_tuned_decisions_are_told_in_words():
    yes = "a row is decided “1” where its score lies above"
    assert f"{yes} −0.4, where the model itself would take 0; so more rows are." in with_rule(
        "binary", TunedThreshold(-0.4)
    )
    assert f"{yes} 0.3, where the model itself would take 0; so fewer rows" in with_rule(
        "binary", TunedThreshold(0.3)
    )
    assert "nothing better than the model's own threshold, 0." in with_rule("binary", TunedThreshold(0.0))
    assert "every row is decided “1”" in with_rule("binary", TunedThreshold(-np.inf))
    assert "no row is decided “1”" in with_rule("binary", TunedThreshold(np.inf))
    by_group = GroupThresholds("region", (("north", 0.25), ("south", np.inf)), 0.1)
    words = with_rule("binary", by_group)
    assert all(part in words for part in ("threshold of its region", "north", "0.25", "inf", "all others"))
    words = with_rule("multiclass", ClassOffsets((0.0, 0.5, -1.0)))
    assert "the highest sum of score and offset" in words and "−1" in words
    assert "the prediction is 0.5 + 1.2 · ŷ." in with_rule("regression", AdjustedPredictions(0.5, 1.2))
    assert "the prediction is 1 · ŷ^1.2." in with_rule("regression", AdjustedPredictions(0.0, 1.2, True))
    assert "stay as they are" in with_rule("regression", AdjustedPredictions())


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_a_constant_is_told(task):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 2))
    y = (rng.random(200) < 0.9).astype(int) if task == "classification" else rng.standard_normal(200)
    metric = make_metric(lambda y, decided: -float(np.mean(np.abs(np.asarray(decided, float) - 1))))
    model = LogisticRegression() if task == "classification" else Ridge()
    search = MetricSearch.from_settings(model, metric=metric, embedding="label", **searches.SETTINGS).fit(
        X, y
    )
    fitted = search.fitted_
    if search.selected_ != "constant prediction":  # the unweighted model may be one, too
        dummy = DummyClassifier if task == "classification" else DummyRegressor
        winner = replace(fitted.winner, model=dummy(strategy="constant", constant=1).fit(X, y), rule=None)
        fitted = replace(fitted, winner=winner, result=replace(fitted.result, selected="constant prediction"))
    words = Page(render(collect(fitted, Rows(X, y)))).words
    assert ("Every row is decided “1”" if task == "classification" else "Every row is predicted") in words
    assert "every row counts the same" in words


@pytest.mark.parametrize(
    ("gain", "noise", "kind", "headline"),
    [
        (0.1, 0.01, "better", "Yes: example weights."),
        (0.01, 0.1, "maybe", "Perhaps: example weights, but that is not certain."),
        (-0.01, 0.1, "no", "No: example weights are not better."),
        (-0.1, 0.01, "worse", "No: example weights are worse."),
    ],
)
@pytest.mark.parametrize("greater_is_better", [True, False])
def test_test_rows_are_the_stronger_evidence(gain, noise, kind, headline, greater_is_better):
    search, _ = searches.binary(strategies="example weights")
    result = replace(search.result_, greater_is_better=greater_is_better)
    after = 0.5 + gain if greater_is_better else 0.5 - gain
    verdict = verdict_of(result, OnTestRows(480, 0.5, after, noise), 1)
    assert verdict.evidence == "test"
    assert verdict.gain == pytest.approx(gain)
    assert verdict.kind == kind
    data = {
        **collected("binary", strategies="example weights"),
        "verdict": vars(verdict),
        "tested": {"n_rows": 480},
    }
    assert headline in Page(render(data)).words


def test_a_comparison_is_shown_with_its_intervals():
    comparison = searches.comparison_of(0.1)
    data = collected("binary", strategies="example weights", comparison=comparison)
    page = Page(render(data))
    assert "tested" in page.ids
    assert "comparison-table" in page.ids
    assert "a <note>" in page.words
    assert data["comparison"]["methods"]["moew"]["margin"] == pytest.approx(comparison["moew"].margin)
    unknown = collected(
        "binary", strategies="example weights", comparison=replace(comparison, test_rows_margin=float("nan"))
    )
    assert unknown["comparison"]["test_rows_margin"] is None
    assert unknown["repeats"]["half"] is None  # what is not known is not certain
    assert unknown["repeats"]["kind"] == "maybe"
    Page(render(unknown))


def test_honest_words_where_it_is_not_better_or_cannot_be_told():
    search, rows = searches.binary(strategies="example weights", final="best")
    result = replace(search.result_, honest=replace(search.result_.honest, apparent=0.9))
    worse = replace(result, honest=replace(result.honest, value=0.5), gain_error=0.001)
    assert verdict_of(worse, None, 1).kind == "no"  # it did score better here
    below = replace(worse, honest=replace(worse.honest, apparent=0.4))
    assert verdict_of(below, None, 1).kind == "worse"
    first = replace(result, best_number=0, alpha_zero_is_unweighted=True)
    assert verdict_of(first, None, 1).kind == "none"
    assert verdict_of(replace(result, selected="unweighted"), None, 1).kind == "none"
    several = tuple(
        replace(strategy, n_members=2) for strategy in first.strategies
    )  # an ensemble has others, too
    assert verdict_of(replace(first, strategies=several), None, 1).kind != "none"
    shifted = replace(first, alpha_zero_is_unweighted=False)  # π alone may be better than no weights
    assert verdict_of(shifted, None, 1).kind != "none"
    unsure = replace(result, honest=replace(result.honest, value=0.9), gain_error=float("nan"))
    assert verdict_of(unsure, None, 1).kind == "maybe"
    settings = {
        "embedding": "label",
        "honest": None,
        "strategies": "example weights",
        "final": "best",
        **searches.SETTINGS,
    }
    search = MetricSearch.from_settings(LogisticRegression(), **settings)
    search.fit(rows.X, rows.y, validation=(rows.X_val, rows.y_val))
    other = replace(search.fitted_, result=replace(search.result_, best_number=3))
    data = collect(other, Rows(rows.X, rows.y))
    assert data["verdict"]["kind"] == "unknown"
    words = Page(render(data)).words
    assert "This cannot be told." in words
    assert "asked for no honest score" in words
    assert "Ask for an honest score" in words
    zero = replace(search.result_, selected="example weights", best_number=0, alpha_zero_is_unweighted=True)
    words = Page(render(collect(replace(search.fitted_, result=zero), Rows(rows.X, rows.y)))).words
    assert "No: keep the unweighted model." in words


def test_two_models_on_test_rows_are_evidence():
    search, rows = searches.simple("multiclass")
    test = Rows(rows.X_val[:90], rows.y_val[:90])
    data = collect(search, Rows(rows.X, rows.y), test=test)
    found, verdict = data["tested"], data["verdict"]
    plain = LogisticRegression().fit(rows.X, rows.y).predict(test.X)
    assert found["n_rows"] == 90
    assert found["moew"] == search.metric_value(test.X, test.y)
    assert found["unweighted"] == worst_class_error()(test.y, plain)
    told = verdict["evidence"], verdict["before"], verdict["after"]
    assert told == ("test", found["unweighted"], found["moew"])
    words = Page(render(data)).words
    assert "From 90 test rows that no choice was made on." in words and "test: on 90 test rows" in words


def test_rows_set_aside_are_counted():
    rows = shifted_classes(300)
    search = MetricSearch.from_settings(
        LogisticRegression(),
        embedding="label",
        honest="holdout",
        strategies="example weights",
        **searches.SETTINGS,
    ).fit(rows.X, rows.y, validation=(rows.X_val, rows.y_val))
    result = search.result_
    assert result.n_validation + result.n_holdout == len(rows.y_val)
    words = Page(render(collect(search, Rows(rows.X, rows.y)))).words
    assert f"From {result.n_holdout} rows set aside" in words
    assert f"Only {result.n_holdout} rows were set aside" in words
    assert "honest score with its 95 % interval" not in words  # one score has none, the gain has


@pytest.mark.parametrize("kind", ["better", "maybe", "no", "worse", "none", "unknown"])
@pytest.mark.parametrize("missing", [False, True])
def test_every_verdict_has_its_words(kind, missing):
    data = collected("multiclass")
    verdict = {**data["verdict"], "kind": kind}
    if missing:
        verdict |= {"low": None, "high": None}
    page = Page(render({**data, "verdict": verdict}))
    assert ("gain" in page.ids) is not missing
    assert "Keep" in page.words or "Use" in page.words or "Before" in page.words or "Give" in page.words


def test_models_that_decide_alike_are_said_to():
    data = collected("multiclass")
    same = {
        **data["verdict"],
        "kind": "no",
        "before": 0.25,
        "after": 0.25,
        "gain": 0.0,
        "low": 0.0,
        "high": 0.0,
    }
    words = Page(render({**data, "verdict": same})).words
    assert "Both score the same" in words and "0 %)" not in words


def test_weights_are_cut_by_columns_and_by_what_else_is_given():
    search, (X, y) = searches.frame(strategies="example weights")
    region = np.where(np.arange(len(y)) % 2, "east", "west")
    data = collect(search, Rows(X, y), columns={"region": region}, row_ids=[f"r{i}" for i in range(len(y))])
    columns = [entry["column"] for entry in data["slices"]]
    assert columns[0] == "region"  # the user asked for it
    assert {"number", "kind"} <= set(columns)
    kind = next(entry for entry in data["slices"] if entry["column"] == "kind")
    trained = X.iloc[search.training_rows_]
    expected = search.sample_weight_[(trained["kind"] == "c").to_numpy()].mean()
    assert next(s for s in kind["slices"] if s["name"] == "c")["mean_weight"] == pytest.approx(expected)
    top = data["rows"]["up"]["rows"][0]
    best = search.training_rows_[np.argmax(search.sample_weight_)]
    assert top["id"] == f"r{best}"
    assert top["label"] == y[best]
    assert top["cells"][0] == region[best]
    assert top["weight"] == search.sample_weight_.max()
    assert data["rows"]["down"]["rows"][0]["weight"] == search.sample_weight_.min()


def test_rows_are_called_by_the_index_of_a_frame():
    search, (X, y) = searches.frame(strategies="example weights")
    renamed = X.set_axis([f"name {i}" for i in range(len(X))])
    data = collect(search, Rows(renamed, y))
    assert all(row["id"].startswith("name ") for row in data["rows"]["up"]["rows"])


def test_thresholds_effective_size_and_settings_are_told():
    search, _ = searches.binary(strategies="example weights")
    data = collected("binary", strategies="example weights")
    assert data["decision"]["rows"] == [["all rows", search.decision_.threshold_]]
    weights = search.sample_weight_
    assert data["weights"]["effective"] == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    assert sum(data["weights"]["counts"]) == len(weights)
    assert ["decision", "MostAccurate(on='validation')"] in data["settings"]
    words = Page(render(data)).words
    assert "Decision thresholds" in words
    other = collected(
        "binary", strategies="example weights", about=About(settings={"model": "logistic", "budget": 7})
    )
    assert other["settings"] == [["model", "logistic"], ["budget", "7"]]
    changed = searches.binary(strategies="example weights")[1]
    print_of = collect(search, Rows(changed.X + 1e-9, changed.y))["data"]["fingerprint"]
    assert print_of != data["data"]["fingerprint"]


def test_thresholds_by_group_are_listed():
    X, y = mixed_frame(240)
    rule = EqualFalsePositiveRates(0.4, group="group")
    model = HistGradientBoostingClassifier(max_iter=5, categorical_features="from_dtype")
    settings = {"embedding": "label", "decision": rule, "evaluate_on": 0.2, **searches.SETTINGS}
    search = MetricSearch.from_settings(model, **settings).fit(X, y)
    data = collect(search, Rows(X, y))
    assert [group for group, _ in data["decision"]["rows"]] == ["north", "south"]
    assert data["labels"]["groups"][0]["unweighted_error"] is not None
    assert "south" in Page(render(data)).words


def test_rows_may_be_sparse_or_lists_with_columns_of_any_kind():
    rows = shifted_classes(120)
    days = np.datetime64("2024-01-01", "ns") + np.arange(len(rows.y)).astype("timedelta64[D]")
    for X in (csr_array(rows.X), rows.X.tolist()):
        settings = {"embedding": "label", "strategies": "example weights", **searches.SETTINGS}
        search = MetricSearch.from_settings(LogisticRegression(), **settings)
        search.fit(X, rows.y.tolist())
        data = collect(search, Rows(X, rows.y.tolist()), columns={"day": days, "object": [{}, None] * 63})
        assert json.loads(json.dumps(data, allow_nan=False)) == data
        day = data["rows"]["up"]["rows"][0]["cells"][data["rows"]["columns"].index("day")]
        assert day.startswith("2024-")
        Page(render(data))


def test_settings_hold_no_passwords_and_no_addresses():
    assert setting_text("postgresql+psycopg://me:s3cret@host/db") == "postgresql+psycopg://me:***@host/db"
    assert setting_text(test_settings_hold_no_passwords_and_no_addresses).endswith(
        "test_settings_hold_no_passwords_and_no_addresses"
    )
    assert "0x" not in setting_text(object())
    assert len(setting_text("x" * 10_000)) == 400


@pytest.mark.parametrize(
    ("setting", "shown"),
    [
        (Path("/home/me/data/train.csv"), "train.csv"),
        ("/home/me/My Files/train.csv", "train.csv"),
        (r"C:\Users\me\train.csv", "train.csv"),
        ("sqlite:////home/me/runs/x.db", "sqlite:///x.db"),
        ("/usr/bin/python /home/me/score.py {predictions}", "python score.py {predictions}"),
        (["/home/me/a.csv", "b"], "['a.csv', 'b']"),
        ("./score {predictions}", "./score {predictions}"),
        ("postgresql://host/db", "postgresql://host/db"),
        ("a/b", "a/b"),
        ("/", "/"),
    ],
)
def test_settings_name_files_without_their_folders(setting, shown):
    assert setting_text(setting) == shown


def test_few_validation_rows_and_uneven_weights_are_warned_of():
    search, (X, y) = searches.frame(evaluate_on=0.2)
    assert any("only 48 validation rows" in note for note in collect(search, Rows(X, y))["notes"])
    assert not any("there are only" in note for note in collected("frame")["notes"])  # 240 out of fold
    search, rows = searches.multiclass(strategies="example weights")
    uneven = np.where(np.arange(len(search.sample_weight_)) < 5, 10.0, 0.001)
    notes = collect(replace(search.fitted_, weights=uneven), Rows(rows.X, rows.y))["notes"]
    assert any("differ so much" in note for note in notes)


@given(st.text(min_size=1, max_size=60), st.text(max_size=60))
def test_no_text_from_data_becomes_markup(name, value):
    data = collected_once()
    plain = Page(render(data))
    column = {**data["slices"][0], "column": name}
    column["slices"] = [{**column["slices"][0], "name": value}]
    groups = [{**data["labels"]["groups"][0], "name": value}]
    examples = {"rows": [{"id": value, "label": name, "weight": 1.0, "cells": [value]}], "n_alike": 1}
    dirty = {
        **data,
        "metric": {**data["metric"], "name": name},
        "settings": [[name, value]],
        "notes": [value],
        "slices": [column],
        "labels": {**data["labels"], "groups": groups},
        "rows": {"columns": [name], "up": examples, "down": examples},
    }
    page = Page(render(dirty))
    assert {tag for tag, _ in page.tags} <= {tag for tag, _ in plain.tags} | {"ul", "li"}
    assert page.script == plain.script
    allowed = {attribute for _, attributes in plain.tags for attribute in attributes}
    assert {attribute for _, attributes in page.tags for attribute in attributes} <= allowed


@cache
def collected_once():
    return {
        **collected("multiclass", strategies="example weights"),
        "landscape": None,
    }  # its thousands of tiles are slow to read


def test_nasty_names_from_the_start_to_the_page():
    search, (X, y) = searches.frame()
    dirty = {NASTY: np.where(np.arange(len(y)) % 2, NASTY, "fine"), "\ud800half": np.arange(len(y))}
    data = collect(
        search, Rows(X, y), columns=dirty, row_ids=[NASTY] * len(y), about=About(settings={NASTY: NASTY})
    )
    html = render(data)
    html.encode("utf-8")
    page = Page(html)
    assert not page.all("img")
    assert len(page.all("script")) == 1
    assert NASTY in page.words


def test_wrong_rows_are_refused_before_anything_is_made(tmp_path):
    search, rows = searches.binary()
    with pytest.raises(InvalidInputError, match="row_ids must have a value for each"):
        collect(search, Rows(rows.X, rows.y), row_ids=[1, 2])
    with pytest.raises(InvalidInputError, match="the column 'a' must have a value"):
        collect(search, Rows(rows.X, rows.y), columns={"a": [1, 2]})
    with pytest.raises(InvalidInputError, match="rows that the search was fitted with"):
        write_report(search, rows.X[:5], rows.y[:5], tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()
    with pytest.raises(InvalidInputError, match="of format 5; got 99"):
        render({"format": 99})


def test_a_report_is_written_to_a_file(tmp_path):
    search, rows = searches.simple("regression")
    path = write_report(search, rows.X, rows.y, tmp_path / "new" / "report.html")
    assert path.read_text(encoding="utf-8") == render(collect(search, Rows(rows.X, rows.y)))


@pytest.mark.heavy
def test_many_columns_and_classes_stay_small():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((900, 600)), np.arange(900) % 300
    search = MetricSearch.from_settings(
        LogisticRegression(max_iter=2),
        embedding="label",
        n_candidates=1,
        batch_size=1,
        random_state=0,
        evaluate_on=0.34,
        strategies="example weights",
        honest=None,
    )
    with pytest.warns(Warning):
        search.fit(X, y)
    html = render(collect(search, Rows(X, y)))
    assert len(html.encode()) < 1_000_000
    assert "Only the first 500 of 600 columns" in Page(html).words
    assert "The first 200 of 300." in Page(html).words


@example(low=99199.0, width=1001.0)
@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_ticks_are_round_within_and_told_apart(low, width):
    scale = Scale(low, low + width, 0, 100)
    ticks = scale.ticks()
    if width > 1e-6 * abs(low):
        assert 2 <= len(ticks) <= 8
        if width > 1e-3 * abs(low):
            assert len({words for _, words in ticks}) == len(ticks)
    for value, _ in ticks:
        slack = 1e-6 * width + 2 * np.spacing(abs(value))
        assert scale.low - slack <= value <= scale.high + slack


def test_numbers_side_by_side_have_as_many_decimals():
    assert alike([0.3, 0.24921, None]) == ["0.3000", "0.2492", "–"]
    assert alike([1234.5678, -2.0]) == ["1,235", "−2"]
    assert alike([3.0, 12.0]) == ["3", "12"]
    assert alike([1e-9, 2e-9]) == ["1e−09", "2e−09"]
