"""Hyper-parameters searched together with alpha, and as a simple strategy of their own."""

import subprocess
import sys
from functools import lru_cache

import numpy as np
import pytest
import searches
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from moew import MetricSearch, compare
from moew.exceptions import InvalidInputError
from moew.inspection import landscape
from moew.models import ModelEnsemble
from moew.models.networks import NetworkClassifier
from moew.samplers import Ball, BallAndBox, Box
from moew.search._optuna import ParameterSpace, Tpe
from moew.training import EstimatorTrainer
from moew.types import Training

N, N_VAL, D = 100, 300, 50
C = {"C": FloatDistribution(1e-4, 1e4, log=True)}


@lru_cache
def rows():
    """Few rows with many columns, three of which matter: only a strongly regularised model is good."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N + N_VAL + 1000, D))
    y = (X[:, :3].sum(axis=1) + rng.standard_normal(len(X)) > 0.5).astype(int)
    return X, y


def weak():
    """A model that is hardly regularised at all."""
    return LogisticRegression(C=1e4, max_iter=5000)


def fitted(estimator=None, **changes):
    X, y = rows()
    settings = {
        "metric": "neg_log_loss",
        "embedding": "label",
        "evaluate_on": "validation",
        "search_space": C,
        "n_candidates": 40,
        "batch_size": 10,
        "random_state": 0,
        **changes,
    }
    search = MetricSearch.from_settings(weak() if estimator is None else estimator, **settings)
    return search.fit(X[:N], y[:N], validation=(X[N : N + N_VAL], y[N : N + N_VAL]))


@lru_cache
def usual():
    return fitted()


def score(search):
    X, y = rows()
    return search.score(X[N + N_VAL :], y[N + N_VAL :])


def models_of(search):
    model = search.best_estimator_
    return list(model.models) if isinstance(model, ModelEnsemble) else [model]


def bits(search):
    result = search.result_
    return (
        [
            (trial.number, trial.alpha.tolist(), dict(trial.parameters), trial.value)
            for trial in result.trials
        ],
        [(strategy.name, strategy.apparent, strategy.honest) for strategy in result.strategies],
        [(model.C, model.coef_.tolist()) for model in models_of(search)],
        search.sample_weight_.tolist(),
    )


def test_the_joint_search_finds_a_planted_parameter():
    search = fitted(strategies="example weights", final="best")
    assert search.selected_ == "example weights"
    assert 1e-3 < search.best_params_["C"] < 3
    assert search.best_params_ == {"C": search.best_estimator_.C}
    assert score(search) > score(fitted(strategies="example weights", final="best", search_space=None)) + 0.2
    assert "hyper-parameters" not in [strategy.name for strategy in search.result_.strategies]


def test_every_trial_has_its_parameters_and_the_first_those_of_the_estimator():
    trials = usual().result_.trials
    assert trials[0].parameters == {"C": 1e4}
    assert not trials[0].alpha.any()
    found = [trial.parameters["C"] for trial in trials[1:]]
    assert len(set(found)) > 10
    assert all(1e-4 <= value <= 1e4 for value in found)
    assert {len(trial.alpha) for trial in trials} == {usual().fitted_.weighting.n_dims}
    assert {len(trial.point) for trial in trials} == {usual().fitted_.weighting.n_dims + 1}
    assert all(trial.parameters == {} for trial in fitted(search_space=None).result_.trials)


def test_hyper_parameters_alone_are_a_simple_strategy_that_can_be_selected():
    search = fitted(random_state=2)
    assert search.selected_ == "hyper-parameters"
    assert 1e-3 < search.best_estimator_.C < 3
    assert search.best_params_ == {"C": search.best_estimator_.C}
    np.testing.assert_array_equal(search.sample_weight_, np.ones(N))
    X, y = rows()
    np.testing.assert_allclose(search.example_weights(X[:9], y[:9]), 1.0)
    assert score(search) > score(fitted(search_space=None)) + 0.2
    strategies = {strategy.name: strategy for strategy in search.result_.strategies}
    assert strategies["hyper-parameters"].simple
    assert search.honest_score_ > search.unweighted_score_


def test_the_candidates_of_all_strategies_are_as_many_as_asked_for():
    search = usual()
    assert search.result_.n_models == 4 * 10 + 2  # and those of α = 0 and of no weights
    assert len(search.result_.trials) == 4 * 6 + 1  # a fifth are class weights, a fifth hyper-parameters
    small = fitted(batch_size=1, n_candidates=4)  # some batches have no candidate of some strategies
    assert small.result_.n_models == 4 + 2


def test_the_same_bits_with_two_jobs():
    assert bits(fitted(n_jobs=2)) == bits(usual())


@pytest.mark.parametrize(
    "calls", [pytest.param(4, marks=pytest.mark.heavy), 9, pytest.param(19, marks=pytest.mark.heavy)]
)
def test_the_same_bits_after_an_interruption(calls, tmp_path, monkeypatch):
    from moew.search._loop import Ledger

    original, count = Ledger.enter, 0

    def enter(ledger, trial, models):
        nonlocal count
        count += 1
        if count == calls:
            raise KeyboardInterrupt
        return original(ledger, trial, models)

    monkeypatch.setattr(Ledger, "enter", enter)
    with pytest.raises(KeyboardInterrupt):
        fitted(storage=tmp_path / "journal")
    monkeypatch.setattr(Ledger, "enter", original)
    assert bits(fitted(storage=tmp_path / "journal")) == bits(usual())


def test_another_space_does_not_continue_a_stored_study(tmp_path):
    small = {"n_candidates": 5, "batch_size": 5, "storage": tmp_path / "journal"}
    fitted(**small)
    with pytest.raises(InvalidInputError, match="other settings.*search space"):
        fitted(**small, search_space={"C": FloatDistribution(1e-3, 1e4, log=True)})
    with pytest.raises(InvalidInputError, match="other settings"):
        fitted(**small, search_space=None)


@pytest.mark.parametrize("final", ["ensemble", "smoothed", "best"])
def test_members_with_different_parameters(final):
    search = fitted(strategies="example weights", final=final)
    models = models_of(search)
    tried = {trial.parameters["C"] for trial in search.result_.trials}
    assert {model.C for model in models} <= tried
    assert (len(models) > 1) == (final == "ensemble")
    assert len({model.C for model in models}) == len(models)
    assert score(search) > -0.7


def test_finalists_are_evaluated_and_trained_again_with_their_parameters():
    search = fitted(evaluate_on="auto")
    assert search.result_.n_out_of_fold == N
    assert search.best_score_ > search.unweighted_score_ + 0.2


def test_candidates_are_trained_again_with_their_parameters():
    search = fitted(strategies="example weights", final="best")
    X, y = rows()
    model = searches.trained_again(search.fitted_, search.result_.best_number, X[:N], y[:N])
    np.testing.assert_array_equal(model.coef_, search.best_estimator_.coef_)
    seen = landscape(search.fitted_)
    assert seen.n_dims == len(search.best_alpha_)
    assert np.isfinite(seen.mean).all()


def test_parameters_of_a_step_and_of_several_kinds():
    model = make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=None))
    space = {
        "decisiontreeclassifier__max_depth": IntDistribution(1, 6),
        "decisiontreeclassifier__criterion": CategoricalDistribution(["gini", "entropy"]),
        "decisiontreeclassifier__ccp_alpha": FloatDistribution(0.0, 0.05, step=0.01),
    }
    search = fitted(
        model,
        search_space=space,
        sample_weight_name="decisiontreeclassifier__sample_weight",
        strategies="example weights",
    )
    first, *others = search.result_.trials
    assert first.parameters["decisiontreeclassifier__max_depth"] is None  # which the space does not hold
    assert {trial.parameters["decisiontreeclassifier__max_depth"] for trial in others} <= set(range(1, 7))
    assert {trial.parameters["decisiontreeclassifier__criterion"] for trial in others} == {"gini", "entropy"}
    depths = {step[-1].max_depth for step in models_of(search)}
    assert depths <= {None, *range(1, 7)}


def test_networks_of_equal_parameters_are_trained_together():
    model = NetworkClassifier(hidden=(4,), steps=30)
    space = {"learning_rate": FloatDistribution(1e-4, 1e-1, log=True)}
    search = fitted(
        model, search_space=space, n_candidates=10, batch_size=5, strategies="example weights", final="best"
    )
    assert search.best_estimator_.learning_rate == search.best_params_["learning_rate"]
    assert search.result_.n_failed == 0


def test_a_space_where_all_fails_leaves_the_other_strategies():
    search = fitted(weak(), search_space={"tol": CategoricalDistribution([-1.0, -2.0])}, n_candidates=10)
    assert "hyper-parameters" not in [strategy.name for strategy in search.result_.strategies]
    assert search.result_.n_failed == 6


@pytest.mark.heavy
def test_compare_has_a_row_of_hyper_parameters_with_the_whole_budget():
    X, y = rows()
    search = MetricSearch.from_settings(
        weak(),
        metric="neg_log_loss",
        embedding="label",
        evaluate_on="validation",
        search_space=C,
        n_candidates=12,
        batch_size=6,
    )
    table = compare(
        search,
        X[:N],
        y[:N],
        validation=(X[N : N + N_VAL], y[N : N + N_VAL]),
        test=(X[N + N_VAL :], y[N + N_VAL :]),
        repeats=2,
    )
    assert table["hyper-parameters"].n_models == 13
    assert (table["hyper-parameters"].test > table["unweighted"].test + 0.2).all()


SPACE = ParameterSpace(
    {
        "rate": FloatDistribution(1e-3, 10.0, log=True),
        "share": FloatDistribution(-1.0, 3.0),
        "stepped": FloatDistribution(0.0, 0.9, step=0.3),
        "depth": IntDistribution(2, 11, step=3),
        "leaves": IntDistribution(1, 64, log=True),
        "kind": CategoricalDistribution([None, "a", True]),
    },
    {"rate": 100.0, "share": None, "stepped": 0.31, "depth": 5, "leaves": 8, "kind": "b"},
    2.0,
)


def test_values_and_coordinates_belong_to_each_other():
    rng = np.random.default_rng(0)
    for point in Box(6, 2.0).sample(rng, 300):
        values = SPACE.values(point)
        again = SPACE.coordinates(values)
        assert np.abs(again).max() <= 2.0
        assert SPACE.values(again) == pytest.approx(values)
        for name, distribution in SPACE.distributions.items():
            assert distribution._contains(distribution.to_internal_repr(values[name]))
    corners = [SPACE.values(np.full(6, end)) for end in (-2.0, 2.0)]
    assert list(corners[0].values()) == pytest.approx([1e-3, -1.0, 0.0, 2, 1, None])
    assert list(corners[1].values()) == pytest.approx([10.0, 3.0, 0.9, 11, 64, True])
    assert [type(value) for value in corners[0].values()][3:5] == [int, int]


def test_equal_parts_belong_to_whole_numbers_steps_and_choices():
    drawn = [SPACE.values(point) for point in Box(6, 2.0).sample(np.random.default_rng(0), 4000)]
    for name, n in (("stepped", 4), ("depth", 4), ("kind", 3)):
        counts = np.unique([str(values[name]) for values in drawn], return_counts=True)[1]
        assert len(counts) == n
        assert counts.min() > 0.9 * 4000 / n


def test_own_values_outside_of_the_space_begin_at_its_edge_and_others_in_the_middle():
    assert SPACE.start[[0, 1, 5]].tolist() == [2.0, 0.0, 0.0]
    assert SPACE.values(SPACE.start) == {
        "rate": 10.0,
        "share": 1.0,
        "stepped": 0.3,
        "depth": 5,
        "leaves": 8,
        "kind": "a",
    }


def test_tpe_is_a_function_of_what_is_known_and_goes_where_scores_are_high():
    sampler, domain = Tpe(SPACE), Box(6, 2.0)
    points = domain.sample(np.random.default_rng(1), 40)
    scores = -np.abs(points[:, 1] - 1.0)
    scores[3] = np.nan

    def propose(seed, pending=points[:0]):
        rng = np.random.default_rng(seed)
        return sampler.propose(points, scores, pending=pending, k=8, domain=domain, rng=rng)

    np.testing.assert_array_equal(propose(0), propose(0))
    assert not np.array_equal(propose(0), propose(1))
    assert not np.array_equal(propose(0), propose(0, domain.sample(np.random.default_rng(2), 5)))
    near = np.concatenate([np.abs(propose(seed)[:, 1] - 1.0) for seed in range(10)])
    assert np.median(near) < 0.6 * np.median(-scores[np.isfinite(scores)])
    with pytest.raises(InvalidInputError, match="6 parameters"):
        sampler.check_domain(Box(2, 1.0))


def test_a_ball_and_a_box():
    domain = BallAndBox(Ball(2, 3.0), Box(2, 1.5))
    points = domain.sample(np.random.default_rng(0), 500)
    assert points.shape == (500, domain.n_dims) == (500, 4)
    assert domain.size == 3.0
    np.testing.assert_allclose(domain.project(points), points)
    assert (domain.edge_distance(points) >= 0).all()
    far = domain.project(9 * points)
    assert np.linalg.norm(far[:, :2], axis=1).max() <= 3.0 + 1e-12
    assert np.abs(far[:, 2:]).max() <= 1.5
    assert float(domain.edge_distance(np.array([0.0, 0.0, 1.5, 0.0]))) == 0.0


@pytest.mark.parametrize(
    ("space", "match"),
    [
        ({"c": FloatDistribution(1, 2)}, "'c' is no parameter of the estimator; it has C, "),
        ({0: FloatDistribution(1, 2)}, "0 is no parameter"),
        ({"C": (0.1, 10)}, "'C' needs an Optuna distribution.*got \\(0.1, 10\\)"),
        ({"C": FloatDistribution(2, 2)}, "'C' has a single value"),
        ({"fit_intercept": CategoricalDistribution([True])}, "'fit_intercept' has a single value"),
        ({"sample_weight": FloatDistribution(1, 2)}, "'sample_weight' is the name of the example weights"),
        ([("C", FloatDistribution(1, 2))], "search_space must map names"),
    ],
)
def test_bad_spaces_are_refused_before_training(space, match):
    class Untrained(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            raise AssertionError("trained")

    with pytest.raises(InvalidInputError, match=match) as caught:
        fitted(Untrained(), search_space=space)
    assert caught.value.argument == "search_space"


def test_a_step_and_a_parameter_of_it_are_not_searched_at_once():
    model = make_pipeline(StandardScaler(), LogisticRegression())
    space = {
        "standardscaler": CategoricalDistribution(["passthrough", None]),
        "standardscaler__with_mean": CategoricalDistribution([True, False]),
    }
    with pytest.raises(InvalidInputError, match="searched already by its part 'standardscaler__with_mean'"):
        fitted(model, search_space=space, sample_weight_name="logisticregression__sample_weight")


def test_an_empty_space_is_none_and_a_search_with_a_space_can_be_cloned():
    small = {"n_candidates": 4, "batch_size": 4}
    assert bits(fitted(search_space={}, **small)) == bits(fitted(search_space=None, **small))
    copied = clone(MetricSearch(weak(), search_space=C))
    assert copied.search_space == C


def test_the_probe_for_ignored_weights_compares_equal_parameters():
    X, y = rows()
    weights = np.stack([np.ones(N), np.where(np.arange(N) % 2, 0.5, 1.5)])
    parameters = [{"C": 1.0}, {"C": 2.0}]
    trainer = EstimatorTrainer(Deaf())
    with pytest.warns(UserWarning, match="seems to ignore them"):
        dict(trainer.train(X[:N], y[:N], Training.each(weights, [0, 1], parameters)))


class Deaf(LogisticRegression):
    """Takes sample weights and ignores them."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(X, y)


_WITHOUT_OPTUNA = """
import sys
sys.modules["optuna"] = None  # as if it were not installed
import numpy as np
from sklearn.linear_model import LogisticRegression
from moew import MetricSearch
from moew.types import Training
from moew.types import Training
X = np.random.default_rng(0).standard_normal((40, 2))
try:
    MetricSearch(LogisticRegression(), search_space={"C": (1, 2)}).fit(X, X[:, 0] > 0)
except ValueError as error:
    print(error.argument, error)
"""


def test_without_optuna_the_error_says_what_to_install():
    done = subprocess.run([sys.executable, "-c", _WITHOUT_OPTUNA], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("search_space a search space needs Optuna")
    assert "pip install 'moew[optuna]'" in done.stdout
