"""Several searches of networks, each on rows of its own, trained in one program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from moew.search._loop import Search, TrainBatch, training_weights
from moew.search._study import Trial
from moew.types import Array

if TYPE_CHECKING:
    from moew.models.networks import RepeatedNetworks


def train_repeats(
    networks: RepeatedNetworks, searches: Sequence[Search], classes: Array | None
) -> TrainBatch:
    """How `search_side_by_side` trains R searches whose rows `networks` holds, R repeats × K candidates at
    once.

    The rows of the searches are `RepeatRows` of these networks. All studies must ask for as many candidates
    in a batch. `classes` (C,) are what classifiers predict, None for regressors.
    """
    from moew.models.networks import TrainedNetworks

    def train(batch: int, asked: Sequence[Sequence[Trial]]) -> Iterator[tuple[int, Trial, list[Any]]]:
        n = len(searches[0].data.training)
        weights = np.empty((len(searches), len(asked[0]), n), dtype=np.float32)
        for r, (search, trials) in enumerate(zip(searches, asked, strict=True)):
            weights[r] = training_weights(search, trials)
        trained = TrainedNetworks(networks, networks.train(weights, batch), classes)
        for r, trials in enumerate(asked):
            for k, trial in enumerate(trials):
                yield r, trial, [trained.model(r, k)]

    return train
