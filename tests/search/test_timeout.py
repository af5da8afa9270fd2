"""A search that ends by its timeout, by Ctrl-C or after a number of candidates: what it keeps and says."""

import numpy as np
import pytest
from joblib import parallel_config
from problems import shifted_classes
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

import moew
from experiments.samplers import GridSampler
from moew import MetricSearch, compare
from moew.exceptions import InvalidInputError, MoewWarning, SearchFailedError
from moew.search import CutOff
from moew.search._loop import Deadline

ROWS = shifted_classes(120)
DATA = {"X": ROWS.X, "y": ROWS.y, "validation": (ROWS.X_val, ROWS.y_val)}
N_FIRST = 1 + 1 + 3  # unweighted, α = 0, and three kinds of importance weights
N_ALL = N_FIRST + 12


class Counted(GaussianNB):
    """Counts its fits; some of them are interrupted, or fail."""

    fits, interrupted_at, fails_from = 0, (), None

    def fit(self, X, y, sample_weight=None):
        Counted.fits += 1
        if Counted.fits in Counted.interrupted_at:
            raise KeyboardInterrupt
        if Counted.fails_from is not None and Counted.fits >= Counted.fails_from:
            raise ValueError("too late")
        return super().fit(X, y, sample_weight)


class AtOnce(Counted):
    """Trains all weightings in one call."""

    def fit_many(self, X, y, weights, seeds):
        for k, weight in enumerate(weights):
            yield k, AtOnce().fit(X, y, weight)


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    for name in ("fits", "interrupted_at", "fails_from"):
        monkeypatch.setattr(Counted, name, getattr(Counted, name))


@pytest.fixture
def over_after(monkeypatch):
    """The clock is over after so many fits."""

    def set_to(n_fits):
        monkeypatch.setattr(Deadline, "is_over", property(lambda _: Counted.fits >= n_fits))

    return set_to


def search(model=Counted, **changes):
    settings = {
        "embedding": "label",
        "n_candidates": 12,
        "batch_size": 4,
        "evaluate_on": "validation",
        "random_state": 0,
    }
    return MetricSearch.from_settings(model(), **{**settings, "sampler": "random", **changes})


def fitted(model=Counted, **changes):
    Counted.fits = 0
    return search(model, **changes).fit(**DATA)


def values(found):
    return {trial.number: (*trial.alpha, trial.value) for trial in found.result_.trials}


def assert_same(one, other):
    assert str(one.result_) == str(other.result_) and values(one) == values(other)
    np.testing.assert_array_equal(one.predict_proba(ROWS.X_test), other.predict_proba(ROWS.X_test))


@pytest.mark.parametrize(("n_fits", "n_folds"), [(1, None), (6, None), (20, None), (1, 2), (11, 2)])
def test_the_best_of_what_is_trained_in_time_wins(over_after, n_fits, n_folds):
    evaluate_on = n_folds or "validation"
    whole = fitted(evaluate_on=evaluate_on)
    over_after(n_fits)
    cut = fitted(evaluate_on=evaluate_on, timeout=60)
    told = cut.result_.cut_off
    per = n_folds or 1  # trainings of a candidate
    n_all = whole.result_.n_models
    needed = n_all - 12 + 1  # all models at α = 0, and one candidate
    n_trained = max(-(-n_fits // per), needed)  # those that were begun in time
    if n_trained >= n_all:
        assert told is None
    else:
        assert told == CutOff("timeout", n_trained, n_all, 60.0)
        note = f"ended by its timeout of 60 s: {n_trained} of {n_all} candidates were trained."
        assert note in str(cut.result_) and cut.result_.n_models == n_trained
    assert values(cut).items() <= values(whole).items()
    assert {0, 1} <= set(values(cut))
    best = max(value[-1] for value in values(cut).values())
    assert cut.result_.best_trial.value == best and not any(t.pending for t in cut.result_.trials)
    assert np.isfinite(cut.honest_score_) and np.isfinite(cut.unweighted_score_)
    assert cut.predict(ROWS.X_test).shape == ROWS.y_test.shape


@pytest.mark.parametrize(
    ("changes", "n_jobs"),
    [({"sampler": "gp_bucb"}, 1), ({"evaluate_on": 2}, 3), ({"strategies": "example weights"}, 1)],
)
def test_a_search_that_ends_in_time_has_the_same_bits(changes, n_jobs):
    with parallel_config(backend="threading"):
        assert_same(fitted(**changes), fitted(timeout=1e6, n_jobs=n_jobs, **changes))


def test_several_jobs_begin_nothing_after_the_time(over_after):
    over_after(7)
    with parallel_config(backend="threading"):
        cut = fitted(timeout=60, n_jobs=3)
    assert cut.result_.cut_off.n_trained == 9  # three at a time
    assert values(cut).items() <= values(fitted()).items()


@pytest.mark.parametrize("join", [False, True])
def test_a_stored_search_goes_on_with_more_time_to_the_same_bits(over_after, tmp_path, join):
    whole, storage = fitted(), tmp_path / "study.db"
    over_after(10)
    cut = fitted(storage=storage, timeout=1, join=join)
    assert cut.result_.cut_off.n_trained == 10
    n_final = Counted.fits - 10
    over_after(1000)
    assert_same(fitted(storage=storage, timeout=2, join=join), whole)
    assert Counted.fits == N_ALL - 10 + n_final  # what was told is not trained again
    over_after(0)
    assert_same(fitted(storage=storage, timeout=0.1), whole)  # there is nothing left to train


def test_a_model_that_trains_many_at_once_ends_after_a_batch(over_after):
    over_after(1)
    cut = fitted(AtOnce, timeout=60)
    assert cut.result_.cut_off == CutOff("timeout", N_FIRST + 4, N_ALL, 60.0)


def test_a_search_in_which_nothing_works_says_so_in_time(over_after):
    over_after(1)
    Counted.fails_from = 1
    with pytest.raises(SearchFailedError, match="every candidate so far failed.*too late"):
        fitted(timeout=60)
    Counted.fails_from = None
    assert fitted(timeout=60).result_.cut_off.n_trained == N_FIRST + 1


def test_it_warns_of_a_model_that_ignores_its_weights(over_after):
    class Ignores(Counted):
        def fit(self, X, y, sample_weight=None):
            return super().fit(X, y)

    over_after(1)
    with pytest.warns(MoewWarning, match="weights"):
        fitted(Ignores, timeout=60)


@pytest.mark.parametrize("name", ["timeout", "candidate_timeout"])
@pytest.mark.parametrize("wrong", [0, -1, "60", True, float("nan"), float("inf")])
def test_what_is_no_time_is_refused(name, wrong):
    with pytest.raises(InvalidInputError, match=f"{name} must be a positive number of seconds"):
        fitted(**{name: wrong})


@pytest.mark.parametrize("at", [1, 5, 8, 9, 10, 14])
def test_ctrl_c_leaves_a_fitted_search_on_what_is_there(at):
    whole = fitted()
    Counted.interrupted_at = (at,)
    if at <= N_FIRST + 3:  # the first three example weights come before α = 0 of the other searches
        with pytest.raises(KeyboardInterrupt):
            fitted()
        return
    with pytest.warns(
        MoewWarning, match=f"{at - 1} of {N_ALL} candidates are trained.*Ctrl-C once more.*storage"
    ):
        cut = fitted()
    assert cut.result_.cut_off == CutOff("interrupt", at - 1, N_ALL)
    assert f"the search was interrupted: {at - 1} of {N_ALL} candidates were trained." in cut.result_.notes
    assert len(values(cut)) < len(values(whole)) and values(cut).items() <= values(whole).items()
    assert cut.predict(ROWS.X_test).shape == ROWS.y_test.shape


def test_a_second_ctrl_c_ends_it_at_once():
    Counted.interrupted_at = (12, 13)
    with pytest.raises(KeyboardInterrupt), pytest.warns(MoewWarning):
        fitted()
    assert Counted.fits == 13


def test_ctrl_c_between_a_score_and_its_predictions_loses_that_candidate_only(monkeypatch):
    from moew.search._loop import Ledger

    whole = fitted()
    tell, told = Ledger._tell, []

    def interrupted(ledger, one):
        tell(ledger, one)
        told.append(one)
        if len(told) == 12:
            raise KeyboardInterrupt

    monkeypatch.setattr(Ledger, "_tell", interrupted)
    with pytest.warns(MoewWarning, match=f"11 of {N_ALL}"):
        cut = fitted()
    assert values(cut).items() <= values(whole).items()


def test_ctrl_c_ends_a_stored_search_and_a_comparison_as_ever(tmp_path):
    Counted.interrupted_at = (10,)
    with pytest.raises(KeyboardInterrupt):
        fitted(storage=tmp_path / "study.db")
    assert_same(search(storage=tmp_path / "study.db").fit(**DATA), search().fit(**DATA))
    Counted.fits, Counted.interrupted_at = 0, (30,)
    with pytest.raises(KeyboardInterrupt):
        compare(search(), **DATA, test=(ROWS.X_test, ROWS.y_test), repeats=2)


def test_what_ended_a_search_is_saved(over_after, own_folder):
    pytest.importorskip("skops")
    over_after(7)
    cut = fitted(timeout=60, n_candidates=11)
    cut.save("search.moew", trusted=True)
    again = moew.load("search.moew", trusted=True)
    assert again.result_.cut_off == cut.result_.cut_off == CutOff("timeout", 7, N_ALL - 1, 60.0)
    assert (again.timeout, again.n_candidates) == (60, 11)


def test_any_number_of_candidates_is_trained_also_one_that_is_no_multiple_of_the_batch():
    whole = fitted(strategies="example weights")
    for n in (1, 4, 6, 9):  # less than a batch, one, and batches of which the last is smaller
        fewer = fitted(strategies="example weights", n_candidates=n)
        same = range(1 + n // 4 * 4)  # of the whole batches: the sampler draws a batch together
        assert sorted(values(fewer)) == list(range(1 + n)) and fewer.result_.cut_off is None
        assert [values(fewer)[number] for number in same] == [values(whole)[number] for number in same]
    assert fitted(n_candidates=9).result_.n_models == N_ALL - 3
    assert fitted(n_candidates=9, sampler="gp_bucb").result_.n_models == N_ALL - 3


def test_samplers_that_need_the_budget_are_told_it():
    assert (
        fitted(n_candidates=8, strategies="example weights", sampler=GridSampler()).result_.n_models
        == 1 + 1 + 8
    )


def test_a_stored_search_goes_on_with_more_candidates(tmp_path):
    fitted(storage=tmp_path / "study.db", n_candidates=8)
    assert_same(fitted(storage=tmp_path / "study.db", n_candidates=12), fitted())


@pytest.mark.parametrize("wrong", [0, -3, 2.0, "9", True, None])
def test_what_is_no_number_of_candidates_is_refused(wrong):
    with pytest.raises(InvalidInputError, match="n_candidates must be a whole number of at least 1, got"):
        fitted(n_candidates=wrong)


def test_a_comparison_has_a_number_of_candidates_but_no_timeout():
    data = {**DATA, "test": (ROWS.X_test, ROWS.y_test)}
    logistic = search(LogisticRegression, n_candidates=5)
    table = compare(logistic, **data, repeats=2)
    assert table["random weights"].n_models == 6 and table["unweighted"].n_models == 1
    with pytest.raises(InvalidInputError, match="equally many models.*leave out timeout"):
        compare(logistic.set_params(timeout=5.0), **data, repeats=2)
