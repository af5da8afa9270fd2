"""Generated rows, labels, weights, models and metrics: sound ones, and odd ones."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from fuzz_cases import chance, odd_value, pick
from scipy import sparse

from moew import Rows

Rng = np.random.Generator


@dataclass
class Problem:
    """Rows and arguments of a fit, and whether everything about them is sound."""

    task: str
    rows: dict[str, Any]  # by name, those of the validation rows with "_val"
    sound: bool
    n_rows: int  # of the training rows, before anything odd
    n_classes: int = 0
    odd: list[str] = field(default_factory=list)  # what is odd, for messages

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of `fit`."""
        arguments = {name: value for name, value in self.rows.items() if not name.endswith("_val")}
        of_validation = [name for name in self.rows if name.endswith("_val")]
        if not of_validation:
            return arguments
        return {"validation": rows_of(self.rows, "_val"), **arguments}


def rows_of(rows: dict[str, Any], suffix: str) -> Any:
    """The rows whose names end so, as they are passed: (X, y) where there is nothing more."""
    given = {name: rows.get(name + suffix) for name in ("X", "y", "sample_weight", "columns", "groups")}
    more = any(name + suffix in rows for name in ("sample_weight", "columns", "groups"))
    return Rows(**given) if more else (given["X"], given["y"])


def make_problem(rng: Rng, *, odd: bool) -> Problem:
    """Rows of a classification or regression; sound ones have enough rows of each class in each part."""
    n_classes = int(rng.choice([0, 2, 2, 2, 3]))
    task = "classification" if n_classes else "regression"
    n, d = int(rng.integers(24, 100)), int(rng.integers(1, 5))
    if odd and chance(rng, 0.2):
        n = int(rng.choice([1, 2, 3, 4, 5, 8, 12, 200, 300]))
    parts = [_part(rng, n, d, n_classes)]
    with_validation = chance(rng, 0.6)
    if with_validation:
        m = max(12, n // 2)
        parts.append(_part(rng, m if not odd or chance(rng, 0.9) else int(rng.integers(1, 6)), d, n_classes))
    form = pick(rng, SOUND_X)
    labels = pick(rng, SOUND_LABELS if n_classes else SOUND_TARGETS)
    rows: dict[str, Any] = {}
    for suffix, (X, y) in zip(("", "_val"), parts, strict=False):
        rows[f"X{suffix}"], rows[f"y{suffix}"] = form(X), labels(y)
        if chance(rng, 0.25) and (not suffix or "sample_weight" in rows):
            rows[f"sample_weight{suffix}"] = rng.choice(
                [0.0, 0.5, 1.0, 3.0], len(y), p=[0.05, 0.3, 0.45, 0.2]
            )
    problem = Problem(task, rows, not odd, n, n_classes)
    if odd:
        for _ in range(int(rng.choice([0, 1, 1, 2, 3]))):
            name, change = pick(rng, ODDITIES)
            with suppress(Exception):  # not every one can be made of what another left
                change(rng, rows)
                problem.odd.append(name)
    return problem


def _part(rng: Rng, n: int, d: int, n_classes: int) -> tuple[Any, Any]:
    X = rng.normal(size=(n, d))
    signal = X[:, 0] + 0.7 * rng.normal(size=n)
    if not n_classes:
        return X, np.round(20 + 5 * signal, 3)
    ranks = np.argsort(np.argsort(signal))
    shares = {2: [0.0, 0.7], 3: [0.0, 0.5, 0.8]}[n_classes]
    y = np.searchsorted(np.array(shares) * n, ranks, side="right") - 1
    return X, y


def _frame(X: Any) -> Any:
    return pd.DataFrame(X, columns=[f"x{k}" for k in range(X.shape[1])])


# Forms of sound rows and labels; every model that is used takes them.
SOUND_X: list[Callable[[Any], Any]] = [
    lambda X: X,
    lambda X: X,
    lambda X: X.astype(np.float32),
    np.asfortranarray,
    lambda X: X.tolist(),
    lambda X: np.round(X * 3).astype(int),
    _frame,
    lambda X: _frame(X).set_index(np.arange(len(X)) * 7 + 3),
    lambda X: _frame(np.round(X)).astype("int32"),
]
SOUND_LABELS: list[Callable[[Any], Any]] = [
    lambda y: y,
    lambda y: y,
    lambda y: y.astype(np.uint8),
    lambda y: y.astype(float),
    lambda y: y.tolist(),
    lambda y: np.array(["cat", "dog", "a very long name"])[y],
    lambda y: np.array(["cat", "dog", "ape"], dtype=object)[y],
    lambda y: pd.Series(np.array(["b", "a", "c"])[y], index=np.arange(len(y)) * 3),
    lambda y: pd.Series(y).astype("category"),
    lambda y: y * 10**12 - 5,
]
SOUND_TARGETS: list[Callable[[Any], Any]] = [
    lambda y: y,
    lambda y: y.astype(np.float32),
    lambda y: y.tolist(),
    lambda y: pd.Series(y, index=np.arange(len(y)) * 3),
    lambda y: np.round(y).astype(int),
]


# Odd rows


def _spoil(value: Any) -> Callable[[Rng, dict[str, Any]], None]:
    def change(rng: Rng, rows: dict[str, Any]) -> None:
        name = pick(rng, [key for key in rows if key.startswith("X")])
        X = np.array(rows[name], dtype=float)
        X[rng.random(X.shape) < pick(rng, [0.02, 0.3, 1.0])] = value
        rows[name] = X

    return change


def _other_form(
    form: Callable[[Rng, Any], Any], *, both: bool = True
) -> Callable[[Rng, dict[str, Any]], None]:
    def change(rng: Rng, rows: dict[str, Any]) -> None:
        names = [key for key in rows if key.startswith("X")]
        for name in names if both else [pick(rng, names)]:
            rows[name] = form(rng, np.array(rows[name], dtype=float))

    return change


def _mixed_frame(rng: Rng, X: Any) -> Any:
    frame, n = _frame(X), len(X)
    columns: dict[str, Any] = {
        "text": rng.choice(["red", "green", "blue"], n),
        "object": rng.choice(np.array(["a", None, 3], dtype=object), n),
        "category": pd.Categorical(rng.choice(["u", "v"], n), categories=["u", "v", "w"]),
        "whole": pd.array(rng.choice([1, 2], n), dtype="Int64"),
        "missing": pd.array([None if k % 3 else 1.5 for k in range(n)], dtype="Float64"),
        "truth": pd.array(rng.choice([True, False], n), dtype="boolean"),
        "date": pd.date_range("2020-01-01", periods=n),
        "spaces ": rng.normal(size=n),
    }
    for name in rng.choice(list(columns), size=int(rng.integers(1, 4)), replace=False):
        frame[name] = columns[str(name)]
    return frame


def _same_names(_: Rng, X: Any) -> Any:
    frame = _frame(X)
    frame.columns = ["x"] * X.shape[1]
    return frame


def _other_columns(rng: Rng, rows: dict[str, Any]) -> None:
    if "X_val" in rows:
        X = np.array(rows["X_val"], dtype=float)
        rows["X_val"] = pick(rng, [X[:, :-1], np.hstack([X, X]), _frame(X), _frame(X[:, ::-1])])


def _labels(change_labels: Callable[[Rng, Any], Any]) -> Callable[[Rng, dict[str, Any]], None]:
    def change(rng: Rng, rows: dict[str, Any]) -> None:
        name = pick(rng, [key for key in rows if key.startswith("y")])
        rows[name] = change_labels(rng, np.array(rows[name]))

    return change


def _with_some(value: Any) -> Callable[[Rng, Any], Any]:
    def change(rng: Rng, y: Any) -> Any:
        changed = y.astype(object)
        if len(changed):
            changed[rng.integers(len(changed), size=1 + len(changed) // 10)] = value
        return changed

    return change


ODD_LABELS: list[Callable[[Rng, Any], Any]] = [
    _with_some(np.nan),
    _with_some(None),
    _with_some("x"),
    _with_some(pd.NA),
    _with_some(10**25),
    lambda _, y: np.zeros(len(y)),
    lambda _, y: np.arange(len(y)),
    lambda _, y: np.arange(len(y)) == 0,
    lambda _, y: y[:-1],
    lambda _, y: y[:, None],
    lambda _, y: np.stack([y, y], axis=1),
    lambda _, y: y.astype(str),
    lambda _, y: y.astype(bytes),
    lambda _, y: y.astype(bool),
    lambda rng, y: rng.normal(size=len(y)) * 1e308,
    lambda rng, y: rng.normal(size=len(y)) * 1e-308,
    lambda rng, y: rng.choice([2**63 - 1, -(2**63)], len(y)),
    lambda rng, y: rng.choice(np.array([2**64 - 1, 0], dtype=np.uint64), len(y)),
    lambda rng, y: rng.choice([np.inf, 1.0], len(y)),
    lambda rng, y: rng.normal(size=len(y)),
    lambda rng, y: rng.normal(size=len(y)) * 1j,
    lambda rng, y: rng.choice(["", " "], len(y)),
    lambda rng, y: rng.choice(np.array([(1,), (1, 2), 3, "x"], dtype=object), len(y)),
    lambda _, y: np.arange(len(y)).astype("datetime64[D]"),
    lambda rng, y: pd.Series(rng.choice([1, 2], len(y))).astype("Int64"),
    lambda rng, y: pd.Series(rng.choice(["a", "b"], len(y))).astype("string"),
    lambda rng, y: odd_value(rng),
    lambda _, y: "".join(map(str, y)),
    lambda _, y: dict(enumerate(y)),
    lambda _, y: iter(y),
    lambda _, y: np.ma.masked_array(y, mask=np.arange(len(y)) % 2 == 0),
]


def n_rows(X: Any) -> int:
    """The number of rows, also of sparse ones."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _weights(rng: Rng, rows: dict[str, Any]) -> None:
    name = pick(rng, [f"sample_weight{key.removeprefix('X')}" for key in rows if key.startswith("X")])
    n = n_rows(rows[f"X{name.removeprefix('sample_weight')}"])
    rows[name] = pick(
        rng,
        [
            np.zeros(n), np.full(n, -1.0), np.full(n, np.nan), np.full(n, np.inf), np.ones(n + 1),
            np.ones((n, 2)),
            np.full(n, 1e300), np.full(n, 1e-300), np.full(n, 5e-324), np.arange(n), np.arange(n) == 0,
            ["x"] * n,
            rng.choice([1e-200, 1e200], n), rng.choice([0, 1], n), np.ones(n, dtype=object),
            pd.Series(np.ones(n)),
            [None] * n, np.ones(n) * 1j, odd_value(rng),
        ],
    )  # fmt: skip


def _groups(rng: Rng, rows: dict[str, Any]) -> None:
    for key in [key for key in rows if key.startswith("X")]:
        n = n_rows(rows[key])
        options = [
            np.arange(n) // 3, rng.integers(0, 5, n), rng.choice(["a", "b", "c", "d"], n), np.zeros(n),
            np.arange(n),
            rng.normal(size=n), np.full(n, np.nan), np.arange(n + 1), [None] * n,
            np.array(["a", 1, None, 2.5], dtype=object)[np.arange(n) % 4], np.arange(n)[:, None],
            pd.Series(np.arange(n) // 4), odd_value(rng),
        ]  # fmt: skip
        if chance(rng, 0.85):
            rows[f"groups{key.removeprefix('X')}"] = (
                options[int(rng.integers(3))] if chance(rng, 0.6) else pick(rng, options)
            )


def _columns(rng: Rng, rows: dict[str, Any]) -> None:
    for key in [key for key in rows if key.startswith("X")]:
        n = n_rows(rows[key])
        columns = {"group": rng.choice(["a", "b"], n), "cost": rng.random(n)}
        options = [
            columns, columns, pd.DataFrame(columns), {"group": np.ones(n + 1)}, {"group": [None] * n},
            {1: np.ones(n)},
            {"group": np.ones((n, 2))}, {}, {"group": np.nan}, odd_value(rng),
        ]  # fmt: skip
        rows[f"columns{key.removeprefix('X')}"] = pick(rng, options)


def _anything(rng: Rng, rows: dict[str, Any]) -> None:
    names = ["X", "y", "X_val", "y_val", "sample_weight", "groups", "columns", "validation"]
    name = pick(rng, names)
    if name == "validation":  # in place of rows
        for key in [key for key in rows if key.endswith("_val")]:
            del rows[key]
    rows[name] = odd_value(rng)


def _left_out(rng: Rng, rows: dict[str, Any]) -> None:
    for key in [key for key in rows if key.endswith("_val") and chance(rng, 0.5)]:
        del rows[key]


_SPARSE = (sparse.csr_matrix, sparse.csc_array, sparse.coo_matrix)
_DTYPES = ("bool", "object", "float16", "U", "uint8")
ODDITIES: list[tuple[str, Callable[[Rng, dict[str, Any]], None]]] = [
    ("NaN in X", _spoil(np.nan)),
    ("infinity in X", _spoil(np.inf)),
    ("huge numbers in X", _spoil(1e300)),
    ("tiny numbers in X", _spoil(1e-310)),
    ("a constant column", _other_form(lambda _, X: np.hstack([X, np.ones((len(X), 1))]))),
    ("sparse", _other_form(lambda rng, X: pick(rng, _SPARSE)(X))),
    ("one is sparse", _other_form(lambda rng, X: sparse.csr_array(X), both=False)),
    ("mixed frame", _other_form(_mixed_frame)),
    ("mixed frame", _other_form(_mixed_frame)),
    ("one is a mixed frame", _other_form(_mixed_frame, both=False)),
    ("columns of the same name", _other_form(_same_names)),
    ("numbers as names", _other_form(lambda _, X: pd.DataFrame(X))),
    ("other dtype", _other_form(lambda rng, X: X.astype(pick(rng, _DTYPES)))),
    ("complex", _other_form(lambda _, X: X + 1j)),
    ("no columns", _other_form(lambda _, X: X[:, :0])),
    ("no rows", _other_form(lambda _, X: X[:0], both=False)),
    ("three dimensions", _other_form(lambda _, X: X[..., None], both=False)),
    ("one dimension", _other_form(lambda _, X: X[:, 0], both=False)),
    ("rows of different lengths", _other_form(lambda _, X: [*X.tolist(), [1.0] * 9], both=False)),
    ("dates", _other_form(lambda _, X: np.arange(X.size).reshape(X.shape).astype("datetime64[D]"))),
    ("matrix of records", _other_form(lambda _, X: np.zeros(len(X), dtype=[("a", "f8"), ("b", "i4")]))),
    ("masked", _other_form(lambda _, X: np.ma.masked_array(X, mask=X > 1))),
    ("read only", _other_form(lambda _, X: np.broadcast_to(X[:1], X.shape))),
    ("other columns", _other_columns),
    *[("odd labels", _labels(change)) for change in ODD_LABELS],
    *[("odd weights", _weights)] * 6,
    *[("groups", _groups)] * 6,
    *[("columns", _columns)] * 6,
    *[("anything", _anything)] * 4,
    *[("left out", _left_out)] * 2,
]  # fmt: skip
