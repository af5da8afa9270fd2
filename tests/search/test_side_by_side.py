"""Several searches side by side: each ends as it would alone."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from moew.data import Fold, LabelledRows, SearchData
from moew.embedding import LabelEmbedding
from moew.exceptions import InvalidInputError
from moew.metrics import accuracy
from moew.samplers import Ball
from moew.search._evaluate import Evaluator
from moew.search._loop import Budget, Search, search_side_by_side
from moew.search._study import WeightStudy
from moew.training import resolve_trainer
from moew.weighting import ExampleWeighting, UniformBaseWeights

CLASSES = np.array([0, 1])


def drawn(seed, n):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] + rng.normal(size=n) > 0).astype(int)


def data_of(training, validation):
    return SearchData("classification", training, validation, (Fold(None, np.arange(len(validation))),))


def search_of(data, trainer, seed):
    y = data.training.y
    weighting = ExampleWeighting(LabelEmbedding(), UniformBaseWeights()).fit(None, y, task="classification")
    study = WeightStudy(None, Ball(2, 3.0), n_initial=3, alpha_zero_repeats=0, seed=seed)
    return Search(study, data, trainer, weighting, Evaluator(accuracy(), None, CLASSES))


def plain_searches():
    trainer = resolve_trainer(LogisticRegression(), "sample_weight", 1)
    data = data_of(LabelledRows(*drawn(0, 80)), LabelledRows(*drawn(1, 60)))
    return [search_of(data, trainer, seed) for seed in (1, 2)]


def known(search):
    trials = search.study.trials()
    return np.array([trial.value for trial in trials]), np.array([trial.alpha for trial in trials])


def test_each_ends_as_it_would_alone():
    together, alone = plain_searches(), plain_searches()
    search_side_by_side(together, Budget(6, 3))
    for one, other in zip(together, alone, strict=True):
        search_side_by_side([other], Budget(6, 3))
        for found, wanted in zip(known(one), known(other), strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_who_listens_gets_every_trial_with_its_value():
    searches, heard = plain_searches(), {}

    def on_told(place, trial, models, predictions):
        assert not trial.pending and len(models) == 1 and len(predictions) == 60
        heard[place, trial.number] = trial.value

    search_side_by_side(searches, Budget(6, 3), on_told=on_told)
    assert heard == {(p, t.number): t.value for p in (0, 1) for t in searches[p].study.trials()}


def test_without_a_trainer_a_strategy_to_train_is_needed():
    data = data_of(LabelledRows(*drawn(0, 80)), LabelledRows(*drawn(1, 60)))
    with pytest.raises(InvalidInputError, match="without a trainer"):
        search_side_by_side([search_of(data, None, 1)], Budget(2, 2))
