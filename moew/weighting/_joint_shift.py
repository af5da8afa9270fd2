"""How much rarer or more common each training row is among the validation rows, label included."""

from __future__ import annotations

import numpy as np

from moew.data import TabularEncoder
from moew.types import FloatArray, IntArray, Labels, Rows, Task
from moew.weighting._density_ratio import fit_density_ratio

_MOST_ROWS = 2000  # of each kind that the ratio is fitted on: it decides which rows count, no more
_LIMIT = 10.0  # ratios are clipped to 1/limit … limit


def joint_density_ratio(
    X: Rows, y: Labels, X_val: Rows, y_val: Labels, *, task: Task, seed: int
) -> FloatArray:
    """p_V(x, y) / p_T(x, y) of the training rows (n,), with mean one; exactly 1 if no shift can be seen.

    From the odds of a linear classifier of features and label between validation and training rows, so that
    a shift of the features, of the label, or of both is seen. Sparse X is not looked at.
    """
    rng = np.random.default_rng(seed)
    levels = np.unique(y) if task == "classification" else np.empty(0)
    parts = [_label_features(labels, y, levels) for labels in (y, y_val)]
    if not (hasattr(X, "tocsr") or hasattr(X_val, "tocsr")):
        encoder = TabularEncoder().fit(X)
        parts = [
            np.hstack([np.clip(encoder.transform(rows), -4, 4), part])
            for rows, part in zip((X, X_val), parts, strict=True)
        ]
    training, validation = parts
    seen = [rng.permutation(len(part))[:_MOST_ROWS] for part in parts]
    n_folds = min(5, len(seen[0]), len(seen[1]))
    if n_folds < 2:
        return np.ones(len(training))
    fitted = fit_density_ratio(training[seen[0]], validation[seen[1]], n_folds, seed)
    log_ratio = fitted.intercept + training @ fitted.coef
    ratio = np.exp(np.clip(log_ratio, -np.log(_LIMIT), np.log(_LIMIT)))
    return np.asarray(ratio / ratio.mean())


def rows_like(
    ratio: FloatArray, rng: np.random.Generator, most: int, groups: IntArray | None = None
) -> tuple[IntArray, float]:
    """Numbers of rows drawn by their ratio (n,), so that they are distributed like the validation rows, and
    the effective number of rows n_eff = (Σr)² / Σr².

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
    effective = float(ratio.sum() ** 2 / (ratio**2).sum())
    size = min(effective**2 / n, most)
    chance = np.minimum(1.0, size * ratio / ratio.sum())
    for _ in range(20):  # rows that are certain leave their surplus to the others
        chance = np.minimum(1.0, chance * size / chance.sum())
    return np.flatnonzero(rng.random(n) < chance), effective


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
