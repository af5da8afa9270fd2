"""`ExampleWeightSearch.as_in_the_paper`: its settings, and a search with them."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

from moew import ExampleWeightSearch, NetworkClassifier
from moew.embedding import AutoencoderEmbedding
from moew.exceptions import InvalidInputError
from moew.metrics import worst_class_error
from moew.samplers import GpBucb

X, Y = make_classification(300, weights=[0.7], flip_y=0.1, random_state=0)
QUICK = {"n_batches": 2, "batch_size": 4, "alpha_zero_repeats": 3, "random_state": 0}


def test_the_settings_are_those_of_the_text():
    search = ExampleWeightSearch.as_in_the_paper(LogisticRegression(), "f1")
    assert (search.n_batches, search.batch_size, search.metric) == (10, 20, "f1")
    assert (search.validation, search.final, search.guard) == (None, "best", False)
    assert (search.sampler.p, search.sampler.q, search.sampler.width) == (68.3, 68.3, "domain")
    assert search.sampler.noise == "repeats" and search.alpha_zero_repeats > 1
    assert search.base_weights == "label_shift" and search.stop_when is None
    z = search.embedding
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
    search = ExampleWeightSearch.as_in_the_paper(LogisticRegression(), batch_size=5, sampler=sampler)
    assert search.batch_size == 5 and search.sampler is sampler and search.final == "best"
    assert clone(search).get_params(deep=False).keys() == search.get_params(deep=False).keys()
    with pytest.raises(TypeError, match="batches"):
        ExampleWeightSearch.as_in_the_paper(LogisticRegression(), batches=5)
    first, second = (ExampleWeightSearch.as_in_the_paper(LogisticRegression()) for _ in range(2))
    assert first.embedding is not second.embedding


def test_a_search_takes_the_best_candidate_and_the_noise_of_its_first_models():
    model = NetworkClassifier(hidden=(3,), steps=50, loss="hinge")
    embedding = AutoencoderEmbedding(3, steps=100, standardize=False)
    search = ExampleWeightSearch.as_in_the_paper(model, worst_class_error(), embedding=embedding, **QUICK)
    search.fit(X[:150], Y[:150], X_val=X[150:], y_val=Y[150:])
    assert search.chosen_ == "example weights" and search.decision_ is None
    trials = search.result_.trials
    assert [bool(trial.alpha.any()) for trial in trials] == [False] * 3 + [True] * 8
    Z = search.study_.weighting.Z_
    assert ((Z > 0) & (Z < 1)).all() and Z.shape == (150, 3)  # the middle layer, as it is
    assert all(np.linalg.norm(trial.alpha) <= 5 + 1e-12 for trial in trials)
    assert search.best_score_ <= min(trial.value for trial in trials)  # or the model without weights


def test_validation_rows_are_needed_and_models_for_the_noise():
    search = ExampleWeightSearch.as_in_the_paper(LogisticRegression(), "f1", **QUICK)
    with pytest.raises(InvalidInputError, match="X_val and y_val"):
        search.fit(X, Y)
    with pytest.raises(InvalidInputError, match="noise='repeats'.*alpha_zero_repeats"):
        search.set_params(alpha_zero_repeats=1).fit(X[:150], Y[:150], X_val=X[150:], y_val=Y[150:])
