"""The report's sections on several metrics, the threshold and the probabilities."""

import json

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from test_report import Page

from moew import MetricSearch
from moew.data import Rows
from moew.metrics import fpr_gap
from moew.report import advice, collect, render
from moew.report._record import from_json
from moew.report._words import why

RNG = np.random.default_rng(0)
GROUP = RNG.integers(2, size=700)
X = RNG.normal(size=(700, 3))
X[:, 0] += 0.9 * GROUP
Y = (X[:, 0] + 0.5 * X[:, 1] + RNG.normal(size=700) > 0.7).astype(int)
COLUMNS = {"columns": {"group": GROUP[:400]}}
TEST = Rows(X[400:], Y[400:], columns={"group": GROUP[400:]})
SETTINGS = {"n_candidates": 4, "batch_size": 4, "random_state": 0, "honest": None}
NEW = ("front", "thresholds", "probabilities")


@pytest.fixture(scope="module")
def data():
    search = MetricSearch.from_settings(
        LogisticRegression(),
        metric=["accuracy", fpr_gap()],
        constraints="fpr_gap <= 0.1",
        calibrate="sigmoid",
        **SETTINGS,
    ).fit(X[:400], Y[:400], **COLUMNS)
    return collect(search, Rows(X[:400], Y[:400], **COLUMNS), test=TEST)


def test_all_three_are_on_the_page(data):
    page = Page(render(json.loads(json.dumps(data, allow_nan=False))))
    for name in (*NEW, "front-picture", "threshold-0", "threshold-1", "reliability"):
        assert page.ids.count(name) == 1, name
    assert len(page.ids) == len(set(page.ids))
    assert "The bound fpr_gap <= 0.1 is kept" in page.words
    assert "on 300 test rows" in page.words


def test_numbers_on_the_page_are_those_of_the_search(data):
    chosen = next(model for model in data["pareto"]["models"] if model["selected"])
    page = Page(render(data))
    assert f"{chosen['limits'][0]:.4g}" in page.words
    rows = sum(one["n_rows"] for one in data["reliability"]["after"]["bins"])
    assert rows == 300
    assert data["threshold_curves"][1]["value"] == pytest.approx(data["tested"]["moew"])


def test_a_bound_that_the_unweighted_model_breaks_is_the_verdict(data):
    assert data["bound"] == {"text": "fpr_gap <= 0.1", "kept": True}
    assert "fpr_gap <= 0.1 with its margin; the unweighted model does not." in Page(render(data)).words
    assert "if the bound counts" in advice(data)
    none = {**data, "bound": {"text": "fpr_gap <= 0.1", "kept": False}}
    assert "Nothing that was tried keeps fpr_gap <= 0.1 with its margin." in Page(render(none)).words
    assert "comes closest" in advice(none) and "comes closest" in why(from_json(none))
    assert "ahead" not in why(from_json(none)) and "left out" in why(from_json(data))


def test_one_metric_without_calibration_has_only_what_there_is():
    search = MetricSearch.from_settings(LogisticRegression(), metric="roc_auc", **SETTINGS).fit(
        X[:400], Y[:400]
    )
    found = collect(search, Rows(X[:400], Y[:400]))
    assert [found[name] for name in ("bound", "pareto", "reliability")] == [None] * 3
    assert found["threshold_curves"] == []
    assert not set(NEW) & set(Page(render(found)).ids)
    tested = collect(search, Rows(X[:400], Y[:400]), test=Rows(X[400:], Y[400:]))
    assert "calibrate" in Page(render(tested)).words
    assert tested["reliability"]["after"] is None


def test_names_of_metrics_cannot_get_out_of_the_page():
    nasty = "<script>alert(1)</script>"
    search = MetricSearch.from_settings(
        LogisticRegression(), metric={"accuracy": "accuracy", nasty: "recall"}, **SETTINGS
    ).fit(X[:400], Y[:400])
    html = render(collect(search, Rows(X[:400], Y[:400])))
    assert nasty not in html
    assert nasty in Page(html).words
