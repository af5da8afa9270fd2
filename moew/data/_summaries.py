"""What the encoders of tables need to know of rows that come in chunks, learned in one pass.

The encoders are those that `fit` on all rows at once would give; means and deviations differ from them, and
from those of other cuts, by rounding alone.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from moew.data._column import (
    MOST_LEVELS,
    are_numbers,
    column_of_levels,
    divisor,
    in_order,
    is_missing,
    learn,
    plain,
    refuse_infinite,
    too_large,
)
from moew.data._encoders import TabularEncoder, TargetEncoder
from moew.data._labels import label_column, label_levels, number_labels
from moew.data._numeric import Column
from moew.data._table import check_same_columns, column_names, columns_of, marked_as_categories
from moew.exceptions import InvalidInputError
from moew.types import FloatArray, Labels, Rows, Task


class Moments:
    """Count, mean and sum of squared deviations of rows of numbers, added chunk by chunk (Chan et al.)."""

    def __init__(self) -> None:
        self.count = 0
        self.mean: Any = 0.0
        self.squares: Any = 0.0
        self.top: Any = 0.0  # the largest absolute value

    def add(self, values: FloatArray) -> None:
        """Add values (n,) or (n, d); each of the d dimensions is counted by itself."""
        if not len(values):
            return
        with np.errstate(over="ignore", invalid="ignore"):  # too large to scale is found at the end
            mean = values.mean(axis=0)
            squares = ((values - mean) ** 2).sum(axis=0)
            total = self.count + len(values)
            gap = mean - self.mean
            self.squares = self.squares + squares + gap**2 * (self.count * (len(values) / total))
            self.mean = self.mean + gap * (len(values) / total)
        self.count = total
        self.top = np.maximum(self.top, np.abs(values).max(axis=0))

    @property
    def variance(self) -> Any:
        """The mean squared deviation."""
        return self.squares / self.count


class _ColumnSummary:
    """One column over all chunks: its kind, its levels, its moments and whether values are missing."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.numeric: bool | None = None  # None: nothing but missing values up to now
        self.empty = Column("categorical")  # how a column of missing values alone is encoded
        self.levels: set[Any] = set()
        self.moments = Moments()
        self.flag_missing = False

    def add(self, values: np.ndarray[Any, Any], is_category: bool) -> None:
        missing = is_missing(values)
        seen = values[~missing]
        self.flag_missing |= bool(missing.any())
        if not len(seen):
            self.empty = learn(self.name, values, False, is_category)
            return
        numeric = are_numbers(seen, is_category)
        if self.numeric not in (None, numeric):
            raise InvalidInputError(
                f"{self.name} holds numbers in some chunks and categories in others; make it the same in "
                "all.",
                argument="X",
            )
        self.numeric = numeric
        if numeric:
            self._add_numbers(seen.astype(np.float64))
        else:
            self.levels |= {plain(value) for value in seen}
            self._check_levels()

    def _add_numbers(self, numbers: FloatArray) -> None:
        refuse_infinite(self.name, numbers)
        self.moments.add(numbers)
        if len(self.levels) <= 2:  # only columns of 0/1 or −1/1 are told from other numbers by their values
            self.levels |= set(np.unique(numbers).tolist()[:3])

    def _check_levels(self) -> None:
        if len(self.levels) > MOST_LEVELS:
            raise InvalidInputError(
                f"{self.name} has more than the {MOST_LEVELS} different values that can be encoded as "
                "categories; drop it, group its values, or encode it as numbers.",
                argument="X",
            )

    def column(self, scale: bool) -> Column:
        if self.numeric is None:
            return self.empty
        if self.numeric and self.levels not in ({0.0, 1.0}, {-1.0, 1.0}):
            return _numeric_column(self.name, self.moments, self.flag_missing, scale)
        return column_of_levels(in_order(self.levels), self.flag_missing)


class TableSummary:
    """The columns of X, chunk after chunk."""

    def __init__(self) -> None:
        self.names: list[str] | None = None
        self.columns: list[_ColumnSummary] = []

    def add(self, X: Rows) -> Self:
        columns = columns_of(X)
        if not self.columns:
            self.names = column_names(X)
            self.columns = [_ColumnSummary(name) for name, _ in columns]
        check_same_columns(X, self.names, len(self.columns), "the chunks")
        for summary, (_, values), is_category in zip(
            self.columns, columns, marked_as_categories(X), strict=True
        ):
            summary.add(values, is_category)
        return self

    def encoder(self, scale: bool) -> TabularEncoder:
        """The encoder that `TabularEncoder(scale).fit` would be on all rows."""
        if not self.columns:
            raise InvalidInputError("X has no columns; at least one feature is needed.", argument="X")
        return TabularEncoder.from_columns(scale, self.names, [c.column(scale) for c in self.columns])


class LabelSummary:
    """The labels, chunk after chunk."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.count = 0
        self.levels: set[Any] = set()
        self.moments = Moments()

    def add(self, y: Labels) -> Self:
        self.count += len(y)
        if self.task == "regression":
            self.moments.add(number_labels(y))
        else:
            self.levels |= set(label_levels(y))
        return self

    def encoder(self, scale: bool) -> TargetEncoder:
        """The encoder that `TargetEncoder(scale).fit` would be on all labels."""
        if self.task == "regression":
            return TargetEncoder.from_column(scale, _numeric_column("y", self.moments, False, scale))
        return TargetEncoder.from_column(scale, label_column(in_order(self.levels)))


def _numeric_column(name: str, moments: Moments, flag_missing: bool, scale: bool) -> Column:
    mean, spread, top = float(moments.mean), float(np.sqrt(moments.variance)), float(moments.top)
    if scale:
        return Column("numeric", (), mean, divisor(name, spread, top), mean, flag_missing)
    if not np.isfinite(mean):
        raise too_large(name, top)
    return Column("numeric", fill=mean, flag_missing=flag_missing)
