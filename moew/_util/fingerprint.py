"""Fingerprints of data and settings, by which a stored study is recognised."""

from __future__ import annotations

import copyreg
import dis
import hashlib
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass
from functools import cached_property, partial
from importlib.util import find_spec
from logging import Logger
from pathlib import Path
from threading import Lock, RLock, local
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

_PLAIN = (bool, int, float, complex, str, bytes, type(None), np.generic)
_PLAIN_TYPES = frozenset({bool, int, float, complex, str, bytes, type(None)})
_DEPTH = 40  # how deep settings may be nested, and functions may call each other
_MOST = 100_000  # objects that are looked at; plain numbers and strings do not count
_LONG = 400  # characters from which on a text is replaced by its hash
_STANDARD = tuple(f"{sysconfig.get_paths()[name]}/" for name in ("stdlib", "platstdlib"))
_INSTALLED = ("/site-packages/", "/dist-packages/", "<frozen ")
_MOEW = f"{Path(__file__).parents[1]}/"
_WITHOUT_VALUE = (Logger, local, type(Lock()), type(RLock()))
_NOT_ATTRIBUTES = frozenset({"_abc_impl", "__annotate__", "__annotate_func__"})
_MISSING = object()
_WRITES = ("STORE_GLOBAL", "DELETE_GLOBAL", "STORE_DEREF", "DELETE_DEREF")
_LOADS = ("LOAD_GLOBAL", "LOAD_DEREF")
_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
_FILLING = frozenset(
    {"append", "extend", "add", "update", "setdefault"}
)  # methods that write into containers


def fingerprint(settings: Mapping[str, Any], arrays: Sequence[Any], tables: Sequence[Any]) -> str:
    """A hash (16 hex digits) of settings, see `described`, of arrays and of tables of any kind."""
    digest = hashlib.sha256(described(settings).encode())
    for array in (*arrays, *(column for table in tables for column in _columns(table))):
        digest.update(_Describer().array(np.asarray(array)).encode())
    return digest.hexdigest()[:16]


def described(value: Any) -> str:
    """A text for a setting: the same in every process for the same setting, most likely different for others.

    A function counts by its name and code, with its defaults, its closure, its attributes, and the globals
    that it reads, also in the functions it calls. One of an installed library counts by its name and the
    library's version. Estimators count by their class and parameters, and by what they have learned where a
    function uses them; dataclasses by the fields they are compared by; other objects by their class and
    attributes. What a function itself writes (a counter, a cache) does not count.
    """
    return _Describer().text(value)


def unseen(value: Any) -> list[str]:
    """What `described` cannot look into, such as open files and generators, in words.

    An object with a text `__version__` answers for all that is in it.
    """
    describer = _Describer()
    describer.text(value)
    return list(dict.fromkeys(describer.unseen))


class _Describer:
    """Describes one value; what was met on the way is remembered."""

    def __init__(self) -> None:
        self.unseen: list[str] = []
        self._where: list[str] = []  # names on the way to what is being described
        self._open: list[int] = []  # ids of the objects that are being described
        self._texts: dict[int, str] = {}  # id → text of what was described
        self._kept: list[Any] = []  # keeps these objects alive, so that ids are theirs
        self._in_code = 0  # above 0 within functions and objects, where fitted estimators are used

    def text(self, value: Any) -> str:
        if isinstance(value, _PLAIN):
            return repr(value)
        if id(value) in self._open:
            return f"circle {len(self._open) - self._open.index(id(value))}"
        if id(value) in self._texts:
            return self._texts[id(value)]
        if len(self._open) > _DEPTH or len(self._texts) > _MOST:
            self._cannot_see(value, "nested too deep or in too many parts: ")
            return _name(type(value))
        self._open.append(id(value))
        before = len(self.unseen)
        text = self._composed(value)
        version = _own_version(value)
        if version is not None:
            del self.unseen[before:]
            text = f"{text}version {version!r}"
        self._open.pop()
        if len(text) > _LONG:
            text = f"{text[:80]}…{_hash(text)}"
        self._kept.append(value)
        self._texts[id(value)] = text
        return text

    def array(self, values: np.ndarray[Any, Any]) -> str:
        if values.dtype.kind in "biufc":
            content = np.ascontiguousarray(values).tobytes()
        else:
            items = values.ravel().tolist()
            plain = set(map(type, items)) <= _PLAIN_TYPES
            content = "\x1f".join(map(str, items) if plain else map(self.text, items)).encode()
        kind = "text" if values.dtype.kind in "OUST" else values.dtype.newbyteorder("=").str
        return f"{values.shape}{kind}{hashlib.sha256(content).hexdigest()}"

    def _composed(self, value: Any) -> str:
        name = _name(type(value))
        if isinstance(value, np.ndarray):
            return self.array(value)
        if isinstance(value, Mapping):
            return f"{name}{{{self._items(value)}}}"
        if isinstance(value, set | frozenset):
            ordered = sorted(value, key=lambda item: (_name(type(item)), _shallow(item)))
            return f"{name}{{{','.join(sorted(map(self.text, ordered)))}}}"
        if isinstance(value, list | tuple):
            if {type(item) for item in value} <= _PLAIN_TYPES:
                return f"{name}{list(value)!r}"
            return f"{name}({self._all(*value)})"
        if isinstance(value, type):
            return self._class(value)
        if isinstance(value, ModuleType):
            return _module(value)
        if isinstance(value, FunctionType):
            return self._function(value)
        if isinstance(value, MethodType):
            return f"method({self._all(value.__func__, value.__self__)})"
        if isinstance(value, partial):
            return f"partial({self._all(value.func, value.args, value.keywords)})"
        if isinstance(value, _WITHOUT_VALUE):
            return name
        if callable(value) and (isinstance(value, np.ufunc) or hasattr(value, "__qualname__")):
            return self._not_in_python(value)
        return self._object(value)

    def _object(self, value: Any) -> str:
        cls = self._class(type(value))
        if hasattr(value, "get_params"):
            return f"{cls}({self._estimator(value)})"
        if is_dataclass(value):
            counted = [field.name for field in fields(value) if field.compare]
            with self._inside_code():
                return f"{cls}({self._items({name: getattr(value, name) for name in counted})})"
        if hasattr(value, "__array__") or hasattr(value, "tocsr"):
            with suppress(Exception):
                return f"{cls}({self._table(value)})"
        if isinstance(value, property | classmethod | staticmethod | cached_property):
            parts = [getattr(value, part, None) for part in ("fget", "fset", "__func__", "func")]
            return f"{cls}({self._all(*parts)})"
        try:
            registered = copyreg.dispatch_table.get(type(value))  # what pickle and copy look at
            reduced = value.__reduce_ex__(4) if registered is None else registered(value)
        except Exception:
            self._cannot_see(value)
            return cls
        if isinstance(reduced, str):
            return f"{cls}({reduced})"
        make, arguments, state, items, pairs = (*reduced, None, None, None)[:5]
        if state is None or isinstance(state, Mapping):
            written = _written_attributes(type(value).__call__) if callable(value) else frozenset()
            state = {key: part for key, part in (state or {}).items() if key not in written}
        with self._inside_code():
            rest = [None if part is None else list(part) for part in (items, pairs)]
            return f"{cls}({self._all(make, arguments)},{self._state(state)},{self._all(*rest)})"

    def _state(self, state: Any) -> str:
        return f"{{{self._items(state)}}}" if isinstance(state, Mapping) else self.text(state)

    def _estimator(self, value: Any) -> str:
        if type(value).__name__ == "FrozenEstimator":
            with self._inside_code():
                return self._items(value.get_params(deep=False))
        settings = self._items(value.get_params(deep=False))
        if not self._in_code:
            return settings
        learned = {key: part for key, part in vars(value).items() if key.endswith("_")}
        return f"{settings};{self._items(learned)}"

    def _table(self, value: Any) -> str:
        if hasattr(value, "detach"):  # a tensor of PyTorch's
            value = value.detach()
        names = [np.asarray(getattr(value, part)) for part in ("columns", "index") if hasattr(value, part)]
        return ",".join(self.array(np.asarray(column)) for column in (*names, *_columns(value)))

    def _class(self, cls: type) -> str:
        """A class by its name; one that is no library's also by its functions and attributes."""
        if _library_of(cls.__module__) is not None:
            return _name(cls)
        known = self._texts.get(id(cls))
        if known is not None:
            return known
        self._texts[id(cls)] = f"class {cls.__qualname__}"  # for functions that name their class
        self._kept.append(cls)
        members: dict[str, Any] = {}
        for base in reversed(cls.__mro__):
            if _library_of(base.__module__) is None:
                members.update(vars(base))
        functions = [member for member in members.values() if isinstance(member, FunctionType)]
        counted = {
            name for function in functions for name in _written_attributes(function, counters_only=True)
        }
        described_ones = {
            name: member
            for name, member in members.items()
            if name not in _NOT_ATTRIBUTES and (isinstance(member, FunctionType) or not _is_special(name))
            # A counter of a class, as of its objects, is no setting.
            if name not in counted
        }
        bases = [_name(base) for base in cls.__mro__ if _library_of(base.__module__) is not None]
        with self._inside_code():
            text = f"{_name(cls)}:{_hash(f'{bases}{self._items(described_ones)}')}"
        self._texts[id(cls)] = text
        return text

    def _function(self, function: FunctionType) -> str:
        library = _library_of_file(function.__code__.co_filename, function.__module__)
        written = _written(function)
        enclosed = [*_enclosed(function, written), function.__defaults__, function.__kwdefaults__]
        if library is not None:
            named = f"{function.__module__}.{function.__qualname__} {library}"
            if _is_importable(function) or not function.__closure__:
                return named
            with self._inside_code():
                return f"{named}({self._all(*enclosed)})"
        with self._inside_code(function.__qualname__):
            passing = {"__version__", *_written_attributes(function)}
            own = {name: part for name, part in vars(function).items() if name not in passing}
            parts = [
                self._code(function.__code__, function.__doc__),
                self._all(*enclosed),
                self._items(own),
                self._globals(function, written),
            ]
        return f"{function.__qualname__}:{_hash(chr(31).join(parts))}"

    def _globals(self, function: FunctionType, written: frozenset[str]) -> str:
        """The globals that a function reads, without those it writes itself."""
        there, found = function.__globals__, []
        for kind, chain in sorted(set(_reads(function.__code__))):
            if kind == "import":
                found.append(f"{chain[0]}={_imported(chain[0], there.get('__package__'))}")
                continue
            name, *attributes = chain
            value = there.get(name, _MISSING)
            if value is _MISSING or name in written:
                continue
            while isinstance(value, ModuleType) and attributes and _library_of(value.__name__) is None:
                name = f"{name}.{attributes[0]}"
                value = getattr(value, attributes.pop(0), _MISSING)
            if value is not _MISSING:
                with self._at(name):
                    found.append(f"{name}={self.text(value)}")
        return ",".join(found)

    def _code(self, code: CodeType, doc: str | None = None) -> str:
        """The code as text, without line numbers, file name and docstring."""
        constants = [
            self._code(constant) if isinstance(constant, CodeType) else self.text(constant)
            for constant in code.co_consts
            if doc is None or constant != doc
        ]
        return f"{code.co_code.hex()}{constants}{code.co_names}{code.co_freevars}"

    def _not_in_python(self, value: Any) -> str:
        """A function that is not written in Python, or that wraps one which is."""
        owner = getattr(value, "__self__", None)
        if isinstance(value, BuiltinFunctionType) and not isinstance(owner, ModuleType | None):
            return f"method({value.__name__},{self.text(owner)})"
        library = _library_of(getattr(value, "__module__", None) or type(value).__module__)
        name = getattr(value, "__qualname__", getattr(value, "__name__", ""))
        if library is not None and (not isinstance(value, np.ufunc) or _is_known_ufunc(value)):
            return f"{getattr(value, '__module__', '')}.{name} {library}"
        inner = getattr(value, "__wrapped__", None)
        if inner is not None:
            return f"{_name(type(value))}({self.text(inner)})"
        self._cannot_see(value)
        return f"{_name(type(value))} {name}"

    def _all(self, *parts: Any) -> str:
        return ",".join(map(self.text, parts))

    def _items(self, mapping: Mapping[Any, Any]) -> str:
        found = []
        for key in sorted(mapping, key=lambda key: (_name(type(key)), _shallow(key))):
            with self._at(key if isinstance(key, str) else ""):
                found.append(f"{self.text(key)}:{self.text(mapping[key])}")
        return ",".join(found)

    def _cannot_see(self, value: Any, why: str = "") -> None:
        kind = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
        path = " → ".join(part for part in self._where if part)
        self.unseen.append(f"{why}{path or 'the object'} ({kind})")

    @contextmanager
    def _at(self, name: str) -> Iterator[None]:
        self._where.append(name)
        yield
        self._where.pop()

    @contextmanager
    def _inside_code(self, name: str = "") -> Iterator[None]:
        self._in_code += 1
        with self._at(name):
            yield
        self._in_code -= 1


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _shallow(value: Any) -> str:
    """A text to sort by, which is the same in every process."""
    return repr(value) if isinstance(value, _PLAIN) else str(getattr(value, "__qualname__", ""))


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _name(named: Any) -> str:
    module = getattr(named, "__module__", None) or ""
    library = _library_of(module)
    if library is not None and module != "builtins":
        return f"{module.partition('.')[0]}.{named.__qualname__} {library}"
    # A user's own script may be run as __main__ or imported, so a top-level module does not count.
    return f"{module.partition('.')[0]}.{named.__qualname__}" if "." in module else str(named.__qualname__)


def _library_of(module_name: str | None) -> str | None:
    """The version of the installed library that a module belongs to; None for the user's own modules."""
    if not module_name or module_name in ("__main__", "__mp_main__"):
        return None
    module = sys.modules.get(module_name) or sys.modules.get(module_name.partition(".")[0])
    if module is None:
        return None
    file = getattr(module, "__file__", None)
    if file is None:  # compiled into Python, or a folder without __init__.py
        spec = getattr(module, "__spec__", None)
        return _python() if spec is None or spec.origin is not None else None
    return _library_of_file(file, module_name)


def _library_of_file(file: str, module_name: str | None) -> str | None:
    is_installed = any(part in file for part in _INSTALLED)
    if file.startswith(_STANDARD) and not is_installed:
        return _python()
    if not is_installed and not file.startswith(_MOEW):
        return None
    top = sys.modules.get((module_name or "").partition(".")[0])
    return str(getattr(top, "__version__", ""))


def _python() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def _own_version(value: Any) -> str | None:
    """The `__version__` of a user's function, class or object."""
    if isinstance(value, ModuleType) or _library_of(getattr(value, "__module__", None)) is not None:
        return None
    found = getattr(value, "__version__", None)
    return found if isinstance(found, str) else None


def _module(module: ModuleType) -> str:
    """A library by its version, a module of the user's by its file."""
    library = _library_of(module.__name__)
    if library is not None:
        return f"module {module.__name__.partition('.')[0]} {library}"
    return f"module {_file_hash(getattr(module, '__file__', None))}"


def _imported(name: str, package: str | None) -> str:
    """A module that a function imports when it is called, without importing it."""
    with suppress(ImportError, ValueError, AttributeError):
        spec = find_spec(name if not name.startswith(".") or package else name.lstrip("."), package)
        if spec is not None and spec.origin is not None:
            is_library = any(part in spec.origin for part in _INSTALLED) or spec.origin.startswith(
                (*_STANDARD, _MOEW, "built-in", "frozen")
            )
            return "library" if is_library else _file_hash(spec.origin)
    return ""


def _file_hash(file: str | None) -> str:
    with suppress(OSError, TypeError):
        return hashlib.sha256(Path(str(file)).read_bytes()).hexdigest()
    return ""


def _is_importable(function: Any) -> bool:
    found: Any = sys.modules.get(function.__module__)
    for part in function.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is function


def _is_known_ufunc(ufunc: np.ufunc) -> bool:
    """Whether a ufunc is NumPy's or SciPy's, and not made of a Python function by `numpy.frompyfunc`."""
    homes = (np, sys.modules.get("scipy.special"))
    return any(getattr(home, ufunc.__name__, None) is ufunc for home in homes)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code and that of the functions, classes and comprehensions in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _reads(code: CodeType) -> Iterator[tuple[str, tuple[str, ...]]]:
    """("global", the name and the attributes that follow it) and ("import", name) for what code reads."""
    for part in _codes(code):
        chain: tuple[str, ...] = ()
        for step in dis.get_instructions(part):
            if chain and step.opname in _ATTRIBUTES:
                chain = (*chain, step.argval)
                continue
            if chain:
                yield "global", chain
            chain = (step.argval,) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME") else ()
            if step.opname == "IMPORT_NAME":
                yield "import", (step.argval,)


def _written(function: Any) -> frozenset[str]:
    """The names of globals and enclosed variables that a function writes, or writes items of."""
    if not isinstance(function, FunctionType):
        return frozenset()
    names: set[str] = set()
    for code in _codes(function.__code__):
        steps = list(dis.get_instructions(code))
        kinds = [step.opname for step in steps]
        for i, step in enumerate(steps):
            container = None
            if step.opname in _WRITES:
                names.add(step.argval)
            elif step.opname == "STORE_SUBSCR" or kinds[i : i + 2] == ["COPY", "COPY"]:  # name[key] =, +=
                container = _before_value(steps, i)
            elif step.opname in _ATTRIBUTES and step.argval in _FILLING and i:  # name.append(…)
                container = steps[i - 1]
            if container is not None and container.opname in _LOADS:
                names.add(container.argval)
    return frozenset(names)


def _before_value(steps: Sequence[dis.Instruction], end: int) -> dis.Instruction | None:
    """The last step before those that put the topmost value on the stack, ahead of step `end`."""
    height = 0
    for i in range(end - 1, 0, -1):
        height += dis.stack_effect(steps[i].opcode, steps[i].arg, jump=False)
        if height == 1:
            return steps[i - 1]
    return None


def _written_attributes(function: Any, *, counters_only: bool = False) -> frozenset[str]:
    """The names of attributes that a function writes; with `counters_only` those it changes by `+=`."""
    names: set[str] = set()
    for code in _codes(function.__code__) if isinstance(function, FunctionType) else ():
        before = ""
        for step in dis.get_instructions(code):
            if step.opname == "STORE_ATTR" and (before == "SWAP" or not counters_only):
                names.add(step.argval)
            before = step.opname
    return frozenset(names)


def _enclosed(function: FunctionType, without: frozenset[str]) -> Iterator[Any]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield None if name in without else cell.cell_contents
        except ValueError:  # not yet filled
            yield None


def _columns(table: Any) -> Iterator[Any]:
    if hasattr(table, "tocsr"):
        sparse = table.tocsr()
        yield from (sparse.data, sparse.indices, sparse.indptr)
    elif hasattr(table, "columns"):
        yield from (table[name] for name in table.columns)
    else:
        yield table
