"""The datasets that loaders return, and functions that read columns of text files."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moew.exceptions import InvalidInputError
from moew.types import FloatArray


@dataclass(frozen=True, eq=False)
class Dataset:
    """n rows with D features.

    X : (n, D) features, named by `feature_names`
    y : (n,) labels or targets
    columns : name → (n,), what metrics, decision rules and splits need beside X
    """

    X: FloatArray
    y: NDArray[Any]
    feature_names: tuple[str, ...]
    columns: Mapping[str, NDArray[Any]]

    def features(self, names: Sequence[str]) -> FloatArray:
        """The named features (n, len(names)), in that order."""
        unknown = [name for name in names if name not in self.feature_names]
        if unknown:
            raise InvalidInputError(
                f"there is no feature {unknown[0]!r}; there are {', '.join(self.feature_names)}",
                argument="features",
            )
        return self.X[:, [self.feature_names.index(name) for name in names]]

    def take(self, rows: NDArray[Any]) -> Dataset:
        """The dataset with some rows only, chosen by index or by boolean mask."""
        columns = {name: column[rows] for name, column in self.columns.items()}
        return Dataset(self.X[rows], self.y[rows], self.feature_names, columns)


@dataclass(frozen=True, eq=False)
class TrainTest:
    """A dataset split by its publisher into training and test rows."""

    train: Dataset
    test: Dataset


@dataclass(frozen=True, eq=False)
class TrainValidTest:
    """A dataset split by time into training, validation and test rows."""

    train: Dataset
    valid: Dataset
    test: Dataset


Texts = dict[str, tuple[str, ...]]  # name → the n cells of a column


def read_columns(content: bytes, names: Sequence[str] | None = None) -> Texts:
    """The columns of comma-separated text, by the `names` given or else by the first row."""
    return as_columns(csv.reader(io.StringIO(content.decode("utf-8"), newline="")), names)


def as_columns(rows: Iterable[Sequence[str]], names: Sequence[str] | None = None) -> Texts:
    """Turn rows of cells into named columns."""
    rows = iter(rows)
    header = names if names is not None else next(rows)
    return dict(zip(header, zip(*rows, strict=True), strict=True))


def numbers(cells: Sequence[str]) -> FloatArray:
    """Cells as numbers (n,), float64."""
    return np.array(cells, dtype=np.float64)


def matrix(columns: Mapping[str, Sequence[str]], names: Sequence[str]) -> FloatArray:
    """The named columns as numbers (n, len(names)), float64."""
    return np.column_stack([numbers(columns[name]) for name in names])
