"""Rows that belong together: groups, random shares of whole groups, and copies of rows as groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from moew._util.checks import warn
from moew.data._columns import is_missing
from moew.data._rows import LabelledRows, group_codes
from moew.exceptions import Argument, InvalidInputError
from moew.types import Array, BoolArray, Columns, Features, FloatArray, IntArray, Task

_MOST_COLUMNS = 256  # that rows are compared in: more take time and add little
_COUNTED_ROWS = 300  # that show how many values a column has
_FEWEST, _SHARE = 3, 0.01  # different rows with copies, and share of a table's rows, that are worth a word
_MOST_EQUAL = 3  # rows for each different one, if halves are to tell; more may be categories
_ERRORS = 5  # standard errors that are beyond chance
_UNSEEN = 4  # rows that chance might have given as well
_ODD = np.uint64(0x9E3779B97F4A7C15)


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


def places_inside(sizes: IntArray) -> IntArray:
    """The place, from 0, of each row inside its set, for sets of these sizes, one behind the other."""
    return np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)


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
    place = places_inside(alike)
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


def bootstrap_samples(
    rows: LabelledRows, n: int, rng: np.random.Generator
) -> Iterator[tuple[IntArray, LabelledRows]]:
    """n bootstrap samples of the rows, as their numbers and as rows; of whole groups, none of a single one. A
    column that names the groups has other names for copies of a group: a query drawn twice is two queries."""
    if rows.groups is not None and count_groups(rows.groups) < 2:
        return
    names = [] if rows.groups is None else columns_of_names(rows.columns, rows.groups)
    for _ in range(n):
        numbers = bootstrap_rows(len(rows), rng, rows.groups)
        taken = rows.take(numbers)
        if names:
            apart = copies_apart(rows.columns, names, numbers)
            taken = replace(taken, columns={**taken.columns, **apart})
        yield numbers, taken


def bootstrap_rows(n: int, rng: np.random.Generator, groups: IntArray | None = None) -> IntArray:
    """Row numbers of a bootstrap sample of n rows; with `groups` (n,) of as many groups as there are."""
    if groups is None:
        return rng.integers(n, size=n)
    codes, sizes = coded_groups(groups)
    members, starts = np.argsort(codes, kind="stable"), np.cumsum(sizes) - sizes
    drawn = rng.integers(len(sizes), size=len(sizes))
    lengths = sizes[drawn]
    return np.asarray(members[places_inside(lengths) + np.repeat(starts[drawn], lengths)])


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
    """The columns `names` in a sample of rows with these numbers, with other values for copies of a row."""
    order = np.argsort(sample, kind="stable")
    _, repeats = np.unique(sample, return_counts=True)
    copy = np.empty(len(sample), dtype=np.int64)
    copy[order] = places_inside(repeats)
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


def lone_labels(rows: LabelledRows) -> list[Any]:
    """The labels of a single row or, with groups, of a single group."""
    classes, codes = np.unique(rows.y, return_inverse=True)
    if rows.groups is not None:
        codes = np.unique(np.stack([codes, rows.groups]), axis=1)[0]
    alone: list[Any] = classes[np.bincount(codes) < 2].tolist()
    return alone


@dataclass(frozen=True)
class Copies:
    """Copies among the training rows and the validation rows."""

    codes: IntArray  # (n,) the same for equal rows; training rows come first
    within: tuple[bool, bool]  # whether training rows, and validation rows, are copies of each other
    across: bool  # whether validation rows are copies of training rows
    as_groups: bool  # whether equal rows can be a group; not where most of them are equal by chance


def copies_together(
    task: Task, training: LabelledRows, validation: LabelledRows | None, *, cut_by_user: bool = False
) -> tuple[LabelledRows, LabelledRows | None, tuple[str, ...]]:
    """The rows, with copies of a row as a group, so that no split cuts them apart; and notes about them.

    Groups that the user gave stay, and with `cut_by_user`, a splitter of the user's, there are none. Warns of
    validation rows that are training rows, too, and of copies that a split may cut apart.
    """
    copies = find_copies(training, validation)
    if copies is None:
        return training, validation, ()
    n, codes = len(training), copies.codes
    tables = [training] if validation is None else [training, validation]
    grouped = replace(training, groups=codes[:n])
    can_group = copies.as_groups and not cut_by_user and all(rows.groups is None for rows in tables)
    can_group &= task != "classification" or not lone_labels(grouped)
    equal = "all features are equal" + ("" if copies.as_groups else ", more often than by chance")
    if copies.across:
        warn(
            f"{int(np.isin(codes[n:], codes[:n]).sum()):,} of the {len(codes) - n:,} validation rows are "
            f"training rows, too ({equal}). Models that were trained on them score too well there, so that "
            "the honest score can be too good: leave these rows out of the training rows.",
            argument="validation",
        )
    told = []
    parts = zip(("training", "validation"), np.split(codes, [n]), copies.within, strict=True)
    for what, part, has_copies in parts:
        _, times = np.unique(part, return_counts=True)
        if has_copies:
            repeated = f"{times[times > 1].sum():,} of the {len(part):,} {what} rows"
            told.append(f"{repeated} stand more than once ({equal})")
    if can_group:
        others = None if validation is None else replace(validation, groups=codes[n:])
        return grouped, others, tuple(f"{one}: copies stay on one side of every split." for one in told)
    if told:
        warn(
            f"{' and '.join(told)}, and splits may cut copies apart, so that scores are too good or look too "
            "sure: leave the copies out, or give them the same group.",
            argument="groups",
        )
    return training, validation, ()


def find_copies(training: LabelledRows, validation: LabelledRows | None = None) -> Copies | None:
    """The copies among rows; None if there are none, or they cannot be told. Rows of weight 0 do not count,
    nor do rows that are equal within a group of the user's, which no split cuts apart.

    Equal rows are copies if half of the columns tells them from all rows that differ, as numbers of many
    values do; or else if there are more equal rows than chance gives.
    """
    tables = [training] if validation is None else [training, validation]
    halves = _halves([rows.X for rows in tables])
    if halves is None:
        return None
    n, numbers = len(training), halves[0] + _mixed(halves[1], _ODD)
    in_tables = [_counted(rows, part) for rows, part in zip(tables, np.split(numbers, [n]), strict=False)]
    counted = np.concatenate([start + rows for start, rows in zip((0, n), in_tables, strict=False)])
    _, first, code, count = np.unique(
        numbers[counted], return_index=True, return_inverse=True, return_counts=True
    )
    if len(first) == len(code):
        return None
    parts = np.split(code, [len(in_tables[0])])
    a, b = (np.bincount(part, minlength=len(first)) for part in parts)
    told = _told(halves[:, counted], first, count)
    by_half = [
        np.sum(rows[told] > 0) >= _FEWEST and rows[told].sum() >= _SHARE * len(part)
        for rows, part in zip((a * (a > 1), b * (b > 1), b * (a > 0)), (*parts, parts[1]), strict=True)
    ]
    labels = [rows.y[at] for rows, at in zip(tables, in_tables, strict=True)]
    within = [_excess_within(part, y) for part, y in zip(parts, (*labels, np.empty(0)), strict=False)]
    by_chance = (*within, _excess_across(a, b))
    found = [bool(one or share > 0) for one, share in zip(by_half, by_chance, strict=True)]
    if not any(found):
        return None
    mostly_copies = any(by_chance) and all(share == 0 or share >= 0.5 for share in by_chance)
    only_told = any(by_half) and not mostly_copies
    codes = np.arange(len(numbers))
    codes[counted] = counted[np.where(told[code] | (not only_told), first[code], np.arange(len(code)))]
    return Copies(codes, (found[0], found[1]), found[2], mostly_copies or only_told)


def _counted(rows: LabelledRows, numbers: Array) -> IntArray:
    """The rows that count, of rows with `numbers` (n,) that are the same for equal ones."""
    at = np.flatnonzero(rows.own_weights)
    if rows.groups is None:
        return at
    of_group = numbers[at] + _mixed(rows.groups[at].astype(np.uint64), _ODD)
    return np.asarray(at[np.sort(np.unique(of_group, return_index=True)[1])])


def _told(halves: Array, first: IntArray, count: IntArray) -> BoolArray:
    """Which different rows (K,), the `first` of `count` equal ones, stand more than once, and each half tells
    them from all others; none where that holds for few of those that stand more than once."""
    told = count > 1
    for half in halves:
        _, of, times = np.unique(half[first], return_inverse=True, return_counts=True)
        told &= times[of] == 1
    enough = 2 * told.sum() >= np.sum(count > 1) and count.sum() <= _MOST_EQUAL * len(first)
    return told if enough else np.zeros(len(first), dtype=bool)


def _excess_within(code: IntArray, y: Array) -> float:
    """The share of a table's rows that stand more than once that is more than chance gives; 0 if none.

    `code` and y (n,) are the same for equal rows, and for equal labels: copies agree in both. If rows are
    drawn at random, however frequent each is, the numbers n_k of different rows that stand k times keep
    E[n_k]² ≤ (k + 1)/k · E[n_(k−1)] · E[n_(k+1)], and no more stand an even number of times than an odd one.
    """
    labels, label = np.unique(y, return_inverse=True)
    _, times = np.unique(code * len(labels) + label, return_counts=True)
    n = np.append(np.bincount(times, minlength=2), 0)
    k = np.arange(2, len(n) - 1)
    ratio = (k + 1) / k
    more = n[k] - np.sqrt(ratio * (n[k - 1] + 1) * (n[k + 1] + 1))
    error = np.sqrt(n[k] + ratio / 4 * (n[k - 1] + n[k + 1]) + 1)
    more_even = len(times) - 2 * int(np.sum(times % 2))
    beyond = [
        *(k * more)[(more > _ERRORS * error) & (k * more >= _SHARE * len(code))],
        *([more_even] if more_even > _ERRORS * np.sqrt(len(times)) else []),
    ]
    return float(max(beyond, default=0) / max(1, times[times > 1].sum()))


def _excess_across(a: IntArray, b: IntArray) -> float:
    """The share of the validation rows equal to training rows that is more than chance gives; 0 if none.

    Each different row stands `a` times (K,) among training rows and `b` times (K,) among validation rows. If
    both are drawn at random, however frequent each row is on either side, the validation rows that are equal
    to training rows are at most √(A·B), all in expectation: A is the number of training rows equal to other
    training rows, and B = Σ b(b − 1)/(a + 1).
    """
    shared, of_a, of_b = b * (a > 0), a * (a > 1), b * (b - 1) / (a + 1)
    most_a, most_b = float(of_a.sum()) + _UNSEEN, float(of_b.sum()) + _UNSEEN
    more, slope = shared.sum() - np.sqrt(most_a * most_b), np.sqrt(most_b / most_a)
    error = np.sqrt(np.sum((shared - slope / 2 * of_a - of_b / (2 * slope)) ** 2))
    return float(more / shared.sum()) if more > max(_ERRORS * error, _SHARE * b.sum()) else 0.0


@np.errstate(over="ignore", invalid="ignore")
def _halves(tables: Sequence[Features]) -> Array | None:
    """For each half of the columns, numbers (2, n) that are the same for equal rows; None if rows cannot be
    compared. Columns of many values are dealt to both halves."""
    if tables[0].shape[1] == 0:
        return None
    try:
        if any(hasattr(table, "tocsr") for table in tables):
            return _halves_of_sparse(tables)
        columns = list(_columns(tables))
    except (TypeError, ValueError):  # values that cannot be compared
        return None
    step = max(1, len(columns[0]) // _COUNTED_ROWS)
    in_first = _dealt(np.array([len(np.unique(column[::step])) for column in columns]))
    sums = np.zeros((2, len(columns[0])), dtype=np.uint64)
    for column, first, odd in zip(columns, in_first, _odd_numbers(len(columns)), strict=True):
        sums[0 if first else 1] += _mixed(column, odd)
    return sums


def _halves_of_sparse(tables: Sequence[Any]) -> Array | None:
    from scipy.sparse import csr_matrix, vstack

    parts = [csr_matrix(table if hasattr(table, "tocsr") else np.asarray(table, float)) for table in tables]
    if any(part.dtype.kind not in "biuf" for part in parts):
        return None
    whole = vstack(parts, format="csr", dtype=np.float64)
    whole.sum_duplicates()
    of_column, odd = whole.indices, _odd_numbers(whole.shape[1])
    is_rounded = np.full(len(odd), any(part.dtype == np.float32 for part in parts))
    is_rounded[of_column[whole.data % 1 > 0]] = True
    data = np.where(is_rounded[of_column], whole.data.astype(np.float32), whole.data)
    mixed = csr_matrix((_mixed(_bits(data), odd[of_column]), of_column, whole.indptr), whole.shape)
    in_first = _dealt(np.bincount(of_column, minlength=len(odd)))
    return np.array([mixed @ side.astype(np.uint64) for side in (in_first, ~in_first)])


def _dealt(n_values: IntArray) -> BoolArray:
    """Which columns (D,) are in the first half: those of most values go to the halves in turn."""
    in_first = np.empty(len(n_values), dtype=bool)
    in_first[np.argsort(-n_values, kind="stable")] = np.isin(np.arange(len(n_values)) % 4, (0, 3))
    return in_first


def _columns(tables: Sequence[Features]) -> Iterator[Array]:
    """The columns of the tables, one below the other, as integers (n,) that are the same for equal values."""
    names: Any = getattr(tables[0], "columns", None)
    by_name = all(hasattr(table, "columns") for table in tables)
    parts = tables if by_name else [np.asarray(table) for table in tables]
    n_columns = int(tables[0].shape[1])
    for j in np.unique(np.linspace(0, n_columns - 1, min(n_columns, _MOST_COLUMNS)).astype(int)):
        values = [np.asarray(part[names[j]]) if by_name else part[:, j] for part in parts]
        if not all(part.dtype.kind in "biuf" for part in values):
            yield _codes(values)
            continue
        numbers = np.concatenate(values)
        # Fractions may have fewer digits elsewhere; long whole numbers name things.
        has_fractions = numbers.dtype.kind == "f" and bool((numbers % 1 > 0).any())
        if has_fractions or any(part.dtype == np.float32 for part in values):
            numbers = numbers.astype(np.float32)
        yield _bits(numbers)


def _bits(numbers: Array) -> Array:
    """Integers (n,) that are equal for equal numbers: zero for both zeros, and one for all NaN."""
    floats = np.asarray(numbers, dtype=np.float64) + 0.0
    floats[np.isnan(floats)] = np.nan
    return floats.view(np.uint64)


def _codes(parts: Sequence[Array]) -> Array:
    values = np.concatenate([part.astype(object) for part in parts])
    values[is_missing(values)] = None
    return np.asarray(group_codes(values) + 1, dtype=np.uint64)


def _odd_numbers(n: int) -> Array:
    return np.random.default_rng(0).integers(2**63, size=n, dtype=np.uint64) * np.uint64(2) + np.uint64(1)


def _mixed(numbers: Array, odd: Any) -> Array:
    """Numbers (n,) whose sums over columns are equal by chance in one of 2⁶⁴ cases; 0 stays 0."""
    mixed = (numbers ^ (numbers >> np.uint64(32))) * odd  # small numbers have their bits at the upper end
    mixed ^= mixed >> np.uint64(29)
    mixed *= _ODD
    mixed ^= mixed >> np.uint64(32)
    return np.asarray(mixed)
