"""`MetricSearch.as_in_the_paper`: its settings, and a search with them."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

from moew import MetricSearch, NetworkClassifier
from moew.embedding import AutoencoderEmbedding
from moew.exceptions import InvalidInputError
from moew.metrics import worst_class_error
from moew.samplers import GpBucb

X, Y = make_classification(300, weights=[0.7], flip_y=0.1, random_state=0)
QUICK = {"n_candidates": 8, "batch_size": 4, "alpha_zero_repeats": 3, "random_state": 0}


def test_the_settings_are_those_of_the_text():
    search = MetricSearch.as_in_the_paper(LogisticRegression(), "f1")
    assert isinstance(search.strategies, tuple) and len(search.strategies) == 1  # example weights alone
    (weights,) = search.strategies
    assert (search.n_candidates, weights.batch_size, search.metric) == (10 * 20, 20, "f1")
    assert (search.evaluate_on, weights.final, weights.name) == ("validation", "best", "example weights")
    assert (weights.sampler.p, weights.sampler.q, weights.sampler.width) == (68.3, 68.3, "domain")
    assert weights.sampler.noise == "repeats" and weights.alpha_zero_repeats > 1
    assert weights.base_weights == "label_shift" and weights.stop_when is None
    z = weights.embedding
    assert (z.hidden, z.trade_off, z.activation, z.steps, z.learning_rate) == (
        100,
        0.5,
        "sigmoid",
        10_000,
        1e-3,
    )
    assert z.standardize is False
    search.settings.check()


def test_what_is_given_wins_and_a_copy_is_the_same():
    sampler = GpBucb(p=90)
    search = MetricSearch.as_in_the_paper(LogisticRegression(), batch_size=5, sampler=sampler)
    settings = search.settings
    assert settings.batch_size == 5 and settings.sampler is sampler and settings.final == "best"
    assert clone(search).get_params(deep=False).keys() == search.get_params(deep=False).keys()
    with pytest.raises(InvalidInputError, match="no 'batches'"):
        MetricSearch.as_in_the_paper(LogisticRegression(), batches=5)
    first, second = (MetricSearch.as_in_the_paper(LogisticRegression()) for _ in range(2))
    assert first.settings.embedding is not second.settings.embedding


def test_a_search_takes_the_best_candidate_and_the_noise_of_its_first_models():
    model = NetworkClassifier(hidden=(3,), steps=50, loss="hinge")
    embedding = AutoencoderEmbedding(3, steps=100, standardize=False)
    search = MetricSearch.as_in_the_paper(model, worst_class_error(), embedding=embedding, **QUICK)
    search.fit(X[:150], Y[:150], validation=(X[150:], Y[150:]))
    assert search.selected_ == "example weights" and search.decision_ is None
    trials = search.result_.trials
    assert [bool(trial.alpha.any()) for trial in trials] == [False] * 3 + [True] * 8
    Z = search.study_.weighting.Z_
    assert ((Z > 0) & (Z < 1)).all() and Z.shape == (150, 3)  # the middle layer, as it is
    assert all(np.linalg.norm(trial.alpha) <= 5 + 1e-12 for trial in trials)
    assert search.best_score_ <= min(trial.value for trial in trials)  # or the model without weights


def test_validation_rows_are_needed_and_models_for_the_noise():
    search = MetricSearch.as_in_the_paper(LogisticRegression(), "f1", **QUICK)
    with pytest.raises(InvalidInputError, match="given validation rows: pass validation"):
        search.fit(X, Y)
    with pytest.raises(InvalidInputError, match="noise='repeats'.*alpha_zero_repeats"):
        search = MetricSearch.as_in_the_paper(
            LogisticRegression(), "f1", **{**QUICK, "alpha_zero_repeats": 1}
        )
        search.fit(X[:150], Y[:150], validation=(X[150:], Y[150:]))
