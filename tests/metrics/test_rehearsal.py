"""What a metric would raise for every model is raised before anything is trained."""

import numpy as np
import pytest
from problems import shifted_classes, skewed_target
from sklearn.linear_model import LogisticRegression, Ridge

from moew import MetricSearch
from moew.exceptions import InvalidInputError
from moew.metrics import METRICS, accuracy, r_squared, worst_band_relative_error, worst_class_error

CLASSES, NUMBERS = shifted_classes(60, 2), skewed_target(60)


class NeverFitted:
    """Mixed into an estimator: training it fails the test."""

    def fit(self, X, y, sample_weight=None):
        raise AssertionError("it was trained")


class Classifier(NeverFitted, LogisticRegression):
    pass


class Regressor(NeverFitted, Ridge):
    pass


def refused(estimator, metric, X, y):
    with pytest.raises(InvalidInputError) as raised:
        MetricSearch.from_settings(estimator, metric=metric, embedding="label", random_state=0).fit(X, y)
    return raised.value


@pytest.mark.parametrize("metric", [accuracy(), worst_class_error()], ids=lambda metric: metric.name)
def test_a_metric_of_classes_does_not_evaluate_numbers(metric):
    error = refused(Regressor(), metric, NUMBERS.X, NUMBERS.y)
    assert f"metric='{metric.registry_name}' evaluates classes, but numbers are predicted here" in str(error)
    assert "such as metric='r_squared', or a classifier as estimator." in str(error)
    assert error.argument == "metric"


@pytest.mark.parametrize("metric", [r_squared(), worst_band_relative_error(), "r2"], ids=str)
def test_a_metric_of_numbers_does_not_evaluate_texts(metric):
    error = refused(Classifier(), metric, CLASSES.X, np.array(["no", "yes"])[CLASSES.y])
    assert "cannot evaluate a classification with 2 different labels, such as ['no', 'yes']" in str(error)
    assert str(error).endswith(": it needs labels that are numbers.")
    assert error.argument == "metric"


@pytest.mark.parametrize("metric", ["f1", "average_precision", "neg_brier_score"])
def test_a_scorer_that_needs_to_know_the_positive_label_says_so(metric):
    error = refused(Classifier(), metric, CLASSES.X, np.array(["no", "yes"])[CLASSES.y])
    assert error.argument == "pos_label" and "takes 1 for the positive label, unless told" in str(error)


def test_a_function_of_the_users_that_fails_on_made_up_predictions_is_left_to_real_ones():
    def picky(y, decision):
        raise RuntimeError("no")

    with pytest.raises(Exception, match="it was trained"):
        MetricSearch.from_settings(
            Classifier(), metric=picky, embedding="label", n_candidates=1, batch_size=1
        ).fit(CLASSES.X, CLASSES.y)


def test_every_metric_of_the_registry_knows_its_name():
    assert all(METRICS[name].make().registry_name == name for name in METRICS)
