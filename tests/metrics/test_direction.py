"""A metric whose name sounds as if smaller were better is maximised only after a word about it."""

import warnings
from functools import partial

import numpy as np
import pytest
from problems import shifted_classes
from sklearn.linear_model import LogisticRegression

from moew import MetricSearch, make_metric
from moew.exceptions import InvalidInputError, MoewWarning
from moew.metrics import resolve_metric, worst_class_error
from moew.metrics._metric import hint_of_direction, sounds_smaller


@pytest.mark.parametrize(
    "name",
    ["cost", "my_error", "hinge_loss", "moneyLost", "RMSE", "expected regret", "total_costs", "testMAE"],
)
def test_names_that_sound_as_if_smaller_were_better(name):
    assert sounds_smaller(name)


@pytest.mark.parametrize(
    "name", ["accuracy", "neg_cost", "costume", "lossless", "cost_saved", "error_reduction", "terror", "hit"]
)
def test_other_names_do_not(name):
    assert not sounds_smaller(name)


def cost(y_true, decision):
    """What wrong decisions cost in a day.

    A second line.
    """
    return float(np.mean(y_true != decision))


@pytest.mark.parametrize(
    "metric", [cost, partial(cost), make_metric(cost), make_metric(cost, name="money"), make_metric()(cost)]
)
def test_a_cost_that_nobody_said_a_direction_of_gets_a_hint(metric):
    resolved = resolve_metric(metric)
    words = r"is maximised; if smaller is better, wrap it: make_metric\(cost, greater_is_better=False\)"
    with pytest.warns(MoewWarning, match=words):
        assert "larger values count as better" in hint_of_direction(resolved)
    assert resolved.greater_is_better


@pytest.mark.parametrize(
    "metric",
    [
        make_metric(cost, greater_is_better=True),
        make_metric(cost, greater_is_better=False),
        worst_class_error(),
        "neg_mean_absolute_error",
        lambda y, decision: 0.0,
    ],
)
def test_a_metric_with_a_direction_gets_none(metric):
    assert hint_of_direction(resolve_metric(metric)) == ""


def test_a_search_warns_once_and_notes_it():
    rows = shifted_classes(120)
    search = MetricSearch.from_settings(
        LogisticRegression(), metric=cost, embedding="label", n_candidates=2, batch_size=2
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        search.fit(rows.X, rows.y, validation=(rows.X_val, rows.y_val))
    assert [w.category for w in caught] == [MoewWarning]
    assert search.result_.notes[0].startswith("cost is maximised")


def test_metrics_have_names_and_descriptions_for_people():
    metric = make_metric(cost, name="money lost per day", greater_is_better=False)
    assert (metric.name, metric.function_name) == ("money lost per day", "cost")
    assert metric.description == "What wrong decisions cost in a day."
    assert make_metric(partial(cost)).description == metric.description
    assert make_metric(lambda y, decision: 0.0).description == ""
    assert worst_class_error().description.startswith("The highest error rate of any class")
    assert resolve_metric("f1").description.startswith("Compute the F1 score")
    for wrong in ("", " ", 3):
        with pytest.raises(InvalidInputError, match="name must be a text such as"):
            make_metric(cost, name=wrong)
