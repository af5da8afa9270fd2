"""Save embeddings, weights and decision rules as JSON, and load them, without pickle; values as JSON.

A state is a JSON-able dict whose "kind" names one of moew's own classes and whose "version" is that of its
format. Kinds are looked up in a list, which classes join with `has_state`; nothing is imported by a name from
a state. The user's own functions and transformers are named in the state and passed in by the user.
"""

from __future__ import annotations

import base64
import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from importlib import import_module
from types import MethodType
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from moew.exceptions import MissingObjectError, MoewError, StateError

State = dict[str, Any]
Loads = Mapping[str, Callable[[Any], Any]]  # attributes, and what makes each of what a state holds
StatefulClass = TypeVar("StatefulClass", bound="type[Stateful]")
VERSION = 1  # of the format of states; raise it when their entries change

_CLASSES: dict[str, type[Stateful]] = {}  # those that `load_state` may make, by kind
# Modules whose classes join the list when they are imported; first those that load quickly.
_MODULES = {
    "moew.decision": ("moew.decision",),
    "moew.embedding": ("moew.embedding",),
    "moew.models": ("moew.models._ensemble", "moew.models._calibration", "moew.models.networks"),
    "moew.weighting": ("moew.weighting",),
}

# The user's objects by name in the state that is being written, including those of nested parts.
_named: ContextVar[dict[str, Any] | None] = ContextVar("_named", default=None)


class Stateful:
    """Mixin for objects whose fitted content can be saved as a JSON-able dict."""

    state_home: ClassVar[str]  # public module of the class, e.g. "moew.embedding"

    def state(self) -> State:
        """The fitted object as a JSON-able dict, for `load_state`."""
        token = _named.set({}) if _named.get() is None else None  # nested parts share the outer dict
        try:
            content = self._content()
        finally:
            if token is not None:
                _named.reset(token)
        return {"kind": _kind_of(type(self)), "version": VERSION, **content}

    def _content(self) -> State:
        raise StateError(f"{type(self).__name__} has no state to save.")

    @classmethod
    def from_state(cls, state: State, objects: Mapping[str, Any]) -> Self:
        """The object that `state()` described; `objects` holds the user's own objects by name."""
        raise StateError(f"{cls.__name__} cannot be loaded from a state.")


def has_state(cls: StatefulClass) -> StatefulClass:
    """Class decorator: `load_state` can load states of this class."""
    _CLASSES[_kind_of(cls)] = cls
    return cls


def _kind_of(cls: type[Stateful]) -> str:
    return f"{cls.state_home}:{cls.__name__}"


def _class_of(kind: Any) -> type[Stateful]:
    """The class of that kind in the list; modules that are imported for it are named here alone."""
    home = kind.partition(":")[0] if isinstance(kind, str) else ""
    for module in _MODULES.get(home, ()):
        if kind not in _CLASSES:
            import_module(module)
    if not isinstance(kind, str) or kind not in _CLASSES:
        raise StateError(f"the state's kind {kind!r} is not one that this version of moew can load.")
    return _CLASSES[kind]


def load_state(state: State, objects: Mapping[str, Any] | None = None) -> Any:
    """Load the object that `state()` described; `objects` maps names in it to the user's own objects.

    Examples
    --------
    >>> import json
    >>> from moew.decision import ShareSelected
    >>> text = json.dumps(ShareSelected(0.05).state())
    >>> load_state(json.loads(text))
    ShareSelected(share=0.05, on='validation', threshold_=None)
    """
    if not isinstance(state, Mapping):
        raise StateError(f"a state is a dict that state() gave, got {type(state).__name__}.")
    kind = state.get("kind", "")
    found = _class_of(kind)
    _check_version(state, kind)
    content = {name: value for name, value in state.items() if name != "version"}
    try:
        return found.from_state(content, {} if objects is None else objects)
    except MoewError:
        raise
    except KeyError as error:
        raise StateError(f"the state of kind {kind!r} has no entry {error}; it is not complete.") from error
    except Exception as error:  # a state comes from outside and may be damaged in any way
        raise StateError(f"the state of kind {kind!r} is damaged: {error}.") from error


def _check_version(state: Mapping[str, Any], kind: Any) -> None:
    version = state.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise StateError(f"the state of kind {kind!r} has no version that moew wrote, got {version!r}.")
    if version > VERSION:
        raise StateError(
            f"the state of kind {kind!r} has version {version}, this moew reads up to {VERSION}: "
            "it was saved by a newer moew; update to load it."
        )


def pack_array(array: np.ndarray[Any, Any]) -> State:
    """An array of numbers or booleans as a JSON-able dict, exact to the bit."""
    array = np.asarray(array)
    if array.dtype.kind not in "biuf":
        raise StateError(f"cannot save an array of dtype {array.dtype}; only numbers and booleans.")
    little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    return {
        "dtype": little.dtype.str,
        "shape": list(array.shape),
        "data": base64.b64encode(little.tobytes()).decode("ascii"),
    }


def unpack_array(packed: State) -> np.ndarray[Any, Any]:
    """The array that `pack_array` packed."""
    flat = np.frombuffer(base64.b64decode(packed["data"]), dtype=np.dtype(packed["dtype"]))
    return flat.reshape(packed["shape"]).astype(flat.dtype.newbyteorder("="))


def packed(value: Any) -> Any:
    """A value as it stands in a state: arrays packed, parts by their own states, lists item by item."""
    if hasattr(value, "state"):
        return value.state()
    if isinstance(value, np.ndarray):
        return pack_array(value)
    return [packed(item) for item in value] if isinstance(value, list | tuple) else value


def plain_setting(value: Any) -> Any:
    """A setting as a JSON-able value; None for others, such as a random generator."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple | np.ndarray):
        return [plain_setting(item) for item in value]
    return value if isinstance(value, bool | int | float | str) else None


def pack_attributes(thing: Any, loads: Loads) -> State:
    """The attributes that `loads` names, without the "_" at the end of what `fit` learned."""
    return {name.removesuffix("_"): packed(getattr(thing, name)) for name in loads}


def unpack_attributes(thing: Any, state: State, loads: Loads) -> None:
    """Set the attributes that `pack_attributes` packed."""
    for name, load in loads.items():
        setattr(thing, name, load(state[name.removesuffix("_")]))


def or_none(load: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Loads what `load` does, or None."""
    return lambda found: None if found is None else load(found)


def each(load: Callable[[Any], Any]) -> Callable[[Any], list[Any]]:
    """Loads a list of what `load` does."""
    return lambda found: [load(item) for item in found]


def pack_compact(array: np.ndarray[Any, Any]) -> tuple[State, bytes]:
    """An array in few bytes, exact to the bit: a JSON-able head, and a body.

    Numbers that float32 holds exactly are stored as such. Of anything else the head holds the different
    values, and the body which of them each item is.
    """
    head: State = {"dtype": array.dtype.newbyteorder("<").str, "shape": list(array.shape)}
    flat = array.reshape(-1)
    if array.dtype.kind == "f":
        flat = flat.astype("<f4") if array.dtype.itemsize == 8 and _fits_float32(flat) else flat
    elif array.dtype.kind in "biuUO":
        try:
            different, codes = np.unique(flat, return_inverse=True)
        except TypeError:  # of labels that cannot be compared
            different, codes = flat, np.arange(len(flat))
        head["values"], flat = different.tolist(), codes.astype(np.min_scalar_type(len(different)))
    else:
        raise StateError(f"cannot save an array of dtype {array.dtype}; only numbers, booleans and texts.")
    little = np.ascontiguousarray(flat, dtype=flat.dtype.newbyteorder("<"))
    # First bytes, second bytes, and so on, are each alike, and are compressed by themselves.
    bytes_of = little.view(np.uint8).reshape(-1, little.itemsize)
    planes = [zlib.compress(plane.tobytes()) for plane in bytes_of.T]
    return {**head, "as": little.dtype.str, "planes": [len(plane) for plane in planes]}, b"".join(planes)


def unpack_compact(head: State, body: bytes) -> np.ndarray[Any, Any]:
    """The array that `pack_compact` packed."""
    dtype, kept = np.dtype(head["dtype"]).newbyteorder("="), np.dtype(head["as"])
    ends = np.cumsum(head["planes"]).tolist()
    planes = [zlib.decompress(body[end - n : end]) for n, end in zip(head["planes"], ends, strict=True)]
    bytes_of = np.frombuffer(b"".join(planes), dtype=np.uint8).reshape(kept.itemsize, -1)
    flat = np.ascontiguousarray(bytes_of.T).reshape(-1).view(kept)
    if "values" in head:
        values = np.empty(len(head["values"]), dtype=dtype)
        values[:] = head["values"]
        flat = values[flat]
    return flat.astype(dtype).reshape(head["shape"])


def _fits_float32(numbers: np.ndarray[Any, Any]) -> bool:
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.array_equal(numbers.astype(np.float32).astype(np.float64), numbers, equal_nan=True))


def name_object(thing: Any) -> str:
    """The name of a user's own function or object in a state.

    Two different objects of the same name in one state raise an error, since loading could not tell them
    apart.
    """
    owner = thing if hasattr(thing, "__qualname__") else type(thing)
    name = f"{owner.__module__}:{owner.__qualname__}"
    named = _named.get()
    if named is not None:
        first = named.setdefault(name, thing)
        # A bound method is a new object each time it is looked up.
        if first is not thing and not (isinstance(thing, MethodType) and first == thing):
            raise StateError(
                f"the state would hold two different objects that are both called {name!r}; give them names "
                "of their own, such as functions made by def instead of lambda, or two classes."
            )
    return name


def find_object(name: str, objects: Mapping[str, Any]) -> Any:
    """The user's own object called `name`; if it was not passed, an error says how to pass it."""
    if name not in objects:
        raise MissingObjectError(name)
    return objects[name]


def plain(value: Any, text: Callable[[str], str] = str) -> Any:
    """The value as dicts, lists, whole numbers and finite floats; None for numbers that are not finite.

    Everything else becomes a string, which `text` may change. Keys are not passed to `text`.
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item, text) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [plain(item, text) for item in value]
    if isinstance(value, np.generic) and value.dtype.kind not in "mM":  # dates would become numbers
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int) else text(str(value))
