"""Several searches side by side: each ends as it would alone, and networks of all are trained together."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from moew.data import Fold, LabelledRows, SearchData
from moew.embedding import LabelEmbedding
from moew.exceptions import InvalidInputError
from moew.metrics import accuracy
from moew.models.networks import NetworkSpec, RepeatedNetworks
from moew.samplers import Ball
from moew.search._evaluate import Evaluator
from moew.search._loop import Search, search_side_by_side, search_weights
from moew.search._repeats import train_repeats
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


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_each_ends_as_it_would_alone(n_jobs):
    together, alone = plain_searches(), plain_searches()
    search_side_by_side(together, n_batches=2, batch_size=3, show_progress=False, n_jobs=n_jobs)
    for one, other in zip(together, alone, strict=True):
        search_weights(other, n_batches=2, batch_size=3, show_progress=False)
        for found, wanted in zip(known(one), known(other), strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_who_listens_gets_every_trial_with_its_value():
    searches, heard, batches = plain_searches(), {}, []

    def on_trial(place, trial, models, predictions):
        assert not trial.pending and len(models) == 1 and len(predictions) == 60
        heard[place, trial.number] = trial.value

    search_side_by_side(
        searches, n_batches=2, batch_size=3, show_progress=False, on_trial=on_trial, on_batch=batches.append
    )
    assert batches == [1, 2]
    assert heard == {(p, t.number): t.value for p in (0, 1) for t in searches[p].study.trials()}


def test_without_a_trainer_a_way_to_train_is_needed():
    data = data_of(LabelledRows(*drawn(0, 80)), LabelledRows(*drawn(1, 60)))
    with pytest.raises(InvalidInputError, match="without a trainer"):
        search_weights(search_of(data, None, 1), n_batches=1, batch_size=2, show_progress=False)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_networks_of_all_repeats_are_trained_together(n_jobs):
    parts = [drawn(seed, 90) for seed in (3, 4)]
    judged = [drawn(seed, 50) for seed in (5, 6)]
    X, y = (np.stack([part[i] for part in parts]) for i in (0, 1))
    spec = NetworkSpec((3, 1), "sigmoid", "logistic", 50, 30, 0.05)

    def run(n_jobs):
        networks = RepeatedNetworks(spec, X, y[..., None], 2, seed=0)
        placed = networks.place(np.stack([part[0] for part in judged]))
        searches = [
            search_of(
                data_of(LabelledRows(None, y[r]), LabelledRows(placed.of_repeat(r), judged[r][1])), None, r
            )
            for r in (0, 1)
        ]
        told = {}

        def on_trial(place, trial, models, predictions):
            told[place, trial.number] = models[0].decision_function(placed.of_repeat(place))

        train = train_repeats(networks, searches, CLASSES, n_jobs)
        search_side_by_side(
            searches,
            n_batches=2,
            batch_size=3,
            show_progress=False,
            train=train,
            on_trial=on_trial,
            keep=False,
        )
        return searches, told

    (searches, told), (_, again) = run(1), run(n_jobs)
    assert len(told) == 2 * 6
    for (place, number), scores in told.items():
        value = searches[place].study.trials()[number].value
        assert value == np.mean((scores > 0) == (judged[place][1] == 1)) > 0.5
        np.testing.assert_array_equal(scores, again[place, number])
