"""Train the networks of several searches, each on its own rows, in one program."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from joblib import Parallel, delayed

from experiments.networks._repeats import RepeatedNetworks, TrainedNetworks
from moew.exceptions import Argument, InvalidInputError
from moew.search._loop import Search, TrainedTrials
from moew.search._study import Trial
from moew.types import Array


def train_repeats(
    networks: RepeatedNetworks, searches: Sequence[Search], classes: Array | None, n_jobs: int = 1
) -> Callable[[int, Sequence[Sequence[Trial]]], TrainedTrials]:
    """The function that trains a batch, given its number, of R searches whose rows `networks` holds:
    R repeats × K candidates are trained at once.

    The rows of the searches are `RepeatRows` of these networks. All studies must ask for the same number of
    candidates in a batch. `classes` (C,) are what classifiers predict, None for regressors. `n_jobs` threads
    compute the weights.
    """
    if any(search.stop_when is not None for search in searches):
        raise InvalidInputError(
            "searches that are trained in one program cannot stop one by one: leave out ",
            Argument("stop_when"),
            ".",
            argument="stop_when",
        )

    def train(batch: int, asked: Sequence[Sequence[Trial]]) -> TrainedTrials:
        n = len(searches[0].data.training)
        weights = np.empty((len(searches), len(asked[0]), n), dtype=np.float32)

        def fill(r: int) -> None:
            alphas = np.stack([trial.alpha for trial in asked[r]])
            weights[r] = searches[r].weighting.training_weights(alphas)

        Parallel(n_jobs=n_jobs, prefer="threads")(delayed(fill)(r) for r in range(len(searches)))
        trained = TrainedNetworks(networks, networks.train(weights, batch), classes)
        for r, trials in enumerate(asked):
            for k, trial in enumerate(trials):
                yield r, trial, [trained.model(r, k)]

    return train
