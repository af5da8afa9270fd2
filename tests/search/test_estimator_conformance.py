"""scikit-learn's own conformance checks, with a classifier and a regressor inside."""

from typing import Any

from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks

from moew import ExampleWeightSearch

SMALL = {"embedding": "label", "n_batches": 2, "batch_size": 2, "random_state": 0}


def expected_failures(estimator: Any) -> dict[str, str]:
    reason = "a zero weight and a missing row give other validation rows, as in TunedThresholdClassifierCV"
    return {
        "check_sample_weight_equivalence_on_dense_data": reason,
        "check_sample_weight_equivalence_on_sparse_data": reason,
    }


@parametrize_with_checks(
    [
        ExampleWeightSearch(LogisticRegression(), **SMALL),
        ExampleWeightSearch(Ridge(), **SMALL),
        ExampleWeightSearch(LogisticRegression(), **{**SMALL, "embedding": "directions"}),
        ExampleWeightSearch(Ridge(), **{**SMALL, "embedding": "directions"}),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_conformance(estimator: Any, check: Any) -> None:
    check(estimator)
