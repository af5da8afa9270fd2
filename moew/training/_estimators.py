"""Models that train one at a time: any scikit-learn estimator, through joblib."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from joblib.parallel import get_active_backend
from sklearn import config_context
from sklearn.base import clone
from sklearn.utils.parallel import Parallel, delayed

from moew.protocols import FloatArray, Labels, Rows
from moew.threads import one_blas_thread


@dataclass(frozen=True)
class EstimatorTrainer:
    """Fits a clone of `estimator` for each weighting; joblib decides where."""

    estimator: Any
    sample_weight_name: str = "sample_weight"
    n_jobs: int | None = None

    def train(
        self, X: Rows, y: Labels, weights: FloatArray, seeds: Sequence[int]
    ) -> Iterator[tuple[int, Any]]:
        """Yield (k, fitted model or exception) for each of the weights (K, n), as they finish."""
        jobs = (
            delayed(_fit)(k, self.estimator, self.sample_weight_name, X, y, weights[k], seed)
            for k, seed in enumerate(seeds)
        )
        # joblib's multiprocessing backend cannot hand models out as they finish, only all at the end.
        backend, _ = get_active_backend()
        as_they_finish = getattr(backend, "supports_return_generator", False)
        yield from Parallel(
            n_jobs=self.n_jobs, return_as="generator_unordered" if as_they_finish else "list"
        )(jobs)


def _fit(
    k: int, estimator: Any, weight_name: str, X: Rows, y: Labels, weight: FloatArray, seed: int
) -> tuple[int, Any]:
    # A candidate that fails must not take the others with it, so the exception is an answer too.
    try:
        model = with_seed(estimator, seed)
        # "step__sample_weight" is how a Pipeline takes weights where metadata routing is off.
        routing = {"enable_metadata_routing": False} if "__" in weight_name else {}
        with config_context(**routing), one_blas_thread():
            model.fit(X, y, **{weight_name: weight})
    except Exception as error:
        return k, error
    return k, model


def with_seed(estimator: Any, seed: int) -> Any:
    """A clone whose random states that the user left open (None) are set to `seed`."""
    model = clone(estimator)
    names = sorted(name for name in model.get_params() if name.split("__")[-1] == "random_state")
    open_states = {name: seed for name in names if model.get_params()[name] is None}
    return model.set_params(**open_states) if open_states else model
