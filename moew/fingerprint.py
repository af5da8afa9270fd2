"""A short text that tells whether a stored study belongs to this data and these settings."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from moew.protocols import Rows

_PLAIN = (bool, int, float, str, type(None), np.number)


def fingerprint(settings: dict[str, Any], arrays: list[Any], tables: list[Rows]) -> str:
    """Of plain settings (others count by their type), of arrays and of tables of any kind."""
    digest = hashlib.sha256()
    for name, value in sorted(settings.items()):
        shown = repr(value) if isinstance(value, _PLAIN) else type(value).__qualname__
        digest.update(f"{name}={shown};".encode())
    for array in (*arrays, *(column for table in tables for column in _columns(table))):
        values = np.asarray(array)
        numeric = values.dtype.kind in "biuf"
        content = (
            np.ascontiguousarray(values).tobytes() if numeric else "\x1f".join(map(str, values)).encode()
        )
        digest.update(f"{values.shape}".encode())
        digest.update(content)
    return digest.hexdigest()[:16]


def _columns(table: Rows) -> Iterator[Any]:
    if hasattr(table, "tocsr"):
        sparse = table.tocsr()
        yield from (sparse.data, sparse.indices, sparse.indptr)
    elif hasattr(table, "columns"):
        yield from (table[name] for name in table.columns)
    else:
        yield table
