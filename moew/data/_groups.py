"""Rows that belong together: groups as codes, and random shares and samples of whole groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from moew.data._columns import is_missing
from moew.exceptions import Argument, InPython, InvalidInputError
from moew.types import Array, BoolArray, Columns, FloatArray, IntArray


def check_groups(groups: Any, what: str) -> Array:
    """The groups (n,) as an array, none of them missing."""
    values = np.asarray(groups)
    if values.ndim != 1:
        raise InvalidInputError(
            f"the {what} rows' ",
            Argument("groups"),
            f" must hold one number or text for each row, got shape {values.shape}.",
            InPython(" A column of X is passed with its values: groups=X['query']."),
            argument="groups",
        )
    if (missing := is_missing(values)).any():
        numbers = np.flatnonzero(missing)
        raise InvalidInputError(
            f"{len(numbers)} of the {what} rows, such as row {numbers[0]}, counted from 0, have no group (",
            Argument("groups"),
            " is missing there): give every row a group; a row that belongs to no other gets one of its own.",
            argument="groups",
        )
    return values


def group_codes(values: Array) -> IntArray:
    """Integer codes (n,) of groups; integers are their own codes."""
    if values.dtype.kind in "iu":
        return np.asarray(values.astype(np.int64))
    if values.dtype.kind != "O":
        return np.unique(values, return_inverse=True)[1]
    codes: dict[Any, int] = {}  # objects of several kinds cannot be sorted
    return np.array([codes.setdefault(value, len(codes)) for value in values.tolist()], dtype=np.int64)


def coded_groups(groups: IntArray) -> tuple[IntArray, IntArray]:
    """Codes (n,) of the groups from 0, and their sizes; raise if there is only one."""
    _, codes, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    if len(sizes) < 2:
        raise InvalidInputError(
            "all rows belong to one group, and groups are not cut apart: there is nothing to split. Give "
            "rows of more groups, or no ",
            Argument("groups"),
            ".",
            argument="groups",
        )
    return codes, sizes


def count_groups(groups: IntArray) -> int:
    """The number of different groups."""
    return len(np.unique(groups))


def deal_groups(strata: IntArray, groups: IntArray, share: float, rng: np.random.Generator) -> BoolArray:
    """Which rows (n,) are in a random `share` of whole groups that has nearly that share of every stratum.

    Groups with as many rows in every stratum can stand for each other: the share of them is drawn. What is
    left of every such kind, at most one group, goes to the side where it disturbs the shares least, large
    groups first but for some chance, because the smallest even out what the others leave.
    """
    _, stratum = np.unique(strata, return_inverse=True)
    group, sizes = coded_groups(groups)
    n_groups, n_strata = len(sizes), int(stratum.max()) + 1
    counts = np.bincount(group * n_strata + stratum, minlength=n_groups * n_strata)
    counts = counts.reshape(n_groups, n_strata)
    order = rng.permutation(n_groups)
    order = order[np.lexsort(counts[order].T)]
    is_first = np.concatenate([[True], (np.diff(counts[order], axis=0) != 0).any(axis=1)])
    first = np.flatnonzero(is_first)
    alike = np.diff(np.append(first, n_groups))
    place = np.arange(n_groups) - np.repeat(first, alike)
    low, high = np.floor(share * alike), np.ceil(share * alike)
    held = np.zeros(n_groups, dtype=bool)
    held[order] = place < np.repeat(low, alike)
    odd = order[(place >= np.repeat(low, alike)) & (place < np.repeat(high, alike))]
    odd = odd[np.argsort(-sizes[odd] * rng.uniform(0.5, 1, len(odd)))]
    coins = rng.random(len(odd)) < 0.5
    # All rows together are one more stratum. A stratum counts by its share, so that rare ones count enough.
    table = np.column_stack([counts, sizes])
    scaled = table / np.sqrt(table.sum(axis=0))
    settled = np.ones(n_groups, dtype=bool)
    settled[odd] = False
    ahead = (held[settled] - share) @ scaled[settled]  # of the share, in every stratum
    for one, coin in zip(odd.tolist(), coins.tolist(), strict=True):
        row = scaled[one]
        own = float(row @ row)
        # |ahead + (1 − share)·row|² − |ahead − share·row|²: what holding it costs more than keeping it.
        costs = 2 * float(ahead @ row) + (1 - 2 * share) * own
        held[one] = coin if abs(costs) < 1e-9 * own else costs < 0
        ahead += (held[one] - share) * row
    return _strata_on_both_sides(held, table, scaled, ahead)[group]


def columns_of_names(columns: Columns, groups: IntArray) -> list[str]:
    """The columns that name the groups (n,): one name for each."""
    _, codes = np.unique(groups, return_inverse=True)
    found = []
    for column, values in columns.items():
        try:
            _, names = np.unique(np.asarray(values), return_inverse=True)
        except TypeError:  # objects of several kinds
            continue
        pairs = np.unique(names * (codes.max() + 1) + codes)
        if len(pairs) == names.max() + 1 == codes.max() + 1:
            found.append(column)
    return found


def copies_apart(columns: Columns, names: Sequence[str], sample: IntArray) -> dict[str, Array]:
    """The columns `names` in a bootstrap sample of groups that they name, with other names for copies.

    `sample` are the numbers of the sample's rows. A metric by query would take a query that was drawn twice
    for one query, and the sample for a smaller one.
    """
    order = np.argsort(sample, kind="stable")
    _, repeats = np.unique(sample, return_counts=True)
    copy = np.empty(len(sample), dtype=np.int64)
    copy[order] = np.arange(len(sample)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    return {name: _renamed(np.asarray(columns[name]), sample, copy) for name in names}


def _renamed(values: Array, sample: IntArray, copy: IntArray) -> Array:
    taken = values[sample]
    if values.dtype.kind in "iuf":
        return np.asarray(taken + copy * (values.max() - values.min() + 1))
    texts = [f"{value} ({k + 1})" if k else value for value, k in zip(taken.tolist(), copy, strict=True)]
    return np.array(texts, dtype=object if values.dtype.kind == "O" else None)


def _strata_on_both_sides(
    held: BoolArray, table: IntArray, scaled: FloatArray, ahead: FloatArray
) -> BoolArray:
    """Which groups are held, after groups were moved so that all strata of two or more groups are on both
    sides, where that costs no other stratum a side; the rarest first."""
    held, there = held.copy(), table > 0  # (n_groups, n_strata)
    can_be_on_both = there.sum(axis=0) >= 2
    for stratum in np.argsort(table.sum(axis=0), kind="stable"):
        for side in (True, False):
            members = np.flatnonzero(there[:, stratum])
            if len(members) < 2 or (held[members] == side).any():
                continue
            needed = (there[held != side].sum(axis=0) == 1) & can_be_on_both
            members = members[~(there[members] & needed).any(axis=1)]
            if len(members) == 0:
                continue
            step = scaled if side else -scaled
            moved = members[((ahead + step[members]) ** 2).sum(axis=1).argmin()]
            held[moved] = side
            ahead = ahead + step[moved]
    return held
