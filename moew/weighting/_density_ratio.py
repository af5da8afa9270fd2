"""Estimate p_V / p_T from the odds of a classifier that separates validation rows from training rows.

Bickel, Brückner and Scheffer (2009): with n_T training and n_V validation rows pooled, the odds of
"validation" at a point are p_V/p_T · n_V/n_T. The classifier is a cross-fitted logistic regression: a
row's own odds come from a fit that did not see it, the penalty is the one with the best log loss on
unseen rows, and Platt scaling on the unseen rows' logits calibrates them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.interpolate import BSpline
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold

from moew._util.threads import one_blas_thread
from moew.data import TabularEncoder, drawn_by_weight
from moew.exceptions import Argument, InvalidInputError
from moew.types import Array, Columns, Features, FloatArray, IntArray, Labels, Rng, Task

_DEGREE, _KNOTS = 3, 6  # of splines
_MOST_NEWTON_FEATURES = 300
_MOST_ROWS = 10_000  # training rows, and as many validation rows, that one classifier sees
_PENALTIES = (0.01, 0.1, 1.0, 10.0)  # inverse strengths, from nearly constant odds to nearly free
# Of `joint_density_ratio`:
_MOST_DRAWN = 2000  # rows of each kind that it is fitted on: it decides which rows count, no more
_MOST_FEATURES = 300  # with more, products and then squares are left out
_MOST_LEVELS = 20  # of a column of texts or whole numbers that may name things
_LIMIT = 10.0  # ratios are clipped to 1/limit … limit


@dataclass(frozen=True)
class DensityRatio:
    """log(p_V / p_T) = intercept + features · coef, and the cross-fitted value of each training row."""

    intercept: float
    coef: FloatArray  # (F,)
    training_log_ratio: FloatArray  # (n_T,), each from a classifier that did not see the row


def fit_density_ratio(training: FloatArray, validation: FloatArray, n_folds: int, seed: int) -> DensityRatio:
    """Fit the log ratio as a linear function of features of training (n_T, F), validation (n_V, F) rows."""
    if not 2 <= n_folds <= min(len(training), len(validation)):
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


def _thinned(seen: IntArray, is_validation: IntArray, rng: Rng) -> IntArray:
    """At most `_MOST_ROWS` training and as many validation rows: more take time and add little."""
    kinds = [seen[is_validation[seen] == kind] for kind in (0, 1)]
    few = [rows if len(rows) <= _MOST_ROWS else np.sort(rng.permutation(rows)[:_MOST_ROWS]) for rows in kinds]
    return np.concatenate(few)


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


def spline_knots(values: FloatArray) -> list[float]:
    """Knots at quantiles of the values (n,), dense where the rows are; near-equal ones are merged."""
    apart = 1e-9 * max(float(np.abs(values).max()), 1e-100)
    knots: list[float] = []
    for knot in np.quantile(values, np.linspace(0, 1, _KNOTS)):
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


def joint_density_ratio(
    X: Features,
    y: Labels,
    X_val: Features,
    y_val: Labels,
    *,
    task: Task,
    seed: int,
    columns: tuple[Columns, Columns] = ({}, {}),
    weights: tuple[FloatArray | None, FloatArray | None] = (None, None),
) -> FloatArray:
    """p_V(x, y) / p_T(x, y) of the training rows (n,); exactly 1 if no shift can be seen. Its mean is the
    share of the validation rows' kind that training rows cover.

    From the odds of a classifier between validation and training rows. It sees features, their squares, the
    label and its products with all features, so that a shift of means, of spreads or of what the label means
    shows. `columns` of training and validation rows are further features, by name. With `weights` of both,
    rows are drawn in proportion to them first. Sparse X is not looked at.
    """
    rng = np.random.default_rng(seed)
    levels = np.unique(y) if task == "classification" else np.empty(0)
    tables = [] if hasattr(X, "tocsr") or hasattr(X_val, "tocsr") else [_encoded(X, X_val)]
    for name in columns[0]:
        both = [np.asarray(each[name]) for each in columns if name in each]
        if len(both) == 2 and not _are_names(*both):
            tables.append(_encoded(*(values[:, None] for values in both)))
    parts = []
    for k, labels in enumerate((y, y_val)):
        features = np.hstack([table[k] for table in tables]) if tables else np.empty((len(labels), 0))
        parts.append(_with_products(features, _label_features(labels, y, levels)))
    training, validation = _standardised(*parts)
    seen = []
    for part, weight in zip((training, validation), weights, strict=True):
        rows = np.arange(len(part)) if weight is None else drawn_by_weight(weight, rng)
        seen.append(part[rng.permutation(rows)[:_MOST_DRAWN]])
    n_folds = min(5, len(seen[0]), len(seen[1]))
    if n_folds < 2:
        return np.ones(len(training))
    fitted = fit_density_ratio(seen[0], seen[1], n_folds, seed)
    log_ratio = fitted.intercept + training @ fitted.coef
    return np.exp(np.clip(log_ratio, -np.log(_LIMIT), np.log(_LIMIT)))


def rows_like(
    ratio: FloatArray, rng: Rng, most: int, groups: IntArray | None = None
) -> tuple[IntArray, float]:
    """Numbers of rows drawn by their ratio (n,), so that they are distributed like the validation rows, and
    the effective number of rows n_eff = (Σr)² / Σr², times the mean of r where that is below one: kinds of
    validation rows that no training row is like are not evaluated on them.

    n_eff² / n of them: without a shift all, and fewer as the shift grows, because the ratio is an estimate
    whose error grows with it (docs/decisions.md). At most `most`. With `groups` (n,), whole groups
    are drawn, by their mean ratio.
    """
    if groups is not None:
        _, codes, sizes = np.unique(groups, return_inverse=True, return_counts=True)
        mean = np.bincount(codes, ratio) / sizes
        drawn, effective = rows_like(mean, rng, max(1, int(most * len(sizes) / len(groups))))
        return np.flatnonzero(np.isin(codes, drawn)), effective / len(sizes) * len(groups)
    n = len(ratio)
    effective = float(ratio.sum() ** 2 / (ratio**2).sum()) * min(1.0, float(ratio.mean()))
    size = min(effective**2 / n, most)
    chance = np.minimum(1.0, size * ratio / ratio.sum())
    for _ in range(20):  # rows that are certain leave their surplus to the others
        chance = np.minimum(1.0, chance * size / chance.sum())
    return np.flatnonzero(rng.random(n) < chance), effective


def _encoded(training: Any, validation: Any) -> tuple[FloatArray, FloatArray]:
    """Both tables as numbers, scaled by the training rows; an outlier must not dominate."""
    encoder = TabularEncoder().fit(training)
    return np.clip(encoder.transform(training), -4, 4), np.clip(encoder.transform(validation), -4, 4)


def _are_names(training: Array, validation: Array) -> bool:
    """Whether a column names things (queries, customers), which need not be the same in both tables."""
    values, values_val = (np.unique(column.astype(str)) for column in (training, validation))
    shared = np.isin(values_val, values).mean()
    return training.dtype.kind != "f" and len(values) > _MOST_LEVELS and shared < 0.5


def _with_products(features: FloatArray, labels: FloatArray) -> FloatArray:
    """Features (n, D) and labels (n, L) with squares and products, as far as there are not too many."""
    parts = [features, labels]
    if 2 * features.shape[1] + labels.shape[1] <= _MOST_FEATURES:
        parts.append(features**2)
    if features.shape[1] * (2 + labels.shape[1]) + labels.shape[1] <= _MOST_FEATURES:
        parts += [features * label[:, None] for label in labels.T]
    return np.hstack(parts)


def _standardised(training: FloatArray, validation: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Both with the mean and the deviation of all rows, so that one penalty fits all columns."""
    both = np.vstack([training, validation])
    mean, spread = both.mean(axis=0), both.std(axis=0)
    spread[spread == 0] = 1.0
    return (training - mean) / spread, (validation - mean) / spread


def _label_features(labels: Labels, training_labels: Labels, levels: FloatArray) -> FloatArray:
    """The label as features (n, F): indicators of the classes, or the standardised target and its square."""
    if len(levels):
        return np.asarray(np.asarray(labels)[:, None] == levels[None, 1:], dtype=np.float64)
    target = np.asarray(training_labels, dtype=np.float64)
    # In units of a power of two, which changes no digit, so that no sum and no square overflows.
    _, exponent = np.frexp(np.abs(target).max())
    with np.errstate(over="ignore"):
        target, labels = (np.ldexp(np.asarray(part, np.float64), -exponent) for part in (target, labels))
        spread = float(target.std()) or 1.0
        z = np.clip((labels - target.mean()) / spread, -4, 4)
    return np.column_stack([z, z**2])
