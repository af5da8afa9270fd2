"""Fingerprints of data and settings, by which a stored study is recognised."""

from __future__ import annotations

import hashlib
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

_PLAIN = (bool, int, float, complex, str, bytes, type(None), np.generic)
_DEPTH = 12  # settings nested deeper, or circularly, count by their type
_LIBRARIES = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "purelib", "platlib"))


def fingerprint(settings: Mapping[str, Any], arrays: Sequence[Any], tables: Sequence[Any]) -> str:
    """A hash (16 hex digits) of settings, see `described`, of arrays and of tables of any kind."""
    digest = hashlib.sha256(described(settings).encode())
    for array in (*arrays, *(column for table in tables for column in _columns(table))):
        digest.update(_array(np.asarray(array)).encode())
    return digest.hexdigest()[:16]


def described(value: Any, depth: int = 0) -> str:
    """A text for a setting: the same in every process for the same setting, most likely different for others.

    A function counts by its name and its code, with its defaults and closure, but without the functions it
    calls; one of an installed library by its name. Estimators count by their parameters, dataclasses by the
    fields they are compared by, other callables by their attributes, everything else by its type.
    """
    if isinstance(value, _PLAIN):
        return repr(value)
    name = _name(type(value))
    if depth > _DEPTH:
        return name

    def all_of(*parts: Any) -> str:
        return ",".join(described(part, depth + 1) for part in parts)

    if isinstance(value, np.ndarray):
        return _array(value)
    if isinstance(value, Mapping):
        return f"{{{','.join(sorted(all_of(key, item) for key, item in value.items()))}}}"
    if isinstance(value, set | frozenset):
        return f"{{{','.join(sorted(map(all_of, value)))}}}"
    if isinstance(value, list | tuple):
        return f"({all_of(*value)})"
    if isinstance(value, type):
        return _name(value)
    if isinstance(value, FunctionType):
        return f"{_function(value)}({all_of(*_enclosed(value), value.__defaults__, value.__kwdefaults__)})"
    if isinstance(value, MethodType):
        return f"method({all_of(value.__func__, value.__self__)})"
    if isinstance(value, partial):
        return f"partial({all_of(value.func, value.args, value.keywords)})"
    if hasattr(value, "get_params"):
        return f"{name}({all_of(value.get_params(deep=False))})"
    if is_dataclass(value):
        counted = [field.name for field in fields(value) if field.compare]
        return f"{name}({all_of({field: getattr(value, field) for field in counted})})"
    if isinstance(getattr(value, "__qualname__", None), str):  # a function that is not written in Python
        return f"{getattr(value, '__module__', '')}.{value.__qualname__}"
    if callable(value):
        return f"{name}({all_of(type(value).__call__, getattr(value, '__dict__', {}))})"
    return name


def _name(named: Any) -> str:
    module = getattr(named, "__module__", None) or ""
    # A user's own script may be run as __main__ or imported, so a top-level module does not count.
    return f"{module.partition('.')[0]}.{named.__qualname__}" if "." in module else str(named.__qualname__)


def _function(function: FunctionType) -> str:
    code = function.__code__
    if code.co_filename.startswith(_LIBRARIES):
        return f"{function.__module__}.{function.__qualname__}"
    return f"{function.__qualname__}:{hashlib.sha256(_code(code, function.__doc__).encode()).hexdigest()}"


def _code(code: CodeType, doc: str | None = None) -> str:
    """The code as text, without line numbers, file name and docstring."""
    constants = [
        _code(constant) if isinstance(constant, CodeType) else described(constant)
        for constant in code.co_consts
        if doc is None or constant != doc
    ]
    return f"{code.co_code.hex()}{constants}{code.co_names}{code.co_freevars}"


def _enclosed(function: FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not yet filled
            yield None


def _array(values: np.ndarray[Any, Any]) -> str:
    numeric = values.dtype.kind in "biufc"
    content = (
        np.ascontiguousarray(values).tobytes() if numeric else "\x1f".join(map(str, values.ravel())).encode()
    )
    return f"{values.shape}{hashlib.sha256(content).hexdigest()}"


def _columns(table: Any) -> Iterator[Any]:
    if hasattr(table, "tocsr"):
        sparse = table.tocsr()
        yield from (sparse.data, sparse.indices, sparse.indptr)
    elif hasattr(table, "columns"):
        yield from (table[name] for name in table.columns)
    else:
        yield table
