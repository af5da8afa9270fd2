"""Estimate p_V / p_T from the odds of a classifier that separates validation rows from training rows.

Bickel, Brückner and Scheffer (2009): with n_T training and n_V validation rows pooled, the odds of
"validation" at a point are p_V/p_T · n_V/n_T. The classifier is a cross-fitted logistic regression: a
row's own odds come from a fit that did not see it, the penalty is the one with the best log loss on
unseen rows, and Platt scaling on the unseen rows' logits calibrates them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.interpolate import BSpline
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold

from moew._util.threads import one_blas_thread
from moew.exceptions import Argument, InvalidInputError
from moew.types import FloatArray, IntArray

_DEGREE = 3
_MOST_NEWTON_FEATURES = 300
_MOST_ROWS = 10_000  # training rows, and as many validation rows, that one classifier sees
_PENALTIES = (0.01, 0.1, 1.0, 10.0)  # inverse strengths, from nearly constant odds to nearly free


@dataclass(frozen=True)
class DensityRatio:
    """log(p_V / p_T) = intercept + features · coef, and the cross-fitted value of each training row."""

    intercept: float
    coef: FloatArray  # (F,)
    training_log_ratio: FloatArray  # (n_T,), each from a classifier that did not see the row


def fit_density_ratio(training: FloatArray, validation: FloatArray, n_folds: int, seed: int) -> DensityRatio:
    """Fit the log density ratio as a linear function of the features of training (n_T, F) and validation
    (n_V, F) rows."""
    fewest = min(len(training), len(validation))
    if not 2 <= n_folds <= fewest:
        raise InvalidInputError(
            f"cross-fitting with {n_folds} folds needs 2 or more folds and that many training and validation "
            f"rows; there are {len(training)} and {len(validation)}. Set n_folds, or use ",
            Argument("base_weights", "uniform"),
            ".",
            argument="base_weights",
        )
    rows = np.vstack([training, validation])
    is_validation = np.repeat([0, 1], [len(training), len(validation)])
    rng = np.random.default_rng(seed)
    splitter = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    folds = [(_thinned(s, is_validation, rng), u) for s, u in splitter.split(rows, is_validation)]
    # Many small fits: several threads would be slower, and change the last digits.
    with one_blas_thread():
        fits = [_cross_fit(rows, is_validation, folds, strength) for strength in _PENALTIES]
    logits, planes = min(fits, key=lambda fit: float(log_loss(is_validation, expit(fit[0]))))
    slope, shift = _platt(logits, is_validation)
    return DensityRatio(
        # The mean of linear classifiers is linear, so the folds' classifiers are averaged into one.
        intercept=float(slope * np.mean([intercept for intercept, _ in planes]) + shift),
        coef=slope * np.mean([coef for _, coef in planes], axis=0),
        training_log_ratio=slope * logits[: len(training)] + shift,
    )


def _thinned(seen: IntArray, is_validation: IntArray, rng: np.random.Generator) -> IntArray:
    """At most `_MOST_ROWS` training and as many validation rows: more take time and add little."""
    groups = [seen[is_validation[seen] == group] for group in (0, 1)]
    return np.concatenate(
        [g if len(g) <= _MOST_ROWS else np.sort(rng.permutation(g)[:_MOST_ROWS]) for g in groups]
    )


def _cross_fit(
    rows: FloatArray, is_validation: IntArray, folds: list[tuple[IntArray, IntArray]], strength: float
) -> tuple[FloatArray, list[tuple[float, FloatArray]]]:
    """Each row's logit (n,) from the fit that did not see it, and the fits' intercepts and coefs (F,)."""
    logits = np.empty(len(rows))
    planes = []
    # Newton's method needs few steps, but solves a system of as many equations as features.
    solver = "newton-cholesky" if rows.shape[1] <= _MOST_NEWTON_FEATURES else "lbfgs"
    for seen, unseen in folds:
        model = LogisticRegression(C=strength, solver=solver, max_iter=5000)
        model.fit(rows[seen], is_validation[seen])
        # The prior odds of the rows it saw, which may be thinned, are replaced by those of all rows.
        intercept = float(model.intercept_[0]) - _log_odds(is_validation[seen]) + _log_odds(is_validation)
        logits[unseen] = intercept + rows[unseen] @ model.coef_[0]
        planes.append((intercept, model.coef_[0]))
    return logits, planes


def _log_odds(is_validation: IntArray) -> float:
    return float(np.log(is_validation.sum() / (len(is_validation) - is_validation.sum())))


def _platt(logits: FloatArray, is_validation: IntArray) -> tuple[float, float]:
    """Slope and shift of Platt scaling on the unseen rows' logits (n,), less the log odds of the row counts.

    If that predicts unseen rows better than the row counts alone by less than one standard error of the
    log loss, there is no shift to correct: both are 0, and the ratio is 1.
    """
    prior = _log_odds(is_validation)
    centre, spread = float(logits.mean()), float(logits.std())
    if spread < 1e-9:
        return 0.0, 0.0
    line = LogisticRegression(C=np.inf, max_iter=5000).fit((logits[:, None] - centre) / spread, is_validation)
    slope = float(line.coef_[0, 0]) / spread
    shift = float(line.intercept_[0]) - slope * centre - prior
    sign = 1 - 2 * is_validation
    gain = np.logaddexp(0, sign * prior) - np.logaddexp(0, sign * (slope * logits + shift + prior))
    if slope <= 0 or gain.mean() < gain.std() / np.sqrt(len(gain)):
        return 0.0, 0.0
    return slope, shift


def spline_knots(values: FloatArray, n_knots: int = 6) -> list[float]:
    """Knots at quantiles of the values (n,), dense where the rows are; near-equal ones are merged."""
    apart = 1e-9 * max(float(np.abs(values).max()), 1e-100)
    knots: list[float] = []
    for knot in np.quantile(values, np.linspace(0, 1, n_knots)):
        if not knots or knot > knots[-1] + apart:
            knots.append(float(knot))
    return knots


def spline_features(values: FloatArray, knots: list[float]) -> FloatArray:
    """Cubic B-splines of the values (n, len(knots) + 2), constant beyond the end knots."""
    if len(knots) < 2:
        return np.zeros((len(values), 0))
    padded = np.r_[[knots[0]] * _DEGREE, knots, [knots[-1]] * _DEGREE]
    inside = np.clip(values, knots[0], knots[-1])
    return np.asarray(BSpline.design_matrix(inside, padded, _DEGREE).toarray())
