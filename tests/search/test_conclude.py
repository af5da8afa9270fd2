"""The winner beside the unweighted model: which models these are, and what is said about them."""

import numpy as np
import pytest
from problems import shifted_classes
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.metrics import balanced_accuracy_score

from moew import MetricSearch, make_metric
from moew._util.seeds import generator
from moew.data import LabelledRows, Rows
from moew.decision import MostAccurate
from moew.inspection import on_test_rows
from moew.metrics import accuracy, worst_class_error
from moew.search._honest_score import gain_error_on
from moew.search._prepare import prepare

ROWS = shifted_classes(300)
VALIDATION = {"validation": (ROWS.X_val, ROWS.y_val)}
BUDGET = {"n_candidates": 8, "batch_size": 4, "random_state": 0}


def search_of(estimator=None, **settings):
    settings = {"embedding": "label", "metric": worst_class_error(), **BUDGET, **settings}
    return MetricSearch.from_settings(estimator or LogisticRegression(), **settings)


class FailsWithoutWeights(LogisticRegression):
    """Cannot be trained where all weights are the same; on many rows only, if told so."""

    def __init__(self, above=0):
        super().__init__()
        self.above = above

    def fit(self, X, y, sample_weight=None):
        if np.ptp(sample_weight) == 0 and len(y) > self.above:
            raise ValueError("no weights, no model")
        return super().fit(X, y, sample_weight)


def test_the_unweighted_model_is_what_a_plain_fit_gives():
    search = search_of(SGDClassifier()).fit(ROWS.X, ROWS.y, **VALIDATION)
    assert not search.result_.alpha_zero_is_unweighted
    plain = clone(search.estimator).set_params(random_state=search.unweighted_estimator_.random_state)
    np.testing.assert_array_equal(plain.fit(ROWS.X, ROWS.y).coef_, search.unweighted_estimator_.coef_)
    uniform = search_of(base_weights="uniform").strategies
    again = search.set_params(strategies=uniform).fit(ROWS.X, ROWS.y, **VALIDATION)
    assert again.result_.alpha_zero_is_unweighted
    plain.set_params(random_state=again.unweighted_estimator_.random_state).fit(ROWS.X, ROWS.y)
    np.testing.assert_array_equal(again.unweighted_estimator_.coef_, plain.coef_)
    assert again.unweighted_score_ == again.alpha_zero_score_


class Counting(LogisticRegression):
    fits = 0

    def fit(self, X, y, sample_weight=None):
        Counting.fits += 1
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize("base_weights", ["uniform", "label_shift"])
@pytest.mark.parametrize("evaluate_on", ["validation", 3, "auto"])
@pytest.mark.parametrize("selects", [False, True])
def test_how_many_models_are_trained(base_weights, evaluate_on, selects):
    """n_candidates + 1 weightings, one more if α = 0 is not the unweighted model, and
    importance weights by label, features and both; few of them again with more folds, and on all rows."""
    Counting.fits = 0
    search = search_of(
        Counting(),
        base_weights=base_weights,
        evaluate_on=evaluate_on,
        strategies="auto" if selects else "example weights",
    )
    search.fit(ROWS.X, ROWS.y, **VALIDATION)
    n_candidates = 8 + 1 + (base_weights != "uniform") + 3 * selects
    assert search.result_.n_models == n_candidates
    members = {strategy.name: strategy.n_members for strategy in search.result_.strategies}
    folds, of_finalists = {"validation": (1, 0), 3: (3, 3), "auto": (2, 5)}[evaluate_on]
    # Which models more than one strategy chose cannot be told from outside.
    low = folds * n_candidates + of_finalists * max(members.values())
    high = folds * n_candidates + of_finalists * sum(members.values())
    final = members[search.selected_] + (search.selected_ != "unweighted")
    probe = 1  # whether the estimator looks at its weights
    assert low <= Counting.fits - final - probe <= high


@pytest.mark.parametrize("selects", [False, True])
def test_an_unweighted_model_that_fails_is_told_and_costs_nothing_else(selects):
    search = search_of(FailsWithoutWeights(), strategies="auto" if selects else "example weights").fit(
        ROWS.X, ROWS.y, **VALIDATION
    )
    assert search.unweighted_estimator_ is None and np.isnan(search.unweighted_score_)
    (note,) = [note for note in search.result_.notes if "unweighted" in note]
    assert "no weights, no model" in note
    assert np.isfinite(search.honest_score_) and np.isnan(search.result_.gain_error)
    found = on_test_rows(search.fitted_, Rows(ROWS.X_val, ROWS.y_val))
    assert found.moew == search.metric_value(ROWS.X_val, ROWS.y_val)
    assert np.isnan(found.unweighted) and found.reason == "there is no unweighted model"


def test_an_unweighted_model_that_fails_on_all_rows_is_told():
    search = search_of(FailsWithoutWeights(above=220), evaluate_on=3, strategies="example weights").fit(
        ROWS.X, ROWS.y
    )
    assert np.isfinite(search.unweighted_score_) and search.unweighted_estimator_ is None
    assert any("no weights, no model" in note for note in search.result_.notes)


@pytest.mark.parametrize("selects", [False, True])
@pytest.mark.parametrize("final", ["ensemble", "best"])
def test_base_weights_that_ruin_every_candidate_do_not_ruin_the_result(selects, final):
    def share_of_class_0(X, y):
        return np.where(np.asarray(y) == 0, 1.0, 1e-3)

    settings = {
        "base_weights": share_of_class_0,
        "radius": 0.1,
        "strategies": "auto" if selects else "example weights",
        "final": final,
    }
    result = search_of(metric=accuracy(), **settings).fit(ROWS.X, ROWS.y, **VALIDATION).result_
    assert result.alpha_zero.apparent < result.unweighted.apparent - 0.05
    assert not result.is_below_unweighted


def test_a_winner_that_is_the_unweighted_model_has_no_gain_for_sure():
    def is_plain(y_true, decision):
        return float(np.array_equal(decision, plain))

    plain = LogisticRegression().fit(ROWS.X, ROWS.y).predict(ROWS.X_val)
    search = search_of(metric=make_metric(is_plain), base_weights="uniform").fit(ROWS.X, ROWS.y, **VALIDATION)
    assert search.result_.best_number == 0 and search.best_estimator_ is search.unweighted_estimator_
    assert search.result_.gain_error == 0


def test_rows_set_aside_need_no_allowance_for_luck():
    search = search_of(honest=0.5).fit(ROWS.X, ROWS.y, **VALIDATION)
    halves = search_of().fit(ROWS.X, ROWS.y, **VALIDATION)
    assert halves.result_.gain_error > halves.result_.honest.optimism > 0
    evaluator = search.fitted_.evaluator
    # The same from the rows themselves, which are those that the search did not see.
    held = _held_out(search)
    models = (search.fitted_.winner, search.fitted_.unweighted)
    predictions = [evaluator.predictions_on(final, held) for final in models]
    expected = gain_error_on(*predictions, held, evaluator, generator(0, "gain"))
    assert search.result_.gain_error == expected
    assert search.result_.n_holdout == len(held)


def _held_out(search):
    parts = Rows(ROWS.X, ROWS.y), Rows(ROWS.X_val, ROWS.y_val)
    held = prepare(search.settings, *parts).data.holdout
    assert isinstance(held, LabelledRows)
    return held


def test_each_model_decides_by_its_own_rule():
    search = search_of(
        metric="balanced_accuracy", decision=MostAccurate("train"), strategies="example weights"
    )
    search.fit(ROWS.X, ROWS.y, **VALIDATION)
    found = on_test_rows(search.fitted_, Rows(ROWS.X_val, ROWS.y_val))
    for value, model, rule in (
        (found.moew, search.best_estimator_, search.decision_),
        (found.unweighted, search.unweighted_estimator_, search.unweighted_decision_),
    ):
        decided = model.decision_function(ROWS.X_val) >= rule.threshold_
        assert value == balanced_accuracy_score(ROWS.y_val, np.where(decided, *model.classes_[::-1]))
    assert search.decision_.threshold_ != search.unweighted_decision_.threshold_


def test_an_interrupted_search_has_the_same_unweighted_model(tmp_path):
    settings = {"storage": tmp_path / "study.db", "base_weights": "uniform"}
    first = search_of(SGDClassifier(), **settings).fit(ROWS.X, ROWS.y, **VALIDATION)
    again = search_of(SGDClassifier(), **settings).fit(ROWS.X, ROWS.y, **VALIDATION)  # nothing left to do
    np.testing.assert_array_equal(first.unweighted_estimator_.coef_, again.unweighted_estimator_.coef_)
    assert str(first.result_) == str(again.result_)


def test_a_slow_metric_is_asked_less_often_and_evaluates_the_same(tmp_path):
    calls = []

    def right(y_true, decision):
        calls.append(1)
        return float(np.mean(y_true == decision))

    counts, results = [], []
    for slow in (False, True):
        calls.clear()
        search = search_of(metric=make_metric(right, slow=slow), honest=0.5, storage=tmp_path / "study.db")
        results.append(search.fit(ROWS.X, ROWS.y, **VALIDATION))  # the second goes on with the study
        counts.append(len(calls))
    assert results[0].best_score_ == results[1].best_score_
    assert counts[1] < counts[0] / 2


def refuse(*_, **__):
    raise AssertionError("is switched off")


def test_what_is_switched_off_is_not_called(monkeypatch):
    for name in (
        "_choices.Constraints",
        "_conclude.calibrate",
        "_conclude.front_of",
        "_honest_score._on_holdout",
    ):
        monkeypatch.setattr(f"moew.search.{name}", refuse)
    assert np.isfinite(search_of().fit(ROWS.X, ROWS.y, **VALIDATION).honest_score_)


@pytest.mark.parametrize("final", ["best", "smoothed"])
def test_without_an_honest_score_and_without_a_selection_nothing_is_chosen_on_halves(monkeypatch, final):
    settings = {"strategies": "example weights", "final": final, "evaluate_on": "validation"}
    scored = search_of(**settings).fit(ROWS.X, ROWS.y, **VALIDATION)
    monkeypatch.setattr("moew.search._honest_score.stratified_halves", refuse)
    alone = search_of(honest=None, **settings).fit(ROWS.X, ROWS.y, **VALIDATION)
    assert alone.selected_ == scored.selected_ and alone.best_score_ == scored.best_score_
    assert [strategy.apparent for strategy in alone.result_.strategies] == [
        strategy.apparent for strategy in scored.result_.strategies
    ]
    assert all(np.isnan(strategy.honest) for strategy in alone.result_.strategies)
    np.testing.assert_array_equal(alone.predict(ROWS.X_test), scored.predict(ROWS.X_test))
