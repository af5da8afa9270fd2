"""The class weights of Theorem 1 as candidates of the default search."""

import numpy as np
import pytest
from problems import shifted_classes
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, fbeta_score, make_scorer

from moew import ExampleWeightSearch, make_metric
from moew.data import UserRows
from moew.embedding import DirectionsEmbedding
from moew.metrics import measure_of, resolve_metric
from moew.samplers import Ball, Halving
from moew.search._loop import search_side_by_side
from moew.search._prepare import fit_weighting, prepare
from moew.search._searches import list_searches, simple_search
from moew.search._study import WeightStudy
from moew.search._theorem_1 import _alpha
from moew.search._ways import CLASS_WEIGHTS, WEIGHTS
from moew.theory import optimal_class_weights
from moew.weighting import ExampleWeighting, UniformBaseWeights

BATCHES = {"n_batches": 3, "batch_size": 10, "show_progress": False}


def prepared_with(rows, **settings):
    settings = {"random_state": 0, "base_weights": "uniform", **settings}
    search = ExampleWeightSearch(LogisticRegression(), **settings)
    nothing = (None, None, None)
    return prepare(
        search.settings, UserRows(rows.X, rows.y, *nothing), UserRows(rows.X_val, rows.y_val, *nothing)
    )


def class_weight_trials(prepared, **more):
    searches = list_searches(prepared, fit_weighting(prepared))
    outcomes = search_side_by_side(list(searches.values()), **BATCHES, **more)
    by_name = dict(zip(searches, outcomes, strict=True))
    return searches[CLASS_WEIGHTS], by_name


def weight_by_class(search, trial, y):
    weights = search.study.training_weights(trial)
    return np.array([weights[y == label][0] for label in np.unique(y)])


@pytest.mark.parametrize("base_weights", ["uniform", "label_shift"])
@pytest.mark.parametrize("metric", ["f1", "g_mean", "q_mean", "jaccard", make_scorer(fbeta_score, beta=2)])
def test_the_first_class_weights_of_the_second_batch_are_the_theorem_s(metric, base_weights):
    rows = shifted_classes(200)
    prepared = prepared_with(rows, metric=metric, base_weights=base_weights)
    search, outcomes = class_weight_trials(prepared)
    holder = WEIGHTS if base_weights == "uniform" else CLASS_WEIGHTS
    n_zero = search.study.alpha_zero_repeats
    assert n_zero == (holder == CLASS_WEIGHTS)
    trials = outcomes[CLASS_WEIGHTS].trials
    assert len(trials) == n_zero + 6  # no more than without the theorem
    judged = prepared.data.validation
    make, _ = measure_of(resolve_metric(metric), 1)
    shares = np.bincount(judged.y) / len(judged.y)
    scores = outcomes[holder].predictions[0].scores
    found = optimal_class_weights(make(shares), judged.y, scores)
    wanted = found.weights / (np.bincount(rows.y) / len(rows.y))
    weights = weight_by_class(search, trials[n_zero + 2], rows.y)
    assert weights[1] / weights[0] == pytest.approx(wanted[1] / wanted[0], rel=1e-6)
    others = [float(trial.alpha[0]) for trial in trials if trial.alpha.any()]
    np.testing.assert_array_equal([others[k] for k in (0, 1, 3, 4, 5)], [-2, 2, -3, 1, -1])


def test_three_classes():
    rows = shifted_classes(300, 3)
    prepared = prepared_with(rows, metric="g_mean")
    search, outcomes = class_weight_trials(prepared)
    judged = prepared.data.validation
    make, positive = measure_of(prepared.evaluator.metric, None)
    assert positive is None
    found = optimal_class_weights(
        make(np.bincount(judged.y) / len(judged.y)), judged.y, outcomes[WEIGHTS].predictions[0].scores
    )
    wanted = found.weights / np.bincount(rows.y)
    weights = weight_by_class(search, outcomes[CLASS_WEIGHTS].trials[2], rows.y)
    assert weights / weights.sum() == pytest.approx(wanted / wanted.sum(), rel=1e-6)


def test_the_positive_class_of_the_metric_may_be_the_first():
    rows = shifted_classes(200)
    turned = rows._replace(y=1 - rows.y, y_val=1 - rows.y_val)
    found = []
    for one, positive in ((rows, 1), (turned, 0)):
        metric = make_scorer(f1_score, pos_label=positive)
        prepared = prepared_with(one, metric=metric)
        search, outcomes = class_weight_trials(prepared)
        weights = weight_by_class(search, outcomes[CLASS_WEIGHTS].trials[2], one.y)
        found.append(weights[positive] / weights[1 - positive])
    # The judged training rows are drawn in another order, so that they are not the same.
    assert found[0] == pytest.approx(found[1], rel=0.2)


@pytest.mark.parametrize(
    "metric",
    [
        "accuracy",  # without a shift its weights are all the same: the unweighted model
        "roc_auc",
        "worst_class_error",  # does not strictly decrease in every loss
        make_metric(lambda y, decision: float((y == decision).mean())),
        "recall",
    ],
)
def test_other_metrics_get_the_sampler_s_class_weights(metric):
    rows = shifted_classes(200)
    same = rows._replace(X_val=rows.X, y_val=rows.y)
    _, outcomes = class_weight_trials(prepared_with(same, metric=metric))
    alphas = [float(trial.alpha[0]) for trial in outcomes[CLASS_WEIGHTS].trials]
    assert alphas == [-2, 2, -3, 1, -1, 3]


def test_a_rule_of_the_user_s_gets_none():
    for decision in (0.3, "tuned"):
        prepared = prepared_with(shifted_classes(200), metric="f1", decision=decision)
        assert list_searches(prepared, fit_weighting(prepared))[CLASS_WEIGHTS].suggestion is None


def test_class_weights_alone_take_their_own_unweighted_model():
    search = simple_search(prepared_with(shifted_classes(200), metric="f1"))
    (outcome,) = search_side_by_side([search], **BATCHES)
    alphas = [float(trial.alpha[0]) for trial in outcome.trials]
    assert len(alphas) == 31
    sequence = WeightStudy(None, Ball(1, 4.0), sampler=Halving(), n_initial=0, seed=0)
    wanted = [float(trial.alpha[0]) for trial in sequence.ask(30)]
    assert alphas[:11] == wanted[:11]
    assert alphas[12:] == wanted[11:]
    assert alphas[11] not in wanted


class Stopped(Exception):  # noqa: N818
    """Ends a search early."""


@pytest.mark.parametrize("last", [1, 2])
def test_an_interrupted_search_goes_on_to_the_same_candidates(tmp_path, last):
    rows = shifted_classes(200)

    def stop(n_done):
        if n_done == last:
            raise Stopped

    stored = {"metric": "f1", "storage": tmp_path / "study.log"}
    with pytest.raises(Stopped):
        class_weight_trials(prepared_with(rows, **stored), on_batch=stop)
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


def test_rare_classes_gain_from_the_theorem_s_weights():
    rng = np.random.default_rng(0)
    y = rng.choice(3, 3000, p=[0.85, 0.1, 0.05])
    X = np.array([[0.0, 0.0], [1.5, 0.0], [0.0, 1.5]])[y] + rng.standard_normal((3000, 2))
    rows = shifted_classes()._replace(X=X[:1500], y=y[:1500], X_val=X[1500:], y_val=y[1500:])
    _, outcomes = class_weight_trials(prepared_with(rows, metric="g_mean"))
    by_theorem, unweighted = outcomes[CLASS_WEIGHTS].trials[2].value, outcomes[WEIGHTS].trials[0].value
    assert by_theorem > unweighted + 0.2
    # The others, four of them random and one by the Gaussian process, are not better.
    others = [trial.value for trial in outcomes[CLASS_WEIGHTS].trials if trial.number != 2]
    assert by_theorem >= max(others) - 0.01


def test_a_class_whose_training_rows_have_no_weight_gets_no_suggestion():
    rows = shifted_classes(60)
    settings = {"base_weights": "uniform", "embedding": [0], "honest": None, "random_state": 0}
    search = ExampleWeightSearch(LogisticRegression(), metric="balanced_accuracy", **settings)
    own = (rows.y == 0).astype(float)
    search.set_params(n_batches=2, batch_size=2).fit(rows.X, rows.y, own, X_val=rows.X_val, y_val=rows.y_val)
    assert all(trial.error is None for trial in search.result_.trials)
