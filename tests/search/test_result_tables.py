"""Results and comparisons in a notebook: short texts, HTML, data frames and scikit-learn's cv_results_."""

import sys
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from problems import shifted_classes
from searches import binary, comparison_of, multiclass
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

import moew
from moew import MetricSearch
from moew.exceptions import MoewError
from moew.search._result import ranks


class Cells(HTMLParser):
    """The rows of the table in HTML whose tags all end, and all texts; raises on a tag that is not closed."""

    def __init__(self, page):
        super().__init__()
        self.open, self.rows, self.texts = [], [], []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


class Fails(LogisticRegression):
    """Fails with uneven weights."""

    def fit(self, X, y, sample_weight=None):
        if np.ptp(sample_weight) > 1:
            raise ValueError("uneven")
        return super().fit(X, y, sample_weight)


@pytest.fixture(scope="module")
def failing():
    rows = shifted_classes(120)
    settings = {"embedding": "label", "base_weights": "uniform", "n_candidates": 8, "batch_size": 8}
    search = MetricSearch.from_settings(
        Fails(), metric="neg_log_loss", random_state=0, most_failures=1, **settings
    )
    return search.fit(rows.X, rows.y, validation=(rows.X_val, rows.y_val))


def test_a_result_says_the_most_important_in_four_lines():
    result = multiclass()[0].result_
    first, selected, honest, gain = repr(result).splitlines()
    assert first == f"<SearchResult: worst class error (lower is better), {result.n_models} candidates"
    assert selected == f" Selected: {result.selected}."
    assert honest.startswith(" Honest score: 0.") and "(unweighted 0." in honest
    assert gain.startswith(" Gain over the unweighted model, by honest scores: ") and gain.endswith(").>")
    assert gain.strip(" >") in str(result)
    without = replace(result, honest=replace(result.honest, value=np.nan))
    assert " Honest score: – (unweighted 0." in repr(without) and "Gain" not in repr(without)


def test_a_notebook_shows_the_table_of_the_text():
    result = multiclass()[0].result_
    cells = Cells(result._repr_html_())
    lines = str(result).splitlines()
    assert cells.rows[0] == ["strategy", "apparent", "honest", ""]
    assert [" ".join(row).split() for row in cells.rows[1:]] == [
        line.split() for line in lines[2 : 2 + len(result.strategies)]
    ]
    assert cells.texts[0] == lines[0] and cells.texts[-1] == lines[-1]


def test_names_from_others_are_no_html():
    result = replace(multiclass()[0].result_, metric="<script>", notes=("<b>", "a & b\x1b[0m"))
    page = result._repr_html_()
    assert "<script>" not in page and "<b>" not in page and "\x1b" not in page
    assert "&lt;script&gt;" in page and "a &amp; b" in page and "\x1b" not in repr(result)
    assert "random weights: a <note>" in Cells(comparison_of(0.1)._repr_html_()).texts


def test_a_frame_has_a_row_for_each_trial(failing):
    result = failing.result_
    frame = result.to_frame()
    assert list(frame) == ["number", "value", "rank", "error", "pending", "alpha_0", "alpha_1"]
    assert len(frame) == len(result.trials) and not frame["pending"].any()
    for row, trial in zip(frame.itertuples(), result.trials, strict=True):
        assert row.number == trial.number and (row.alpha_0, row.alpha_1) == tuple(trial.alpha)
        assert row.value == trial.value or np.isnan(trial.value)
        assert pd.isna(row.error) if trial.error is None else row.error == trial.error
    assert 0 < frame["value"].isna().sum() == result.n_failed
    assert frame.loc[frame["rank"] == 1, "number"].tolist()[0] == result.best_number


@pytest.mark.parametrize("search", [lambda: multiclass()[0], lambda: binary()[0]])
def test_ranks_are_by_the_metrics_direction(search):
    result = search().result_
    frame = result.to_frame()
    by_pandas = frame["value"].rank(method="min", ascending=not result.greater_is_better)
    assert frame["rank"].tolist() == by_pandas.tolist()


def test_ranks_are_those_of_scikit_learn():
    scores = np.array([0.3, np.nan, 0.5, 0.5, np.nan, 0.1])
    assert ranks(scores).tolist() == [3, 5, 1, 1, 5, 4]
    assert ranks(np.array([np.nan, np.nan])).tolist() == [1, 1]
    numbers = {"strategy": ["constant"], "constant": list(range(6))}
    oracle = GridSearchCV(DummyRegressor(), numbers, scoring=lambda model, *_: scores[model.constant], cv=2)
    with pytest.warns(UserWarning, match="non-finite"):
        oracle.fit(np.zeros((4, 1)), np.zeros(4))
    assert oracle.cv_results_["rank_test_score"].tolist() == ranks(scores).tolist()


def test_cv_results_have_scikit_learns_layout(failing):
    found = failing.cv_results_
    frame = pd.DataFrame(found)
    result = failing.result_
    assert len(frame) == len(result.trials) and found["params"] == [{}] * len(frame)
    np.testing.assert_array_equal(found["mean_test_score"], [trial.value for trial in result.trials])
    assert found["rank_test_score"].dtype == np.int32
    assert frame["rank_test_score"].tolist() == result.to_frame()["rank"].tolist()
    assert frame["error"].notna().tolist() == frame["mean_test_score"].isna().tolist()
    lower = multiclass()[0]  # an error: lower is better
    np.testing.assert_array_equal(
        lower.cv_results_["mean_test_score"], [-trial.value for trial in lower.result_.trials]
    )
    assert np.argmax(lower.cv_results_["mean_test_score"]) == lower.result_.best_number


def test_searched_hyper_parameters_are_columns(own_folder):
    optuna = pytest.importorskip("optuna")
    rows = shifted_classes(120)
    space = {
        "C": optuna.distributions.FloatDistribution(0.01, 10.0, log=True),
        "class_weight": optuna.distributions.CategoricalDistribution([None, "balanced"]),
    }
    settings = {"embedding": "label", "n_candidates": 5, "batch_size": 5, "random_state": 0}
    search = MetricSearch.from_settings(LogisticRegression(), search_space=space, **settings)
    search.fit(rows.X, rows.y, validation=(rows.X_val, rows.y_val))
    trials = search.result_.trials
    assert search.cv_results_["params"] == [dict(trial.parameters) for trial in trials]
    for column in (pd.DataFrame(search.cv_results_), search.result_.to_frame()):
        assert column["param_C"].tolist() == [trial.parameters["C"] for trial in trials]
        told = column["param_class_weight"].astype(object)
        assert told.where(told.notna(), None).tolist() == [t.parameters["class_weight"] for t in trials]
    search.save("search.moew")
    loaded = moew.load("search.moew")
    pd.testing.assert_frame_equal(pd.DataFrame(loaded.cv_results_), pd.DataFrame(search.cv_results_))
    assert repr(loaded.result_) == repr(search.result_)
    pd.testing.assert_frame_equal(loaded.result_.to_frame(), search.result_.to_frame())


def test_a_comparison_is_short_a_table_and_a_frame():
    table = comparison_of(0.1, greater_is_better=False)
    first, gain = repr(table).splitlines()
    assert first == "<Comparison: a metric, lower is better; 6 repeats, 480 test rows"
    assert gain.strip(" >") in str(table).splitlines()
    cells = Cells(table._repr_html_())
    names = ["unweighted", "random weights", "importance weights", "moew"]
    assert [row[0] for row in cells.rows] == ["method", *names]
    frame = table.to_frame().set_index("method")
    assert list(frame) == ["n_models", "apparent", "honest", "test", "margin", "note"]
    for row in table.rows:
        assert frame.loc[row.method, "test"] == row.test.mean()
        assert frame.loc[row.method, "margin"] == row.margin
    assert frame.loc["random weights", "note"] == "a <note>"


def test_without_pandas_a_frame_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MoewError, match=r"a comparison as a data frame needs pandas.*moew\[parquet\]"):
        comparison_of(0.1).to_frame()
