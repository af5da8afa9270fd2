"""Searches and storages do without Optuna; an export to it says what to install."""

import subprocess
import sys

import numpy as np
import pytest

from moew import WeightStudy
from moew.exceptions import InvalidInputError
from moew.samplers import Ball

_SEARCH = """
import sys
sys.modules["optuna"] = None  # as if it were not installed
import numpy as np
from sklearn.linear_model import LogisticRegression
from moew import MetricSearch, compare
X = np.random.default_rng(0).standard_normal((120, 2))
y = X[:, 0] + 0.5 * np.random.default_rng(1).standard_normal(120) > 0.7
budget = {"n_candidates": 6, "batch_size": 3, "random_state": 0}
search = MetricSearch.from_settings(LogisticRegression(), embedding="label", **budget)
print(len(search.fit(X, y).result_.trials))
compare(search, X, y, validation=(X, y), test=(X, y), repeats=2)
stored = search.set_params(storage=sys.argv[1]).fit(X, y)
try:
    stored.study_.to_optuna()
except ValueError as error:
    print(error)
"""


def test_searches_comparisons_and_storages_need_no_optuna_and_an_export_says_so(tmp_path):
    command = [sys.executable, "-c", _SEARCH, str(tmp_path / "study.db")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    first, second = done.stdout.splitlines()
    assert first == "5"  # two of the seven candidates are class weights
    assert "pip install 'moew[optuna]'" in second


def score(alpha):
    return -float(((alpha - 0.5) ** 2).sum())


def test_alphas_that_are_known_are_asked_with_and_go_on_as_they_would_have():
    whole, again = (WeightStudy(None, Ball(2, 1.0), n_initial=4, seed=3) for _ in range(2))
    for _ in range(3):
        for trial in whole.ask(4):
            whole.tell(trial.number, score(trial.alpha))
    alphas = np.array([trial.alpha for trial in whole.trials()])
    for trial in again.ask_with(alphas[:8]):
        again.tell(trial.number, score(trial.alpha))
    np.testing.assert_array_equal(again.next_alphas(4), alphas[8:])
    assert again.n_asked == 8  # nothing was recorded
    assert [trial.number for trial in again.ask(4)] == [8, 9, 10, 11]
    np.testing.assert_array_equal([trial.alpha for trial in again.trials()], alphas)


def test_a_study_may_do_without_alpha_zero():
    study = WeightStudy(None, Ball(2, 1.0), n_initial=2, alpha_zero_repeats=0)
    assert all(np.any(trial.alpha != 0) for trial in study.ask(2))
    with pytest.raises(InvalidInputError, match="at least 0"):
        WeightStudy(None, Ball(2, 1.0), alpha_zero_repeats=-1)
