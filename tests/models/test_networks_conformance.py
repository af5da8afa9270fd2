"""scikit-learn's own checks of an estimator, for both networks."""

import jax
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from moew.models.networks import NetworkClassifier, NetworkRegressor

_QUICK = {"steps": 60, "learning_rate": 0.1, "random_state": 0}  # one hidden layer and none: less to compile
_RANDOM = "mini-batches are drawn at random, and columns are scaled by the rows, not by their weights"


def _expected_failures(estimator):
    names = (
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    )
    return dict.fromkeys(names, _RANDOM)


@pytest.fixture(scope="module", autouse=True)
def quick_compilation():
    """The checks use some fifty shapes, each compiled once and run for a moment."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


@parametrize_with_checks(
    [NetworkClassifier(hidden=(4,), **_QUICK), NetworkRegressor(hidden=(), **_QUICK)],
    expected_failed_checks=_expected_failures,
)
def test_scikit_learn_conformance(estimator, check):
    check(estimator)
