"""Weights by slices of the user's columns, and the rows with the most and the least weight."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from moew.exceptions import InvalidInputError
from moew.inspection import TrainedRows, slices_of, table_columns
from moew.report._plain import cell, clipped
from moew.types import IntArray, Rows

MOST_LOOKED_AT = 500  # columns of X; of images and texts no single one means much
MOST_SHOWN = 12  # columns that are shown cut into slices
_EXAMPLES = 10  # rows at either end
_CELLS = 6  # columns shown of each


def sliced(rows: TrainedRows, n_given: int, columns: Mapping[str, Any] | None) -> dict[str, Any]:
    """The columns whose slices differ most in weight; the user's further columns are always among them."""
    more = {str(name): checked(values, n_given, f"the column {name!r}") for name, values in _items(columns)}
    trained = {name: values[rows.numbers] for name, values in more.items()}
    found = []
    for name, values in table_columns(rows.X, trained, MOST_LOOKED_AT):
        if (cut := slices_of(clipped(name, 120), values, rows.weights)) is not None:
            found.append((name in trained, cut))
    # A column without an effect on the weight tells something too, if the user asked for it.
    found.sort(key=lambda item: (not item[0], -item[1].explained))
    n_columns = int(np.shape(rows.X)[1])
    return {
        "columns": [asdict(cut) for own, cut in found if own or cut.explained > 0][:MOST_SHOWN],
        "n_looked_at": min(n_columns, MOST_LOOKED_AT),
        "n_columns": n_columns,
    }


def example_rows(
    X: Rows,
    rows: TrainedRows,
    slices: Mapping[str, Any],
    columns: Mapping[str, Any] | None,
    row_ids: Any,
    n_given: int,
) -> dict[str, Any]:
    """The rows of most and of least weight, with the columns that the weight depends on most."""
    if row_ids is None:
        row_ids = X.index if hasattr(X, "index") and not callable(X.index) else np.arange(n_given)
    ids = checked(row_ids, n_given, "row_ids")[rows.numbers]
    order = np.argsort(-rows.weights, kind="stable")
    trained = {str(name): np.asarray(values)[rows.numbers] for name, values in _items(columns)}
    wanted = [entry["column"] for entry in slices["columns"]][:_CELLS]
    there = {clipped(name, 120): values for name, values in table_columns(rows.X, trained, MOST_LOOKED_AT)}
    shown = wanted or list(there)[:_CELLS]

    def listed(chosen: IntArray) -> dict[str, Any]:
        extreme = rows.weights[chosen[0]]
        return {
            "rows": [
                {
                    "id": cell(ids[i]),
                    "label": cell(rows.y[i]),
                    "weight": float(rows.weights[i]),
                    "cells": [cell(there[name][i]) for name in shown],
                }
                for i in chosen
            ],
            # Where weights depend on the class alone, whole classes have the same.
            "n_alike": int(np.count_nonzero(rows.weights == extreme)),
        }

    return {
        "columns": shown,
        "up": listed(order[:_EXAMPLES]),
        "down": listed(np.argsort(rows.weights, kind="stable")[:_EXAMPLES]),
    }


def checked(values: Any, n_given: int, what: str) -> np.ndarray[Any, Any]:
    """The values (n,) of a column; raise unless there is one for each row."""
    column = np.asarray(values)
    if column.shape != (n_given,):
        raise InvalidInputError(
            f"{what} must have a value for each of the {n_given} rows, got shape {column.shape}.",
            argument=what,
        )
    return column


def _items(columns: Mapping[str, Any] | None) -> list[tuple[str, Any]]:
    # A data frame works too: it is gone through by names.
    return [] if columns is None else [(name, columns[name]) for name in columns]
