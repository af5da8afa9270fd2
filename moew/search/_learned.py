"""What learned weights are good for: weights of any rows, training on fewer rows, rows to label next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from moew._util.seeds import generator
from moew.data._chunks import CHUNK_ROWS, Column, iter_rows, map_chunks
from moew.exceptions import InvalidInputError
from moew.types import FloatArray, IntArray, Labels, Rows
from moew.weighting._sampling import downsample_rows, draw_in_proportion, expected_weights


class LearnedWeights:
    """The part of `ExampleWeightSearch` that works with the weights when the search is done."""

    best_estimator_: Any
    sample_weight_: FloatArray
    training_rows_: IntArray
    weight_function_: Any

    def example_weights(self, X: Rows, y: Labels) -> FloatArray:
        """The learned weights (n,) of any labelled rows, on the scale of the training rows' weights.

        On the training rows these are `sample_weight_`, but for two things: the user's own weights are not
        in them, and with `base_weights="covariate_shift"` the model was trained with cross-fitted weights,
        while any rows get those of all folds' classifiers together.
        """
        check_is_fitted(self)
        if X is not None and _num_samples(X) != len(y):
            raise InvalidInputError(
                f"X has {_num_samples(X)} rows and y has {len(y)}; give a label to each row."
            )
        weights: FloatArray = self.weight_function_(X, y)
        return weights

    def iter_example_weights(
        self, source: Any, *, label: Column | None = None, chunk_rows: int = CHUNK_ROWS
    ) -> Iterator[FloatArray]:
        """`example_weights` of rows that do not fit in memory, an array for each chunk of rows, in order.

        `source` is a Parquet or .npy file, a memory map, an iterable of frames, …; see
        `moew.data._chunks.iter_chunks`. `label` is the column that holds the labels.
        """
        check_is_fitted(self)
        return map_chunks(self.example_weights, source, label=label, chunk_rows=chunk_rows)

    def downsample(
        self,
        rate: float,
        X: Any = None,
        y: Labels = None,
        *,
        sample_weight: Any = None,
        label: Column | None = None,
        seed: int = 0,
        chunk_rows: int = CHUNK_ROWS,
    ) -> tuple[IntArray, FloatArray]:
        """Fewer rows to train on: row numbers of X, in order, and the weights to train them with.

        A row of weight w is kept with probability p = min(1, λ·w) and gets w/p, so that weighted losses
        stay unbiased; `rate`, the share kept, sets λ. Without X, the rows that were fitted are meant, and
        w is `sample_weight_`, the user's own weights in it. Else w is `example_weights` of X and y, times
        `sample_weight` (n,) where given. X alone may be rows that do not fit in memory, as in
        `iter_example_weights`, with their `label`; only their weights are held.
        """
        check_is_fitted(self)
        rng = generator(seed, "downsample")
        if X is None:
            if y is not None or sample_weight is not None or label is not None:
                raise InvalidInputError("y, sample_weight and label belong to rows X; pass X, too.")
            kept, corrected = downsample_rows(self.sample_weight_, rate, rng)
            return self.training_rows_[kept], corrected
        if y is not None and label is not None:
            raise InvalidInputError(f"pass the labels as y or name their column {label!r}, not both.")
        if y is not None:
            weights = self.example_weights(X, y)
        else:
            parts = self.iter_example_weights(X, label=label, chunk_rows=chunk_rows)
            weights = np.concatenate([np.empty(0), *parts])
        if sample_weight is not None:
            weights = _times(weights, sample_weight)
        return downsample_rows(weights, rate, rng)

    def suggest_rows(self, pool: Any, n: int, *, seed: int = 0, chunk_rows: int = CHUNK_ROWS) -> IntArray:
        """The numbers of n rows without labels to label next, most of them where weights are high.

        Rows are drawn one after another without replacement, in proportion to the weight they are expected
        to have: the mean of w(x, y) over the classes by the winner's probabilities, or w(x, ŷ) at its
        prediction ŷ for a regressor and for a classifier without `predict_proba`. With the same seed,
        fewer rows are the first of more. The pool (m, D) is gone through once, `chunk_rows` at a time, and
        may be one that does not fit in memory; see `moew.data._chunks.iter_rows`. The same rows are drawn
        however it is cut, unless two of them are equal but for rounding.
        """
        check_is_fitted(self)
        if isinstance(pool, list) and pool and isinstance(pool[0], list):
            pool = two_dimensional(pool)
        weights = (
            expected_weights(self.best_estimator_, self.example_weights, self._check_fitted_rows(rows))
            for rows in iter_rows(pool, chunk_rows=chunk_rows)
        )
        return draw_in_proportion(weights, n, generator(seed, "suggest"))

    def _check_fitted_rows(self, X: Rows) -> Rows:
        check_is_fitted(self)
        X = two_dimensional(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        return X


def two_dimensional(X: Rows) -> Rows:
    """Lists become arrays, sparse matrices get rows that can be taken; all else stays as it is."""
    if hasattr(X, "tocsr"):
        return X.tocsr()
    X = X if hasattr(X, "shape") else np.asarray(X)
    if len(X.shape) != 2:
        raise InvalidInputError(
            f"X must have two dimensions (rows, columns), got shape {X.shape}. Reshape your data, or turn "
            "text and other single values into columns first."
        )
    return X


def _times(weights: FloatArray, sample_weight: Any) -> FloatArray:
    given = np.asarray(sample_weight, dtype=np.float64)
    if given.shape != weights.shape:
        raise InvalidInputError(
            f"sample_weight must hold a number for each of the {len(weights)} rows, got shape {given.shape}."
        )
    return np.asarray(weights * given)
