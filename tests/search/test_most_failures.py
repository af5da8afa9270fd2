"""A search of which too many candidates fail ends, and says why."""

import numpy as np
import pytest
from problems import shifted_classes
from sklearn.linear_model import LogisticRegression

from moew import MetricSearch, compare
from moew.exceptions import SearchFailedError

ROWS = shifted_classes(60)


class Fails(LogisticRegression):
    """Fails for a share of the weightings, for two reasons."""

    def __init__(self, share=0.5):
        super().__init__()
        self.share = share

    def fit(self, X, y, sample_weight=None):
        if not np.allclose(sample_weight, sample_weight[0]):
            chance = np.random.default_rng(int(sample_weight[0] * 1e9)).random()
            if chance < self.share:
                raise RuntimeError("the disk is full" if chance < self.share * 0.8 else "the moon is full")
        return super().fit(X, y, sample_weight)


def search(share, **settings):
    usual = {"embedding": "label", "base_weights": "uniform", "evaluate_on": "validation"}
    budget = {"n_candidates": 36, "batch_size": 12, "random_state": 0}
    return MetricSearch.from_settings(Fails(share), **{**usual, **budget, **settings})


def fit(share, **settings):
    return search(share, **settings).fit(ROWS.X, ROWS.y, validation=(ROWS.X_val, ROWS.y_val))


def test_a_search_with_some_failures_goes_on_by_default():
    errors = [trial.error for trial in fit(0.5).study_.trials()]
    assert any(errors) and not all(errors)


def test_a_search_with_too_many_failures_ends_with_the_reasons(tmp_path):
    storage = str(tmp_path / "study.db")
    with pytest.raises(
        SearchFailedError, match=r"\d+ of 1\d candidates failed, more than most_failures=0.2"
    ) as caught:
        fit(0.6, most_failures=0.2, storage=storage)
    said = str(caught.value)
    assert "times: RuntimeError: the disk is full" in said
    assert said.index("the disk is full") < said.index("the moon is full")  # the most frequent first
    assert isinstance(caught.value.__cause__, RuntimeError)
    again = fit(0.6, most_failures=1, storage=storage)  # what was computed is kept
    assert [trial.value for trial in again.study_.trials()] == pytest.approx(
        [trial.value for trial in fit(0.6, most_failures=1).study_.trials()], nan_ok=True
    )


def test_nearly_all_failures_end_a_search_by_default():
    with pytest.raises(SearchFailedError, match="more than most_failures=0.9 allows"):
        fit(1.0)
    assert fit(1.0, most_failures=1, strategies="example weights", final="best").best_score_ > 0


def test_few_candidates_say_nothing():
    fit(1.0, n_candidates=4, batch_size=4)


def test_a_comparison_ends_like_a_search():
    with pytest.raises(SearchFailedError, match="more than most_failures=0.2 allows"):
        compare(
            search(0.5, most_failures=0.2),
            ROWS.X,
            ROWS.y,
            validation=(ROWS.X_val, ROWS.y_val),
            test=(ROWS.X_test, ROWS.y_test),
            repeats=2,
        )
