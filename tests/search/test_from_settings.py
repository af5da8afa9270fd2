"""`MetricSearch.from_settings`: settings by name, beside parts that are given whole."""

import numpy as np
import pytest
from problems import shifted_classes
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from moew import ExampleWeights, MetricSearch, StudyStorage, TrainingOptions
from moew.exceptions import InvalidInputError


def test_settings_by_name_come_into_their_parts():
    search = MetricSearch.from_settings(
        LogisticRegression(),
        radius=2.0,
        n_candidates=7,
        study_name="mine",
        storage="study.db",
        eval_share=0.1,
    )
    assert search.strategies == ("auto", ExampleWeights(radius=2.0))
    assert search.storage == StudyStorage("study.db", study_name="mine")
    assert search.training == TrainingOptions(eval_share=0.1)
    assert search.n_candidates == 7
    plain = MetricSearch.from_settings(LogisticRegression(), radius=None, join=False, eval_share=None)
    assert plain.get_params(deep=False) == MetricSearch(plain.estimator).get_params(deep=False)


def test_parts_that_are_given_whole_keep_their_settings():
    given = {
        "strategies": ["class weights", ExampleWeights(radius=2.0, batch_size=3)],
        "storage": StudyStorage("study.db", study_name="mine"),
        "training": TrainingOptions(eval_share=0.1),
    }
    search = MetricSearch.from_settings(LogisticRegression(), **given, batch_size=5, join=True)
    assert search.strategies == ("class weights", ExampleWeights(radius=2.0, batch_size=5))
    assert search.storage == StudyStorage("study.db", study_name="mine", join=True)
    assert search.training == given["training"]
    again = MetricSearch.from_settings(**search.get_params(deep=False))
    assert again.settings == search.settings
    paper = MetricSearch.as_in_the_paper(LogisticRegression(), training=TrainingOptions(most_failures=0.5))
    assert paper.settings.most_failures == 0.5 and paper.settings.final == "best"


def test_values_that_cannot_be_compared_are_taken():
    rows = shifted_classes(120)
    search = MetricSearch.from_settings(LogisticRegression(), embedding=np.array([0, 1]), n_candidates=4)
    assert clone(search).fit(rows.X, rows.y).best_alpha_.shape == (3,)


def test_an_unknown_name_is_told():
    with pytest.raises(
        InvalidInputError, match="a search has no 'n_batches'; its settings are .*n_candidates"
    ):
        MetricSearch.from_settings(LogisticRegression(), n_batches=3)
