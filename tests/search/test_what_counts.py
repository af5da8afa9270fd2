"""What counts wherever rows are evaluated: weights of validation rows, columns, copies of rows."""

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from moew import MetricSearch, Rows
from moew.exceptions import MoewWarning
from moew.search import prepare
from moew.search._strategies.importance_weights import BY_LABEL, importance_weightings

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 4))
Y = (X[:, 0] + RNG.normal(size=400) > 0).astype(int)
TRAIN, GIVEN = slice(0, 200), slice(200, 400)


def search(metric="f1", model=None):
    return MetricSearch(model or LogisticRegression(), metric=metric, n_candidates=5, random_state=0)


@pytest.mark.parametrize("ratio", [1.0, 6.0])
def test_weights_of_validation_rows_count_in_importance_weights_and_base_weights(ratio):
    given = Rows(X[GIVEN], Y[GIVEN], np.where(Y[GIVEN] == 1, ratio, 1.0))
    prepared = prepare(search().settings, Rows(X[TRAIN], Y[TRAIN]), given)
    pi = importance_weightings(prepared)[BY_LABEL].pi_
    odds = [np.mean(Y[rows]) / (1 - np.mean(Y[rows])) for rows in (TRAIN, GIVEN)]
    found = pi[Y[TRAIN] == 1].mean() / pi[Y[TRAIN] == 0].mean()
    assert found == pytest.approx(ratio * odds[1] / odds[0], rel=0.15)


def test_a_column_of_the_validation_rows_that_nothing_reads_costs_no_training_rows_and_is_told():
    given = Rows(X[GIVEN], Y[GIVEN], columns={"shoe size": np.arange(200.0)})
    with pytest.warns(MoewWarning, match=r"takes the columns \['shoe size'\]"):
        found = search().fit(X[TRAIN], Y[TRAIN], validation=given)
    assert found.result_.n_out_of_fold == 200


@pytest.mark.parametrize("metric", ["accuracy", "roc_auc"])
def test_an_unused_column_is_told_beside_a_scorer_too(metric):
    with pytest.warns(MoewWarning, match=r"takes the columns \['shoe size'\]"):
        search(metric).fit(X[TRAIN], Y[TRAIN], columns={"shoe size": np.arange(200.0)})


def test_the_effective_number_of_evaluation_rows():
    alike = search().fit(X[TRAIN], Y[TRAIN], validation=(X[GIVEN], Y[GIVEN])).result_
    assert alike.n_effective == 400
    moved = search().fit(X[TRAIN] + 0.8, Y[TRAIN], validation=(X[GIVEN], Y[GIVEN])).result_
    assert 200 <= moved.n_effective < 400
    alone = search().set_params(evaluate_on="validation")
    assert alone.fit(X[TRAIN], Y[TRAIN], validation=(X[GIVEN], Y[GIVEN])).result_.n_effective == 200


def told(*rows, **more):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        search("accuracy", DecisionTreeClassifier(random_state=0)).fit(*rows, **more)
    return " ".join(str(one.message) for one in caught)


def test_groups_that_cut_copies_apart_are_told_and_groups_that_hold_them_are_not():
    twice, labels = np.repeat(X[:150], 2, axis=0), np.repeat(RNG.integers(0, 2, 150), 2)
    assert "may cut copies apart" in told(twice, labels, groups=np.arange(300))
    assert "copies" not in told(twice, labels, groups=np.repeat(np.arange(150), 2))


def test_copies_with_fewer_digits_are_found():
    assert "are training rows, too" in told(
        X[TRAIN], Y[TRAIN], validation=(X[TRAIN].astype(np.float32), Y[TRAIN])
    )
