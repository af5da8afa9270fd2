"""Callbacks are told of a search while it runs, and change nothing of it."""

import numpy as np
import pytest
from problems import shifted_classes
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from moew import MetricSearch, load
from moew.exceptions import InvalidInputError, MoewWarning, SearchFailedError
from moew.search import SearchCallback

ROWS = shifted_classes(60)
ALONE = {
    "strategies": "example weights",
    "final": "best",
    "honest": None,
    "evaluate_on": "validation",
}  # the fewest trainings


class FailsSometimes(LogisticRegression):
    """Fails if the first row's weight is among the smaller ones."""

    def fit(self, X, y, sample_weight=None):
        if sample_weight[0] < 0.9:
            raise RuntimeError("the disk is full")
        return super().fit(X, y, sample_weight)


class FailsAlways(LogisticRegression):
    def fit(self, X, y, sample_weight=None):
        raise RuntimeError("the disk is full")


class Recorder(SearchCallback):
    """Notes what it is told, and raises where it is asked to."""

    def __init__(self, raises_in=""):
        self.raises_in = raises_in
        self.calls = []

    def _note(self, method, *told):
        self.calls.append((method, *told))
        if method == self.raises_in:
            raise OSError("no route to host.")

    def on_begin(self, settings, metric):
        self._note("on_begin", settings, metric)

    def on_trial(self, strategy, trial):
        self._note("on_trial", strategy, trial)

    def on_end(self, fitted, training, validation):
        self._note("on_end", fitted, training, validation)

    @property
    def methods(self):
        return [call[0] for call in self.calls]


def make(*callbacks, estimator=None, **settings):
    small = {"embedding": "label", "n_candidates": 10, "batch_size": 5, "random_state": 0, **settings}
    return MetricSearch.from_settings(
        estimator or LogisticRegression(), metric="balanced_accuracy", callbacks=list(callbacks), **small
    )


def fit(*callbacks, **settings):
    search = make(*callbacks, **settings)
    return search.fit(ROWS.X, ROWS.y, validation=(ROWS.X_val, ROWS.y_val))


def test_told_of_everything_in_order():
    told = Recorder()
    search = fit(told, estimator=FailsSometimes())
    assert told.methods == ["on_begin", *["on_trial"] * search.result_.n_models, "on_end"]
    _, settings, metric = told.calls[0]
    assert settings.batch_size == 5 and metric.name == search.result_.metric
    of_weights = {
        trial.number: trial for _, strategy, trial in told.calls[1:-1] if strategy == "example weights"
    }
    kept = search.study_.trials()
    assert sorted(of_weights) == [trial.number for trial in kept]
    for trial in kept:
        np.testing.assert_equal(of_weights[trial.number].value, trial.value)
        assert of_weights[trial.number].error == trial.error and not of_weights[trial.number].pending
    assert any(trial.error for trial in kept) and not all(trial.error for trial in kept)
    assert {strategy for _, strategy, _ in told.calls[1:-1]} >= {"example weights", "class weights"}
    _, fitted, training, validation = told.calls[-1]
    assert fitted is search.fitted_
    assert training.X is ROWS.X and validation.y is ROWS.y_val


@pytest.mark.parametrize("method", ["on_trial", "on_end"])
def test_an_error_is_one_warning_and_loses_nothing(method):
    broken, other = Recorder(method), Recorder()
    with pytest.warns(MoewWarning, match=f"Recorder failed in {method}: OSError: no route to host. ") as seen:
        search = fit(broken, other, **ALONE)
    assert len(seen) == 1
    assert broken.methods.count(method) == 1 and broken.methods[-1] == "on_end"
    assert other.methods.count("on_trial") == search.result_.n_models
    plain = fit(**ALONE)
    assert str(search.result_) == str(plain.result_)
    assert np.array_equal(search.predict_proba(ROWS.X), plain.predict_proba(ROWS.X))


def test_an_error_at_the_begin_ends_the_fit_before_training():
    first, broken, never = Recorder(), Recorder("on_begin"), Recorder()
    search = make(first, broken, never, estimator=FailsAlways())
    with pytest.raises(OSError, match="no route to host"):
        search.fit(ROWS.X, ROWS.y)
    assert first.methods == ["on_begin", "on_end"] and first.calls[-1][1] is None
    assert broken.methods == ["on_begin"] and never.methods == []


def test_a_search_that_fails_ends_without_a_result():
    told = Recorder()
    with pytest.raises(SearchFailedError, match="the disk is full"):
        fit(told, estimator=FailsAlways())
    assert told.methods[-1] == "on_end" and told.calls[-1][1] is None
    assert all(trial.error for _, _, trial in told.calls[1:-1])


def test_a_stored_study_goes_on_with_other_callbacks(tmp_path):
    settings = {"storage": tmp_path / "study.db", **ALONE}
    before = fit(**settings)
    told = Recorder()
    again = fit(told, **settings)
    assert told.methods == ["on_begin", "on_end"]  # nothing was left to train
    assert str(again.result_) == str(before.result_)


def test_callbacks_are_not_saved(tmp_path):
    search = clone(make(Recorder(), **ALONE)).fit(ROWS.X, ROWS.y, validation=(ROWS.X_val, ROWS.y_val))
    search.save(tmp_path / "search.moew")
    again = load(tmp_path / "search.moew")
    assert np.array_equal(again.predict_proba(ROWS.X), search.predict_proba(ROWS.X))
    with pytest.raises(InvalidInputError, match="callbacks must be .* got <not saved"):
        again.fit(ROWS.X, ROWS.y)


@pytest.mark.parametrize("wrong", [Recorder(), [Recorder], [print], "mlflow"])
def test_what_is_no_callback_is_refused(wrong):
    with pytest.raises(InvalidInputError, match="callbacks must be a list of objects of subclasses"):
        make().set_params(callbacks=wrong).fit(ROWS.X, ROWS.y)
