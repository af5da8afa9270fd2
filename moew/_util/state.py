"""Save embeddings, weights and decision rules as JSON, and load them, without pickle.

A state is a JSON-able dict whose "kind" names one of moew's own classes and whose "version" is that of its
format. Loading imports only moew itself: the user's own functions and transformers are named in the state and
passed in by the user.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from contextvars import ContextVar
from importlib import import_module
from types import MethodType
from typing import Any, ClassVar, Self

import numpy as np

from moew.exceptions import MoewError, StateError

State = dict[str, Any]
VERSION = 1  # of the format of states; raise it when their entries change

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
        return {"kind": f"{self.state_home}:{type(self).__name__}", "version": VERSION, **content}

    def _content(self) -> State:
        raise StateError(f"{type(self).__name__} has no state to save.")

    @classmethod
    def from_state(cls, state: State, objects: Mapping[str, Any]) -> Self:
        """The object that `state()` described; `objects` holds the user's own objects by name."""
        raise StateError(f"{cls.__name__} cannot be loaded from a state.")


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
    home, _, name = str(kind).partition(":")
    found = None
    if home == "moew" or home.startswith("moew."):
        try:
            found = getattr(import_module(home), name, None)
        except ImportError as error:
            raise StateError(f"the state's kind {kind!r} is not part of this version of moew.") from error
    if not (isinstance(found, type) and issubclass(found, Stateful)):
        raise StateError(f"the state's kind {kind!r} is not one that moew can load.")
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
        raise StateError(
            f"the state uses {name!r}, which is yours, not moew's, and is never imported by itself: "
            f"pass it as objects={{{name!r}: …}} when loading."
        )
    return objects[name]
