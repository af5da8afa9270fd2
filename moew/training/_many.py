"""Trainer for models that train many weightings at once, with `fit_many`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from sklearn.base import clone
from sklearn.utils import _safe_indexing

from moew.data._read_only import read_only
from moew.types import FloatArray, IntArray, Labels, Rows


@dataclass(frozen=True)
class ManyTrainer:
    """Passes all K weightings to `estimator.fit_many(X, y, weights, seeds)`."""

    estimator: Any

    def train(
        self,
        X: Rows,
        y: Labels,
        weights: FloatArray,
        seeds: Sequence[int],
        fold: IntArray | None = None,
    ) -> Iterator[tuple[int, Any]]:
        """Yield (k, fitted model or exception) for each of the weights (K, n), as they finish.

        The n rows are those of X whose numbers are in `fold` (n,), or all of them.
        """
        own = self.estimator.get_params().get("random_state")
        chosen = [own if isinstance(own, Integral) else seed for seed in seeds]
        done = set()
        if fold is not None:
            X, y = _safe_indexing(X, fold), y[fold]
        try:
            for k, model in clone(self.estimator).fit_many(read_only(X), read_only(y), weights, chosen):
                done.add(k)
                yield k, model
        except Exception as error:
            yield from ((k, error) for k in range(len(weights)) if k not in done)
