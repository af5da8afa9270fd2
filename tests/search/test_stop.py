"""Stopping early: when a search does, that it is the same after an interruption, and what is refused."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

from experiments.samplers import CoverSampler
from moew import MetricSearch, WeightStudy, compare
from moew.data import Rows
from moew.exceptions import InvalidInputError
from moew.metrics import worst_class_error
from moew.report import collect
from moew.samplers import Ball, GpBucb
from moew.search._loop import Budget, reason_to_stop, search_side_by_side
from moew.types import Outlook

X, Y = make_classification(400, weights=[0.8], flip_y=0.1, random_state=0)
ROWS = {"validation": (X[150:300], Y[150:300])}


def search(**changes):
    settings = {
        "metric": worst_class_error(),
        "embedding": "label",
        "base_weights": "uniform",
        "n_candidates": 30,
        "batch_size": 5,
        "evaluate_on": "validation",
        "strategies": "example weights",
        "random_state": 0,
    }
    return MetricSearch.from_settings(LogisticRegression(), **{**settings, **changes})


def fitted(**changes):
    return search(**changes).fit(X[:150], Y[:150], **ROWS)


def trials_of(found):
    return [(trial.number, *trial.alpha, trial.value) for trial in found.result_.trials]


@pytest.mark.parametrize(
    "sampler", [GpBucb(), GpBucb(p=95, width="domain"), GpBucb(noise=0.01, targets="raw")]
)
def test_the_outlook_is_the_maximum_over_many_points_of_the_ball(sampler):
    rng, ball = np.random.default_rng(0), Ball(2, 2.0)
    alphas = ball.sample(rng, 25)
    scores = 7 - 3 * ((alphas - 0.5) ** 2).sum(axis=1) + 0.3 * rng.standard_normal(25)
    outlook = sampler.outlook(alphas, scores, domain=ball, rng=np.random.default_rng(1))
    raw = sampler.targets == "raw"
    offset = 0.0 if raw else scores.mean()
    unit = np.sqrt(((scores - offset) ** 2).mean())
    mean, deviation = sampler.model(alphas, scores, ball).predict(ball.sample(rng, 100_000))
    up = norm.ppf(0.5 + sampler.p / 200)
    assert outlook.gain == pytest.approx(
        (offset + unit * (mean + up * deviation)).max() - scores.max(), abs=0.01
    )
    assert outlook.width == pytest.approx(2 * up * unit * deviation.max(), rel=0.02)
    again = sampler.outlook(alphas, scores, domain=ball, rng=np.random.default_rng(1))
    assert again == outlook


def test_there_is_no_outlook_without_two_values_and_no_interval_with_p_zero():
    ball, rng = Ball(2, 1.0), np.random.default_rng(0)
    alphas = ball.sample(rng, 3)
    assert GpBucb().outlook(alphas, np.array([np.nan, 1.0, np.nan]), domain=ball, rng=rng) is None
    assert GpBucb(p=0).outlook(alphas, np.array([1.0, 2.0, 4.0]), domain=ball, rng=rng).width == np.inf


def test_a_study_in_the_users_hands_has_an_outlook_in_the_units_of_its_values():
    studies = [WeightStudy(None, Ball(2, 3.0), greater_is_better=up, n_initial=8) for up in (True, False)]
    assert studies[0].outlook() is None
    for study, sign in zip(studies, (1, -1), strict=True):
        for trial in study.ask(30):
            study.tell(trial.number, sign * -100 * float(((trial.alpha - 1.0) ** 2).sum()))
    assert studies[0].outlook() == studies[1].outlook()  # a gain is a gain, whatever is better
    assert studies[0].best().value + studies[0].outlook().gain == pytest.approx(0, abs=3)  # the top is at 0
    random = WeightStudy(None, Ball(2, 3.0), sampler="random")
    assert random.outlook() is None


def test_either_reason_is_enough():
    assert reason_to_stop(Outlook(0.05, 0.5), 0.1) == "gain"
    assert reason_to_stop(Outlook(0.2, 0.05), 0.1) == "width"
    assert reason_to_stop(Outlook(0.2, 0.2), 0.1) is None


def test_a_search_stops_after_a_batch_and_says_why():
    whole, stopped = fitted(), fitted(stop_when=0.02)
    told = stopped.result_.stopped
    assert whole.result_.stopped is None and whole.result_.n_models == 31
    assert told is not None and (told.n_candidates - 1) % 5 == 0 and told.n_saved > 0
    assert len(stopped.result_.trials) == told.n_candidates == 31 - told.n_saved
    assert told.n_trainings_saved == told.n_saved  # one model for each candidate
    assert trials_of(stopped) == trials_of(whole)[: told.n_candidates]
    assert (told.gain if told.reason == "gain" else told.width) < 0.02
    assert f"stopped after {told.n_candidates} of 31 candidates" in str(stopped.result_)
    assert f"saved {told.n_saved} trainings" in str(stopped.result_)
    facts = collect(stopped, Rows(X[:150], Y[:150]))
    assert facts["search"]["stopped"]["n_trainings_saved"] == told.n_trainings_saved
    assert any("stopped after" in note for note in facts["notes"])


def test_a_narrow_limit_changes_nothing():
    narrow = fitted(stop_when=1e-9, sampler=GpBucb(p=99.99))
    assert narrow.result_.stopped is None
    assert trials_of(narrow) == trials_of(fitted(sampler=GpBucb(p=99.99)))


def test_the_random_candidates_alone_stop_nothing():
    told = fitted(stop_when=1e6).result_.stopped
    assert told.n_candidates == 1 + 2 * 5 and told.n_saved == 20


def test_folds_count_and_the_simple_strategies_go_on():
    changes = {"metric": "balanced_accuracy", "strategies": "auto", "evaluate_on": 3, "n_candidates": 20}
    found = fitted(stop_when=10.0, **changes)
    told = found.result_.stopped
    assert told.n_trainings_saved == 3 * told.n_saved
    assert told.n_candidates == 1 + 8  # of five candidates in a batch, one is a class weight
    whole = fitted(**changes).result_
    assert found.result_.n_models == whole.n_models - told.n_saved


@pytest.mark.parametrize("calls", [3, 6, 10, 11, 15, 16, 17])
def test_an_interrupted_search_stops_at_the_same_place(tmp_path, calls):
    wanted = fitted(stop_when=0.02)
    left = [calls]

    class Interrupted(LogisticRegression):
        def fit(self, *args, **kwargs):
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt
            return super().fit(*args, **kwargs)

    def stored():
        made = search(stop_when=0.02, storage=tmp_path / "study.db")
        made.estimator = Interrupted()
        return made.fit(X[:150], Y[:150], **ROWS)

    try:
        stored()
    except KeyboardInterrupt:
        left[0] = 10_000
        stored()
    left[0] = 10_000
    found = stored()  # of a study that is complete
    assert trials_of(found) == trials_of(wanted)
    assert found.result_.stopped == wanted.result_.stopped


def test_a_stored_search_can_go_on_without_the_limit_and_keeps_what_it_has_with_one(tmp_path):
    storage = tmp_path / "study.db"
    assert fitted(stop_when=0.02, storage=storage).result_.stopped is not None
    assert trials_of(fitted(storage=storage)) == trials_of(fitted())
    again = fitted(stop_when=0.02, storage=storage)  # everything was trained: there is nothing to save
    assert again.result_.stopped is None and again.result_.n_models == 31


def test_searches_side_by_side_stop_each_by_itself():
    from tests.search.test_side_by_side import known, plain_searches

    def some():
        first, second = plain_searches()
        return [type(first)(**{**vars(first), "stop_when": 10.0}), second]

    together, alone = some(), some()
    outcomes = search_side_by_side(together, Budget(9, 3))
    assert outcomes[0].stopped.n_candidates == 6 and outcomes[1].stopped is None
    for one, other in zip(together, alone, strict=True):
        search_side_by_side([other], Budget(9, 3))
        for found, wanted in zip(known(one), known(other), strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_a_comparison_says_that_moew_stopped():
    table = compare(
        search(stop_when=10.0, n_candidates=15),
        X[:150],
        Y[:150],
        **ROWS,
        test=(X[300:], Y[300:]),
        repeats=2,
    )
    assert table["moew"].n_models == 11 and table["random weights"].n_models == 16
    assert "stopped early" in table["moew"].note


@pytest.mark.parametrize("wrong", [-0.1, 0, "0.1", "auto", float("nan"), float("inf"), True, [0.1]])
def test_what_is_no_positive_number_is_refused_at_once(wrong):
    with pytest.raises(InvalidInputError, match="stop_when must be a positive number"):
        fitted(stop_when=wrong)


@pytest.mark.parametrize("sampler", ["random", CoverSampler()])
def test_samplers_without_a_model_are_refused_at_once(sampler):
    with pytest.raises(InvalidInputError, match="needs a sampler with a model.*'gp_bucb'"):
        fitted(stop_when=0.1, sampler=sampler)
