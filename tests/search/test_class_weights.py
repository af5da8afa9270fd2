"""The class weights that a search begins with."""

import numpy as np
import pytest
from problems import shifted_classes
from sklearn.linear_model import LogisticRegression

from moew import MetricSearch
from moew.data import Rows
from moew.embedding import DirectionsEmbedding
from moew.samplers import Ball, Halving
from moew.search._loop import Budget, search_side_by_side
from moew.search._prepare import prepare
from moew.search._strategies import (
    ALL_CANDIDATES,
    CLASS_WEIGHTS,
    WEIGHTS,
    list_searches,
)
from moew.search._strategies.class_weights import ClassWeights, _alpha, first_class_weights
from moew.search._study import WeightStudy
from moew.weighting import ExampleWeighting, UniformBaseWeights

BUDGET = Budget(30, 10)


def prepared_with(rows, **settings):
    settings = {"random_state": 0, "base_weights": "uniform", **settings}
    search = MetricSearch.from_settings(LogisticRegression(), **settings)
    nothing = (None, None, None)
    return prepare(search.settings, Rows(rows.X, rows.y, *nothing), Rows(rows.X_val, rows.y_val, *nothing))


def class_weight_trials(prepared, **more):
    searches = list_searches(prepared)
    outcomes = search_side_by_side(list(searches.values()), BUDGET, **more)
    by_name = dict(zip(searches, outcomes, strict=True))
    return searches[CLASS_WEIGHTS], by_name


def weight_by_class(search, trial, y):
    weights = search.study.training_weights(trial)
    return np.array([weights[y == label][0] for label in np.unique(y)])


def test_a_search_begins_with_balanced_weights_their_root_and_the_label_shift():
    rows = shifted_classes(300, 3)
    fewer = np.flatnonzero((rows.y_val != 1) | (np.arange(len(rows.y_val)) % 3 == 0))
    rows = rows._replace(X_val=rows.X_val[fewer], y_val=rows.y_val[fewer])
    prepared = prepared_with(rows, metric="worst_class_error")
    counts, given = np.bincount(rows.y), np.bincount(rows.y_val) + 0.5
    (search,) = ClassWeights().searches(prepared, ALL_CANDIDATES, alone=True)
    (outcome,) = search_side_by_side([search], Budget(5, 5))
    for trial, wanted in zip(outcome.trials[1:], [1 / counts, counts**-0.5, given / counts], strict=False):
        weights = weight_by_class(search, trial, rows.y)
        assert weights / weights.sum() == pytest.approx(wanted / wanted.sum(), rel=1e-6)
    balanced = LogisticRegression(class_weight="balanced").fit(rows.X, rows.y)
    ours = search.study.training_weights(outcome.trials[1])
    again = LogisticRegression().fit(rows.X, rows.y, ours)
    np.testing.assert_allclose(again.coef_, balanced.coef_, rtol=1e-3)


def test_the_user_s_weights_count_in_the_classes_shares():
    rows = shifted_classes(200)
    own = np.where(rows.y == 1, 0.25, 1.0)
    search = MetricSearch(LogisticRegression(), random_state=0)
    nothing = Rows(None, None, None, None, None)
    prepared = prepare(search.settings, Rows(rows.X, rows.y, own, None, None), nothing)
    (found,) = ClassWeights().searches(prepared, ALL_CANDIDATES, alone=True)
    (trial,) = found.study.ask(2)[1:]
    weights = found.study.training_weights(trial)  # times the user's own
    assert weights[rows.y == 1].sum() == pytest.approx(weights[rows.y == 0].sum())


def test_a_suggestion_moves_earlier_ones_behind_it_and_may_be_repeated():
    study = WeightStudy(None, Ball(1, 4.0), n_initial=0, seed=0)
    for _ in range(2):
        study.suggest(1, np.array([[1.0], [2.0], [3.0]]))
    for _ in range(2):
        study.suggest(2, np.array([[0.5]]))
    assert [float(trial.alpha[0]) for trial in study.ask(5)] == [0, 1, 0.5, 2, 3]


def test_class_weights_alone_take_their_own_unweighted_model():
    prepared = prepared_with(shifted_classes(200), metric="f1")
    (search,) = ClassWeights().searches(prepared, ALL_CANDIDATES, alone=True)
    (outcome,) = search_side_by_side([search], BUDGET)
    alphas = [float(trial.alpha[0]) for trial in outcome.trials]
    assert len(alphas) == 31
    sequence = WeightStudy(None, Ball(1, 4.0), sampler=Halving(), n_initial=0, seed=0)
    wanted = [float(trial.alpha[0]) for trial in sequence.ask(31)]
    n_first = len(first_class_weights(prepared, search.weighting))
    assert alphas[:1] + alphas[1 + n_first :] == wanted[: 31 - n_first]


class Stopped(Exception):  # noqa: N818
    """Ends a search early."""


@pytest.mark.parametrize("n_told", [3, 13, 24])
def test_an_interrupted_search_goes_on_to_the_same_candidates(tmp_path, n_told):
    rows, told = shifted_classes(200), []

    def stop(_place, trial, *_):
        told.append(trial)
        if len(told) == n_told:
            raise Stopped

    stored = {"metric": "f1", "storage": tmp_path / "study.db"}
    with pytest.raises(Stopped):
        class_weight_trials(prepared_with(rows, **stored), on_told=stop)
    _, resumed = class_weight_trials(prepared_with(rows, **stored))
    _, whole = class_weight_trials(prepared_with(rows, metric="f1"))
    for name in (CLASS_WEIGHTS, WEIGHTS):
        for one, other in zip(resumed[name].trials, whole[name].trials, strict=True):
            np.testing.assert_array_equal(one.alpha, other.alpha)
            assert one.value == other.value


def test_suggested_alphas_take_their_numbers_and_are_known_to_the_sampler():
    study = WeightStudy(None, Ball(2, 3.0), n_initial=2, seed=0)
    plain = WeightStudy(None, Ball(2, 3.0), n_initial=2, seed=0)
    study.suggest(2, np.array([[1.0, 1.0], [30.0, 40.0]]))
    first, of_plain = study.ask(4), plain.ask(4)
    for k in (0, 1):
        np.testing.assert_array_equal(first[k].alpha, of_plain[k].alpha)
    np.testing.assert_array_equal(first[2].alpha, [1.0, 1.0])
    assert first[3].alpha == pytest.approx([1.8, 2.4])  # brought into the ball
    (after,) = study.ask(1)
    assert np.linalg.norm(after.alpha - first[2].alpha) > 0.1


@pytest.mark.parametrize("weights", [[1.0, 5.0], [3.0, 1.0, 1.0], [1e-9, 1.0], [1.0, 2.0, 3.0, 4.0, 500.0]])
def test_an_alpha_has_the_ratios_of_the_class_weights(weights):
    y = np.repeat(np.arange(len(weights)), 3)
    weighting = ExampleWeighting(DirectionsEmbedding(), UniformBaseWeights())
    weighting.fit(None, y, task="classification")
    found = weighting.training_weights(_alpha(weighting, np.unique(y), np.array(weights)))[0][::3]
    assert found / found.sum() == pytest.approx(np.array(weights) / np.sum(weights), rel=1e-6)


def test_a_class_whose_training_rows_have_no_weight_is_not_balanced():
    rows = shifted_classes(60)
    settings = {"base_weights": "uniform", "embedding": [0], "honest": None, "random_state": 0}
    settings |= {"n_candidates": 4, "batch_size": 2}
    search = MetricSearch.from_settings(LogisticRegression(), metric="balanced_accuracy", **settings)
    own = (rows.y == 0).astype(float)
    search.fit(rows.X, rows.y, own, validation=(rows.X_val, rows.y_val))
    assert all(trial.error is None for trial in search.result_.trials)
