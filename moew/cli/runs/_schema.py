"""The roles of a table's columns, learned from the training file and checked in all others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from moew._util.numbers import reads_as_number
from moew.cli.runs._tables import read_table
from moew.exceptions import InvalidInputError

Array = np.ndarray[Any, Any]
NUMBERED = "row"  # what ids are called that are the numbers of the rows
_MOST_CATEGORIES = 10_000  # of a column, that are kept to see later what is new
_WRITTEN = ("weight", "prediction", "score")  # columns that stand beside the ids in tables that are written


@dataclass(frozen=True)
class TableRows:
    """Rows of a file: features (a data frame), labels, ids, the user's weights, the metric's columns, and
    what rows belong together."""

    X: Any
    y: Array | None
    ids: Array
    id_name: str  # what the ids are called in tables that are written
    sample_weight: Array | None
    columns: dict[str, Array]
    frame: Any  # the whole file
    groups: Array | None = None

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Schema:
    """Which columns are features (each "number" or "text"), label, id, weight, the metric's and `groups`,
    which names what rows belong together.

    `columns` maps the name that the metric or the decision uses to the file's column.
    """

    features: dict[str, str]
    label: str
    label_kind: str  # number, text or truth
    id: str | None
    sample_weight: str | None
    columns: dict[str, str]
    text_columns: list[str] = field(default_factory=list)  # of the metric's and `groups`, in training
    groups: str | None = None
    separator: str | None = None  # of text tables, where it was told; else it is found in each
    categories: dict[str, list[str]] = field(default_factory=dict)  # of the features that are texts

    def read(self, path: Path, separator: str | None = None, **needed: Any) -> TableRows:
        """The rows of a file, with what is needed, see `rows`; `separator` is that of its columns, where it
        is not as the schema has it."""
        texts = [name for name, kind in self.features.items() if kind == "text"]
        texts += self.text_columns
        texts += [self.label] if self.label_kind == "text" else []
        alone = self.id not in self.features and self.id not in self.columns.values()
        frame = read_table(path, texts, ids=self.id if alone else None, separator=separator or self.separator)
        return self.rows(frame, path, **needed)

    def rows(
        self,
        frame: Any,
        path: Path,
        *,
        labels: bool = True,
        ids: bool = True,
        columns: Sequence[str] | None = None,
        groups: bool = False,
    ) -> TableRows:
        """The rows of a data frame that was read from a file; `labels`, `ids` and `groups`: whether it must
        hold them (rows without ids have numbers), `columns`: those of the metric that it must hold (None:
        all; those that are there are taken)."""
        needed = [*self.features, *([self.label] if labels else []), *([self.id] if self.id and ids else [])]
        needed += [self.columns[name] for name in (self.columns if columns is None else columns)]
        needed += [self.groups] if self.groups and groups else []
        _check_there(frame, needed, path)
        id_column = self.id if self.id in frame else None
        weight = self.sample_weight if self.sample_weight in frame else None
        return TableRows(
            self._features(frame, path),
            _labels(frame[self.label], self.label_kind, path) if labels else None,
            np.arange(len(frame)) if id_column is None else frame[id_column].to_numpy(),
            id_column or NUMBERED,
            None if weight is None else _as_number(frame[weight], path).to_numpy(dtype=np.float64),
            {n: self._column(frame[column]) for n, column in self.columns.items() if column in frame},
            frame,
            self._column(frame[self.groups]) if self.groups and groups else None,
        )

    def unknown(self, frame: Any) -> list[str]:
        """Columns of a file that have no role."""
        special = (self.label, self.id, self.sample_weight, self.groups)
        known = {*self.features, *special, *self.columns.values()}
        return [name for name in frame.columns if name not in known]

    def unseen(self, rows: TableRows) -> dict[str, dict[str, int]]:
        """How many rows have each of the categories that the training rows did not have, the most frequent
        first, by column."""
        found = {}
        for name, known in self.categories.items():
            values = rows.X[name].dropna()
            strange = values[~values.isin(known)]
            if len(strange):
                found[name] = {str(value): int(n) for value, n in strange.value_counts().items()}
        return found

    def _column(self, series: Any) -> Array:
        """A column of the metric's (n,); texts in training stay texts where a file holds only numbers."""
        return np.asarray((_as_text(series) if series.name in self.text_columns else series).to_numpy())

    def _features(self, frame: Any, path: Path) -> Any:
        columns = {
            name: _as_number(frame[name], path) if kind == "number" else _as_text(frame[name])
            for name, kind in self.features.items()
        }
        return type(frame)(columns, index=frame.index)


@dataclass(frozen=True)
class Roles:
    """What columns of the training file are for, as the user says; without `features`, all others are."""

    label: str
    id: str | None = None
    sample_weight: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)  # name for the metric → column
    groups: str | None = None
    features: Sequence[str] = ()
    drop: Sequence[str] = ()

    def features_of(self, frame: Any, path: Path) -> list[str]:
        """The columns that are features; raise where roles and columns do not fit."""
        special = (self.label, self.id, self.sample_weight, self.groups)
        named = [name for name in special if name is not None]
        _check_there(frame, [*named, *self.features, *self.drop], path)
        others = {*self.drop} if self.features else {*named, *self.drop, *self.columns.values()}
        chosen = [name for name in self.features or frame.columns if name not in others]
        if self.label in chosen:
            raise InvalidInputError(f"the label {self.label!r} is among the features; leave it out of them.")
        if not chosen:
            raise InvalidInputError(f"{path} has no column left for a feature: {sorted(frame.columns)}.")
        return chosen


def learn_schema(frame: Any, path: Path, roles: Roles, separator: str | None = None) -> Schema:
    """The schema of a training file."""
    features = roles.features_of(frame, path)
    if roles.id in _WRITTEN or str(roles.id).startswith("probability_"):
        raise InvalidInputError(
            f"--id {roles.id}: the files that come out have a column {roles.id!r} of their own beside the "
            "ids. Give the column of ids another name in your files, or leave out --id."
        )
    kinds = {name: "text" if _kind(frame[name], path) == "text" else "number" for name in features}
    may_be_texts = [*roles.columns.values(), *([roles.groups] if roles.groups else [])]
    return Schema(
        kinds,
        roles.label,
        _kind(frame[roles.label], path),
        roles.id,
        roles.sample_weight,
        dict(roles.columns),
        [name for name in may_be_texts if name in frame and _is_text(frame[name])],
        roles.groups,
        separator,
        _categories(frame, [name for name, kind in kinds.items() if kind == "text"]),
    )


def _categories(frame: Any, texts: Sequence[str]) -> dict[str, list[str]]:
    """The categories of each column of texts; a column with very many is no column of categories."""
    of_columns = {name: sorted(set(_as_text(frame[name].dropna()))) for name in texts}
    return {name: seen for name, seen in of_columns.items() if len(seen) <= _MOST_CATEGORIES}


def labels_of(frame: Any, label: str, path: Path) -> Array:
    """The labels of a training file."""
    _check_there(frame, [label], path)
    return _labels(frame[label], _kind(frame[label], path), path)


def named_columns(given: Sequence[str], frame: Any) -> list[str]:
    """Names from `--features a,b --features c`; one that is a column with a comma in it stays whole."""
    parts = [[name] if name in frame else [part.strip() for part in name.split(",")] for name in given]
    return [name for part in parts for name in part if name]


def _check_there(frame: Any, names: Sequence[str], path: Path) -> None:
    if missing := [name for name in dict.fromkeys(names) if name not in frame]:
        there = [str(name) for name in frame.columns]
        shown = f"{there[:12]}{' …' if len(there) > 12 else ''}"
        hint = ""
        if len(there) == 1:
            hint = " Say with --separator what separates its columns."
        elif all(reads_as_number(name) for name in there):
            hint = " Its first line must hold the names of the columns."
        raise InvalidInputError(
            f"{path} has no column {', '.join(map(repr, missing))}; it has {shown}.{hint}"
        )


def _kind(series: Any, path: Path) -> str:
    from pandas.api import types

    if types.is_datetime64_any_dtype(series) or types.is_timedelta64_dtype(series):
        raise InvalidInputError(
            f"{path}: column {series.name!r} holds dates; turn it into numbers, such as days, or --drop it."
        )
    seen = series.dropna()
    if types.is_bool_dtype(series) or (
        len(seen) and seen.map(lambda v: isinstance(v, bool | np.bool_)).all()
    ):
        return "truth"
    if isinstance(series.dtype, types.CategoricalDtype):
        return "text"
    if types.is_numeric_dtype(series) or not len(seen) or seen.map(_is_number).all():
        return "number"
    return "text"


def _is_text(series: Any) -> bool:
    """Whether all that a column holds are texts."""
    seen = series.dropna()
    return len(seen) > 0 and all(isinstance(value, str) for value in seen)  # map would keep categories


def _is_number(value: Any) -> bool:
    from decimal import Decimal

    return isinstance(value, int | float | np.number | Decimal)


def _as_number(series: Any, path: Path) -> Any:
    from pandas import to_numeric

    kind = _kind(series, path)
    if kind == "number" and isinstance(series.dtype, np.dtype) and series.dtype.kind in "iuf":
        return series
    if kind == "text":
        odd = series[series.notna() & to_numeric(series, errors="coerce").isna()]
        if len(odd):
            raise InvalidInputError(
                f"{path}: column {series.name!r} must hold numbers, but row {odd.index[0]} holds "
                f"{odd.iloc[0]!r}."
            )
    return to_numeric(series.astype(object).where(series.notna(), None)).astype(np.float64)


def _as_text(series: Any) -> Any:
    """Texts as objects, with NaN for every kind of missing value."""
    there = series.notna()
    return series.astype(object).map(str).where(there, np.nan).astype(object)


def _labels(series: Any, kind: str, path: Path) -> Array:
    missing = np.flatnonzero(series.isna().to_numpy())
    if len(missing):
        raise InvalidInputError(
            f"{path}: {len(missing)} of {len(series)} rows have no label in column {series.name!r}: rows "
            f"{', '.join(map(str, missing[:5]))}{' …' if len(missing) > 5 else ''}, counted from 0. Fill in "
            "their labels or remove them. (In a CSV file NA, None and null are read as no label, too.)"
        )
    if kind == "text":
        return np.asarray([str(value) for value in series])
    if kind == "truth" and _kind(series, path) == "truth":
        return np.asarray(series.to_numpy(dtype=bool))
    return np.asarray(_as_number(series, path).to_numpy())
