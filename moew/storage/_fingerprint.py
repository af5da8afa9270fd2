"""Fingerprints of data and settings, by which a stored study is recognised.

They hold back what differs at a glance: other data, another model, another function. What a function reads
besides its own text (globals, functions that it calls) is not followed: when a study goes on, its stored
predictions are scored again, which finds a metric that gives other values.
"""

from __future__ import annotations

import ast
import copyreg
import hashlib
import inspect
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import lru_cache, partial, reduce
from pathlib import Path
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

_PLAIN = (bool, int, float, complex, str, bytes, type(None), np.generic)
_DEPTH = 40  # how deep settings may be nested
_STANDARD = tuple(f"{sysconfig.get_paths()[name]}/" for name in ("stdlib", "platstdlib"))
_INSTALLED = ("/site-packages/", "/dist-packages/", "<frozen ", f"{Path(__file__).parents[1]}/")
_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
_LONG = 400  # characters from which on a text is replaced by its hash


def fingerprint(settings: Mapping[str, Any], arrays: Sequence[Any], tables: Sequence[Any]) -> str:
    """A hash (16 hex digits) of settings, see `described`, of arrays and of tables of any kind."""
    digest = hashlib.sha256(described(settings).encode())
    for array in (*arrays, *(column for table in tables for column in _columns(table))):
        digest.update(_Describer().array(np.asarray(array)).encode())
    return digest.hexdigest()[:16]


def described(value: Any) -> str:
    """A text for a setting: the same in every process for the same setting, most likely different for others.

    Functions and classes count by their names and their source text, those of an installed library by the
    library's version; estimators by their class and parameters, dataclasses by the fields they are compared
    by, other objects by their class and attributes.
    """
    return _Describer().text(value)


def unseen(value: Any) -> list[str]:
    """What `described` cannot look into, such as open files and functions without a source, in words.

    An object with a text `__version__` answers for all that is in it.
    """
    describer = _Describer()
    describer.text(value)
    return list(dict.fromkeys(describer.unseen))


class _Describer:
    """Describes one value; what could not be looked into is remembered."""

    def __init__(self) -> None:
        self.unseen: list[str] = []
        self._open: list[tuple[str, Any]] = []  # the objects that are being described, and their names
        self._is_used = False  # whether estimators are described as they are fitted, not as to be trained

    def text(self, value: Any, name: str = "") -> str:
        if isinstance(value, _PLAIN):
            return repr(value)
        if any(one is value for _, one in self._open):
            return "circle"
        before, was_used = len(self.unseen), self._is_used
        self._open.append((name, value))
        text = self._composed(value) if len(self._open) <= _DEPTH else self._cannot_see(value, "too deep: ")
        version = getattr(value, "__version__", None)
        if isinstance(version, str) and _library_of(value) is None:
            del self.unseen[before:]
            text = f"{text}version {version!r}"
        self._open.pop()
        self._is_used = was_used
        return text if len(text) < _LONG else f"{text[:80]}…{hashlib.sha256(text.encode()).hexdigest()}"

    def array(self, values: np.ndarray[Any, Any]) -> str:
        if values.dtype.kind in "biufc":
            content = np.ascontiguousarray(values).tobytes()
        else:
            items = values.ravel().tolist()
            content = "\x1f".join(str(i) if isinstance(i, _PLAIN) else self.text(i) for i in items).encode()
        kind = "text" if values.dtype.kind in "OUST" else values.dtype.newbyteorder("=").str
        return f"{values.shape}{kind}{hashlib.sha256(content).hexdigest()}"

    def _composed(self, value: Any) -> str:
        kind = _name(type(value))
        if isinstance(value, np.ndarray):
            return self.array(value)
        if isinstance(value, Mapping):
            return f"{kind}{{{self._items(value)}}}"
        if isinstance(value, set | frozenset):
            return f"{kind}{{{','.join(sorted(map(self.text, value)))}}}"
        if isinstance(value, list | tuple):
            return f"{kind}({self._all(*value)})"
        if isinstance(value, MethodType):
            return f"method({self._all(value.__func__, value.__self__)})"
        if isinstance(value, partial):
            return f"partial({self._all(value.func, value.args, value.keywords)})"
        if isinstance(value, type):
            own = [_source(base) for base in value.__mro__ if _library_of(base) is None]
            return f"{_name(value)}({self._all(*own)})" if all(own) else self._cannot_see(value)
        if isinstance(value, ModuleType | np.ufunc) or hasattr(value, "__qualname__"):
            return self._function(value)
        return self._object(value)

    def _function(self, value: Any) -> str:
        """A function, or a module."""
        if _library_of(value) is not None and _is_importable(value):
            return _name(value)
        owner = getattr(value, "__self__", None)
        if owner is not None and not isinstance(owner, ModuleType):
            return f"method({value.__name__},{self.text(owner)})"
        source = "" if isinstance(value, ModuleType) else _source(value)
        if hasattr(value, "__wrapped__"):  # of a decorator, such as jax.jit
            return f"{_name(type(value))}({self.text(value.__wrapped__)}):{source}"
        if not source:
            return self._cannot_see(value)
        enclosed = [
            cell.cell_contents for cell in getattr(value, "__closure__", None) or () if cell != CellType()
        ]
        known = [part for part in enclosed if isinstance(part, (*_PLAIN, FunctionType))]
        return f"{_name(value)}:{source}({self._all(*known)})"

    def _object(self, value: Any) -> str:
        kind = self.text(type(value))
        if hasattr(value, "get_params"):
            self._is_used |= type(value).__name__ == "FrozenEstimator"
            learned = {n: part for n, part in vars(value).items() if n.endswith("_")} if self._is_used else {}
            return f"{kind}({self._items(value.get_params(deep=False) | learned)})"
        self._is_used = True
        if is_dataclass(value):
            counted = {field.name: getattr(value, field.name) for field in fields(value) if field.compare}
            return f"{kind}({self._items(counted)})"
        if hasattr(value, "__array__") or hasattr(value, "tocsr"):
            with suppress(Exception):
                names = [np.asarray(getattr(value, of)) for of in ("columns", "index") if hasattr(value, of)]
                return f"{kind}({self._all(*names, *map(np.asarray, _columns(value)))})"
        try:  # as pickle and copy look at it
            registered: Any = copyreg.dispatch_table.get(type(value))
            reduced = value.__reduce_ex__(4) if registered is None else registered(value)
            reduced = (reduced,) if isinstance(reduced, str) else reduced
            items = [list(part) for part in reduced[3:5] if part is not None]
        except Exception:
            return self._cannot_see(value)
        return f"{kind}({self._all(*reduced[:3], *items)})"

    def _all(self, *parts: Any) -> str:
        return ",".join(map(self.text, parts))

    def _items(self, mapping: Mapping[Any, Any]) -> str:
        named = ((key, key if isinstance(key, str) else "", part) for key, part in mapping.items())
        return ",".join(sorted(f"{self.text(key)}:{self.text(part, name)}" for key, name, part in named))

    def _cannot_see(self, value: Any, why: str = "") -> str:
        kind = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
        path = " → ".join(name for name, _ in self._open if name)
        self.unseen.append(f"{why}{path or 'the object'} ({kind})")
        return kind


def _name(named: Any) -> str:
    """A name, with its library's version; the user's own modules may be run or imported, and do not count."""
    name = getattr(named, "__qualname__", getattr(named, "__name__", ""))
    library = _library_of(named)
    return name if library is None else f"{_module_of(named).partition('.')[0]}.{name} {library}"


def _module_of(named: Any) -> str:
    if isinstance(named, np.ufunc):
        return "scipy.special" if hasattr(sys.modules.get("scipy.special"), named.__name__) else "numpy"
    return named.__name__ if isinstance(named, ModuleType) else getattr(named, "__module__", None) or ""


def _library_of(named: Any) -> str | None:
    """The version of the library that a function, class or module belongs to; None for the user's own."""
    name = _module_of(named)
    module, top = sys.modules.get(name), sys.modules.get(name.partition(".")[0])
    if module is None or name in ("__main__", "__mp_main__"):
        return None
    file = getattr(module, "__file__", None)
    if file is not None and any(part in file for part in _INSTALLED):
        return str(getattr(top, "__version__", ""))
    is_built_in = file is None and module.__spec__ is not None
    return _PYTHON if is_built_in or str(file).startswith(_STANDARD) else None


def _is_importable(value: Any) -> bool:
    names = [] if isinstance(value, ModuleType) else getattr(value, "__qualname__", value.__name__).split(".")
    found: Any = sys.modules.get(_module_of(value))
    return reduce(lambda place, name: getattr(place, name, None), names, found) is value


def _source(value: Any) -> str:
    """The source of a function or class without its comments; "" if there is none."""
    try:
        lines, at = inspect.findsource(value)
    except (OSError, TypeError, IndexError):
        return ""
    first = value.__code__.co_firstlineno if isinstance(value, FunctionType) else at + 1
    return _definitions("".join(lines)).get(first, "")


@lru_cache(maxsize=8)
def _definitions(text: str) -> dict[int, str]:
    """The sources of all functions and classes, by their first lines; those of one line together."""
    found: dict[int, str] = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", []))])
            found[first] = found.get(first, "") + ast.unparse(node)
    return found


def _columns(table: Any) -> Iterator[Any]:
    if hasattr(table, "tocsr"):
        sparse = table.tocsr()
        yield from (sparse.data, sparse.indices, sparse.indptr)
    elif hasattr(table, "columns"):
        yield from (table[name] for name in table.columns)
    else:
        yield table
