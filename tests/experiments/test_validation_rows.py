"""Theorem 2 with the constants of a finished search, against numbers by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest
import searches

from experiments.theory import Theorem2, steepest_slope, validation_rows_for
from moew.exceptions import InvalidInputError
from moew.samplers import Ball, BallAndBox, Box
from moew.search import Trial, WeightStudy


def finished(alphas, values, radius=4.0, n_validation=400, domain=None):
    """The record of a search with these candidates."""
    fitted = searches.binary()[0].fitted_
    trials = tuple(
        Trial(k, np.array(alpha, dtype=float), 0, value)
        for k, (alpha, value) in enumerate(zip(alphas, values, strict=True))
    )
    result = replace(fitted.result, trials=trials, n_validation=n_validation, n_out_of_fold=0)
    domain = domain or Ball(len(alphas[0]), radius)
    return replace(fitted, result=result, study=WeightStudy(None, domain))


def test_a_case_by_hand():
    # In the unit ball the alphas are 0, 0.5 and −1: slopes 0.04/0.5 = 0.08, 0.1/1 = 0.1 and 0.06/1.5 = 0.04.
    # The fourth is nearer to the third than a tenth of the radius: their slope of 0.01/0.05 = 0.2 does not
    # count, but its slopes to the others do: 0.11/0.95 = 0.1158 and 0.07/1.45 = 0.0483.
    fitted = finished([[0.0], [2.0], [-4.0], [-3.8]], [0.80, 0.84, 0.90, 0.91])
    found = validation_rows_for(fitted, 0.05, delta=0.1)
    assert found.theorem.lipschitz_model == pytest.approx(0.11 / 0.95)
    assert (found.theorem.n_dims, found.theorem.sigma, found.theorem.n_metrics) == (1, 0.5, 1)
    # 0.5·(√(4·ln(4N) + 8·ln 20) + 3·0.1158)/√N at N = 7,069: √(40.999 + 23.966) + 0.3474 = 8.4075, times
    # 0.5/84.077 is 0.04999(8), and with one row less it is 0.05000(2).
    assert found.rows == 7_069
    assert found.gap_now == pytest.approx(
        0.5 * (math.sqrt(4 * math.log(1600) + 8 * math.log(20)) + 0.33 / 0.95) / 20
    )
    text = str(found)
    assert f"from {found.rows:,} validation rows on" in text
    assert "The bound is loose" in text
    assert "400 rows of this search the bound is 0.19" in text
    assert "L_φ = 0.116" in text


def test_a_metric_of_several_means_is_as_steep_in_alpha():
    fitted = finished([[0.0, 0.0], [0.0, 4.0]], [0.5, 0.8])
    one = validation_rows_for(fitted, 0.1)
    several = validation_rows_for(fitted, 0.1, n_metrics=4, lipschitz_metric=2.0, sigma=0.25)
    steepness = [
        t.lipschitz_metric * math.sqrt(t.n_metrics) * t.lipschitz_model
        for t in (one.theorem, several.theorem)
    ]
    assert steepness == pytest.approx([0.3, 0.3])
    assert several.rows == Theorem2(2, 4, 0.25, 2.0, 0.075).rows_for(0.1)


def test_failed_candidates_do_not_count():
    fitted = finished([[0.0], [1.0], [2.0]], [0.5, math.nan, 0.7])
    found = validation_rows_for(fitted, 0.1)
    assert found.n_candidates == 2
    assert found.theorem.lipschitz_model == pytest.approx(0.4)


def test_a_fitted_estimator():
    search, _ = searches.binary()
    found = validation_rows_for(search, 0.1)
    assert found.rows > found.rows_now
    assert found.theorem.n_dims == 3
    assert validation_rows_for(search, 0.05).rows > found.rows


def test_too_few_rows_for_the_theorem():
    found = validation_rows_for(finished([[0.0], [1.0]], [0.5, 0.6], n_validation=2), 0.1)
    assert math.isnan(found.gap_now)
    assert "for the 2 rows of this search the theorem says nothing" in str(found)


def test_what_is_refused():
    with pytest.raises(InvalidInputError, match="no bounds that σ could follow from; pass sigma"):
        validation_rows_for(searches.regression()[0], 0.1)
    assert validation_rows_for(searches.regression()[0], 0.1, sigma=1.0).rows > 0
    with pytest.raises(InvalidInputError, match="2 candidates with a score, too few or too near"):
        validation_rows_for(finished([[1.0], [1.0]], [0.5, 0.6]), 0.1)
    with pytest.raises(InvalidInputError, match="also looked for hyper-parameters"):
        validation_rows_for(
            finished([[0.0], [1.0]], [0.5, 0.6], domain=BallAndBox(Ball(1, 4.0), Box(1, 1.0))), 0.1
        )
    with pytest.raises(InvalidInputError, match="gap must be a number above 0"):
        validation_rows_for(finished([[0.0], [1.0]], [0.5, 0.6]), 0.0)
    with pytest.raises(InvalidInputError, match="lipschitz_metric must be a number above 0"):
        validation_rows_for(finished([[0.0], [1.0]], [0.5, 0.6]), 0.1, lipschitz_metric=0.0)


def test_the_steepest_slope_of_a_plane_is_found_along_its_gradient():
    alphas = np.random.default_rng(0).normal(size=(60, 2))
    slope = steepest_slope(alphas, alphas @ [3.0, 4.0], 0.01)
    assert 4.9 < slope <= 5 + 1e-9
    assert math.isnan(steepest_slope(alphas[:1], np.ones(1), 0.01))
