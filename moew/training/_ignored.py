"""Detects an estimator that takes `sample_weight` but ignores it."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from joblib import parallel_config
from sklearn.utils import _safe_indexing

from moew.data._read_only import read_only
from moew.exceptions import InPython, MoewWarning
from moew.types import FloatArray, IntArray, Labels, Rows

_N_ROWS = 1000  # predictions on at most this many training rows are compared


def opposite_weights(weight: FloatArray, seed: int) -> FloatArray:
    """Weights (n,) very different from `weight` (n,): a random half of the rows counts 39 times the other."""
    heavy = np.random.default_rng(seed).permutation(len(weight)) % 2 == 0
    changed: FloatArray = weight * np.where(heavy, 1.95, 0.05)
    changed *= weight.sum() / changed.sum()
    return changed


def ignores_weights(model: Any, other: Any, X: Rows, y: Labels, fold: IntArray | None = None) -> bool:
    """Whether two models, trained alike but for very different weights, are the same.

    Their predictions on training rows are compared. Predictions that are only labels, or that repeat the
    training targets (a fully grown tree), can be equal although weights are used: then everything that the
    fitted models hold is compared.
    """
    trained: IntArray = np.arange(len(y)) if fold is None else fold
    n = len(trained)
    rows = trained[np.unique(np.linspace(0, n - 1, min(_N_ROWS, n)).astype(np.intp))]
    part = read_only(_safe_indexing(X, rows))
    try:
        with parallel_config(backend="sequential"):  # threads sum in any order, which changes the last bits
            answers, others = _answers(model, part), _answers(other, part)
        if not np.array_equal(answers, others):
            return False
        graded = answers.dtype.kind == "f" and not np.isin(answers, (0.0, 1.0)).all()
        by_heart = answers.ndim == 1 and np.array_equal(answers, np.asarray(y)[rows])
        return (graded and not by_heart) or _same(model, other)
    except Exception:
        return False  # a model that cannot predict fails where it is used, with its own error


def warn_of_ignored_weights(estimator: Any) -> None:
    """Warn that the estimator seems to ignore its weights, so that a search can find nothing."""
    warning = MoewWarning(
        f"{type(estimator).__name__} takes sample weights but seems to ignore them: two very different "
        "weightings gave the same model, so a search over weights can find nothing. Use an estimator "
        "that uses its weights",
        InPython(", or name the argument that does with sample_weight_name"),
        ".",
        argument="estimator",
    )
    warnings.warn(warning, stacklevel=2)


def _same(a: Any, b: Any) -> bool:
    """Whether two objects have equal content, with arrays equal bit for bit."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        if a.dtype.names:  # field by field: the bytes between the fields are undefined
            return all(_same(a[name], b[name]) for name in a.dtype.names)
        if a.dtype == object:
            return _same(a.tolist(), b.tolist())
        return bool(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes())
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, float):
        return a == b or (a != a and b != b)
    state = a.__getstate__() if hasattr(a, "__getstate__") else None
    return bool(a == b) if state is None else _same(state, b.__getstate__())


def _answers(model: Any, X: Rows) -> np.ndarray[Any, Any]:
    for name in ("decision_function", "predict_proba", "predict"):
        if hasattr(model, name):
            return np.asarray(getattr(model, name)(X))
    raise AttributeError("the model has no predict")
