"""scikit-learn's own conformance checks, with a classifier and a regressor inside."""

from typing import Any

import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks

from moew import MetricSearch

SMALL = {"embedding": "label", "n_candidates": 4, "batch_size": 2, "random_state": 0}


def expected_failures(estimator: Any) -> dict[str, str]:
    if isinstance(estimator.estimator, Ridge) and estimator.settings.embedding == "label":
        return {}  # the unweighted model is selected, whichever rows are validation rows
    reason = "a zero weight and a missing row give other validation rows, as in TunedThresholdClassifierCV"
    return {
        "check_sample_weight_equivalence_on_dense_data": reason,
        "check_sample_weight_equivalence_on_sparse_data": reason,
    }


def searches(**settings: Any) -> list[MetricSearch]:
    return [
        MetricSearch.from_settings(model, **{**SMALL, **settings})
        for model in (LogisticRegression(), Ridge())
    ]


@parametrize_with_checks(searches(embedding="directions"), expected_failed_checks=expected_failures)
def test_scikit_learn_conformance(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.heavy
@parametrize_with_checks(searches(), expected_failed_checks=expected_failures)
def test_scikit_learn_conformance_with_weights_by_label(estimator: Any, check: Any) -> None:
    check(estimator)
