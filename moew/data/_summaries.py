"""How the columns of a table are encoded, learned in one pass from all rows at once or chunk by chunk.

Means and deviations of the same rows in other chunks differ by rounding alone.
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
    plain,
    refuse_infinite,
    too_large,
)
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
            if not np.isfinite(mean).all():  # the sum of huge numbers is infinite
                top = np.abs(values).max(axis=0)
                mean = (values / top).mean(axis=0) * top
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
        self.levels: set[Any] = set()  # of numbers only as long as they may be a column of two values
        self.two_values = True
        self.moments = Moments()
        self.flag_missing = False

    def add(self, values: np.ndarray[Any, Any], is_category: bool) -> None:
        missing = is_missing(values)
        seen = values[~missing]
        self.flag_missing |= bool(missing.any())
        if not len(seen):
            if are_numbers(seen, is_category):
                self.empty = Column("numeric", flag_missing=True)
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
            different = np.unique(seen) if seen.dtype.kind in "biuf" else seen
            self.levels |= {plain(value) for value in different}
            self._check_levels()

    def _add_numbers(self, numbers: FloatArray) -> None:
        refuse_infinite(self.name, numbers)
        self.moments.add(numbers)
        # Any other two numbers than 0/1 and −1/1 are a scale on which new rows may lie elsewhere.
        ends = {float(numbers.min()), float(numbers.max())}
        self.two_values &= ends <= {-1.0, 0.0, 1.0} and bool(np.isin(numbers, list(ends)).all())
        self.levels |= ends if self.two_values else set()

    def _check_levels(self) -> None:
        if len(self.levels) > MOST_LEVELS:
            raise InvalidInputError(
                f"{self.name} has {len(self.levels)} different values, more than the {MOST_LEVELS} that can "
                "be encoded as categories; drop it, group its values, or encode it as numbers.",
                argument="X",
            )

    def column(self, scale: bool) -> Column:
        if self.numeric is None:
            return self.empty
        is_binary = self.two_values and self.levels in ({0.0, 1.0}, {-1.0, 1.0})
        if self.numeric and not is_binary:
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

    def learned(self, scale: bool) -> list[Column]:
        """How each column is encoded."""
        if not self.columns:
            raise InvalidInputError("X has no columns; at least one feature is needed.", argument="X")
        return [column.column(scale) for column in self.columns]


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

    def learned(self, scale: bool) -> Column:
        """How the labels are encoded."""
        if self.task == "regression":
            return _numeric_column("y", self.moments, False, scale)
        return label_column(in_order(self.levels))


def _numeric_column(name: str, moments: Moments, flag_missing: bool, scale: bool) -> Column:
    mean, spread, top = float(moments.mean), float(np.sqrt(moments.variance)), float(moments.top)
    if scale:
        return Column("numeric", (), mean, divisor(name, spread, top), mean, flag_missing)
    if not np.isfinite(mean):
        raise too_large(name, top)
    return Column("numeric", fill=mean, flag_missing=flag_missing)
