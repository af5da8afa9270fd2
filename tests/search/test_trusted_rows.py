"""Training rows are evaluation rows only as far as the validation rows do not contradict them."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

from moew import MetricSearch, Rows, compare, make_metric
from moew.data import LabelledRows
from moew.search import _estimator, _prepare
from moew.search._choices import Part
from moew.search._honest_score import (
    CONTRADICTION,
    TRUST,
    OnBothKinds,
    Origins,
    StrategyScore,
    without_contradicted_rows,
)
from moew.search._strategies import UNWEIGHTED, Variant

N_TEST = 5000


def agreeing(n, share, seed):
    """Rows in which the second feature agrees with the label in a share of them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    y = (X[:, 0] + rng.logistic(size=n) > 0).astype(int)
    X[:, 1] = np.where(rng.random(n) < share, 2 * y - 1, 1 - 2 * y) + 0.3 * rng.standard_normal(n)
    return X, y


def searched(training, validation, **settings):
    settings = {"metric": "accuracy", "n_candidates": 4, "embedding": "label", "random_state": 0, **settings}
    search = MetricSearch.from_settings(LogisticRegression(), verbose=False, **settings)
    return search.fit(*training, validation=(validation[0], validation[1]))


def notes_of(search):
    return [note for note in search.result_.notes if "training rows are not used" in note]


@pytest.mark.parametrize("share", [0.5, 0.1])
def test_rows_in_which_a_feature_means_something_else_are_not_evaluated_on(share):
    search = searched(agreeing(800, 0.9, 0), agreeing(300, share, 1))
    X_test, y_test = agreeing(N_TEST, share, 2)
    result = search.result_
    assert result.n_validation == 300
    assert result.n_out_of_fold < 300
    error = result.honest.standard_error
    assert abs(search.honest_score_ - search.metric_value(X_test, y_test)) < 3 * error


def wrong_labels(n, share, seed):
    """Rows of which a share has a wrong label, whatever the features."""
    X, y = agreeing(n, 0.9, seed)
    return X, np.where(np.random.default_rng(seed + 100).random(n) < share, 1 - y, y)


def test_rows_with_other_scores_are_not_evaluated_on_and_it_is_said_with_both_numbers(monkeypatch):
    monkeypatch.setattr(_prepare, "joint_density_ratio", lambda X, *_, **__: np.ones(len(X)))
    training, validation = wrong_labels(800, 0.3, 0), wrong_labels(300, 0.0, 1)
    search = searched(training, validation)
    assert (search.result_.n_validation, search.result_.n_out_of_fold) == (300, 0)
    (note,) = notes_of(search)
    told = re.fullmatch(
        r"training rows are not used for evaluation: the unweighted model scores (\S+) on them and (\S+) on "
        r"the 300 validation rows\.",
        note,
    )
    model = LogisticRegression()
    on_training = cross_val_score(model, *training, cv=2).mean()
    assert float(told[1]) == pytest.approx(on_training, abs=0.03)
    assert float(told[2]) == pytest.approx(model.fit(*training).score(*validation), abs=0.03)
    assert note in str(search.result_)
    assert not any(note.startswith("evaluated on") for note in search.result_.notes)


def test_rows_of_one_kind_are_evaluated_on():
    used = [
        searched(agreeing(400, 0.7, s), agreeing(200, 0.7, s + 50)).result_.n_out_of_fold for s in range(8)
    ]
    assert np.mean(np.array(used) > 0) > 0.7


def test_what_the_end_of_a_search_contradicts_is_not_evaluated_on(monkeypatch):
    monkeypatch.setattr(_estimator, "look_at_unweighted", lambda prepared: prepared)
    monkeypatch.setattr(_prepare, "joint_density_ratio", lambda X, *_, **__: np.ones(len(X)))
    training, validation = wrong_labels(800, 0.3, 0), wrong_labels(300, 0.0, 1)
    search = searched(training, validation)
    result = search.result_
    assert (result.n_validation, result.n_out_of_fold) == (300, 0)
    assert len(notes_of(search)) == 1
    # Scores are from models of all training rows, as the final one is.
    plain = LogisticRegression().fit(*training).score(*validation)
    assert result.unweighted.apparent == pytest.approx(plain, abs=1e-12)
    # Candidates were evaluated in the folds of the search; their values are now those on the validation rows.
    values = [trial.value for trial in result.trials]
    assert result.best_trial.value == max(values)
    assert all(value * 300 == pytest.approx(round(value * 300), abs=1e-9) for value in values)


def test_a_column_that_the_metric_reads_may_differ_alone():
    @make_metric(greater_is_better=False)
    def charged(y_true, decision, cost):
        return float(np.mean((y_true != decision) * cost))

    rng = np.random.default_rng(0)
    training, validation = agreeing(600, 0.7, 3), agreeing(200, 0.7, 4)
    search = MetricSearch(LogisticRegression(), metric=charged, n_candidates=4, random_state=0, verbose=False)
    search.fit(
        *training,
        validation=Rows(validation[0], validation[1], columns={"cost": 10 * rng.lognormal(0, 0.3, 200)}),
        columns={"cost": rng.lognormal(0, 0.3, 600)},
    )
    assert search.result_.n_out_of_fold == 0
    assert search.honest_score_ > 1.5


def test_the_look_gives_the_same_bits_with_more_processes():
    rows = agreeing(300, 0.8, 0), agreeing(150, 0.7, 1)
    one, two = (searched(*rows, n_jobs=n) for n in (1, 2))
    assert one.honest_score_ == two.honest_score_
    assert one.result_.notes == two.result_.notes


def test_a_comparison_does_not_evaluate_on_contradicted_rows_either():
    training, validation, test = agreeing(500, 0.9, 0), agreeing(200, 0.1, 1), agreeing(500, 0.1, 2)
    search = MetricSearch.from_settings(
        LogisticRegression(), metric="accuracy", embedding="label", n_candidates=3, batch_size=3
    )
    table = compare(
        search,
        *training,
        validation=(validation[0], validation[1]),
        test=(test[0], test[1]),
        repeats=2,
    )
    assert table["unweighted"].apparent.mean() < 0.5


def both(on_given, on_training, halves):
    return OnBothKinds(on_given, on_training, 0.8, np.asarray(halves, dtype=float))


def test_the_difference_is_without_the_biases_of_the_numbers_of_rows():
    # On halves the validation rows look worse by 0.02 more than the training rows do.
    one = both(0.70, 0.75, -0.05 - 0.02 + 0.01 * np.tile([1, -1], 10))
    assert one.difference == pytest.approx(-0.05 + 0.02)
    assert one.error == pytest.approx(0.01)
    assert one.surprise == pytest.approx(-3.0)


def part_of(n):
    return Part(np.arange(n), LabelledRows(np.empty((n, 0)), np.zeros(n)))


@given(st.integers(1, 99), st.integers(100, 500))
def test_training_rows_count_for_less_than_their_number(n_given, n):
    origins = Origins(n_given, n)
    assert origins.shares.sum() == pytest.approx(1)
    assert origins.shares[1] == pytest.approx(TRUST * (n - n_given) / n)
    assert [len(part) for part in origins.split(part_of(n))] == [n_given, n - n_given]
    assert origins.codes.sum() == n_given


@pytest.mark.parametrize("n_given", [0, 50])
def test_rows_of_one_kind_have_no_share(n_given):
    origins = Origins(n_given, 50)
    assert origins.shares.tolist() == [1.0]
    assert len(origins.split(part_of(50))) == 1


def score(of_both):
    own = np.zeros(4)
    return StrategyScore(Variant(UNWEIGHTED, True, None), None, 0.5, own, own, own, both=of_both)


def test_only_differences_beyond_chance_contradict():
    search = MetricSearch(LogisticRegression(), metric="accuracy", random_state=0)
    from moew.data import Rows
    from moew.search._prepare import prepare

    prepared = prepare(search.settings, Rows(*agreeing(100, 0.7, 0)), Rows(*agreeing(50, 0.7, 1)))
    spread = 0.1 * np.tile([1, -1], 5)
    within, beyond = (
        score(both(0.5 + d, 0.5, d + spread)) for d in (0.099 * CONTRADICTION, 0.101 * CONTRADICTION)
    )
    unknown = score(both(np.nan, 0.5, np.full(20, np.nan)))
    assert without_contradicted_rows(prepared, [within, unknown]) is prepared
    looked = without_contradicted_rows(prepared, [within, beyond])
    assert len(looked.data.validation) == 50
    assert any("training rows are not used" in note for note in looked.notes)
    assert looked.data.folds[0].train is None
