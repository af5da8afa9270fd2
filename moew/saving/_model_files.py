"""A fitted model as files of a saved search: JSON or skops, read as data, else a pickle, which is code.

An ensemble is a JSON file of its votes, and a file for each of its models, whose names follow from its own.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from moew._util.state import State, Stateful, load_state
from moew.exceptions import Argument, InvalidInputError, StateError
from moew.models import ModelEnsemble, member_name, member_names
from moew.saving._files import check_unpacked_size, damaged, reading
from moew.saving._trees import check_trees

JSON, SKOPS, PICKLE = _ENDINGS = (".json", ".skops", ".pickle")

# Types beyond skops' own list whose content is data that their libraries read; none of them runs what a
# file says. Anything else is the user's code, and is loaded only when trusted.
_READ_AS_DATA = (
    "collections.OrderedDict",
    "lightgbm.basic.Booster",
    "lightgbm.sklearn.LGBMClassifier",
    "lightgbm.sklearn.LGBMRegressor",
    "moew.cli._coded_labels.CodedLabels",
    "numpy.dtype",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.tree._tree.Tree",
    "xgboost.core.Booster",
    "xgboost.sklearn.XGBClassifier",
    "xgboost.sklearn.XGBRegressor",
)


def pack_model(model: Any, X: Any, name: str) -> dict[str, bytes]:
    """The model as files, as safely as it can be; their names begin with `name`.

    What is packed is read again and asked for the rows of X, if there are any: a format that gives other
    answers, be it in the last bit, is not used.
    """
    files: dict[str, bytes] = {}
    if isinstance(model, ModelEnsemble):
        for k, member in enumerate(model.models_):
            files |= pack_model(member, X, _of_member(name, member_name(k)))
    if isinstance(model, Stateful):
        return files | {f"{name}{JSON}": json.dumps(model.state()).encode("utf-8")}
    if (packed := _skops(model, X)) is not None:
        return files | {f"{name}{SKOPS}": packed}
    try:
        return files | {f"{name}{PICKLE}": pickle.dumps(model)}
    except Exception as error:
        raise StateError(f"{type(model).__name__} cannot be saved, not even as a pickle: {error}") from error


def load_model(files: Mapping[str, bytes], place: Path, name: str, trusted: bool = False) -> Any:
    """Load a model from the files of a saved search, which is in `place`; a file that could execute code only
    if `trusted`."""
    as_json, as_skops, as_pickle = (f"{name}{ending}" for ending in _ENDINGS)
    if as_json in files:
        state, members = _read_state(files[as_json], place / as_json)
        # Outside of `reading`, so that an error names the member's own file.
        models = {one: load_model(files, place, _of_member(name, one), trusted) for one in members}
        with reading(place / as_json):
            return load_state(state, models)
    if as_skops in files:
        return _load_skops(files[as_skops], place / as_skops, trusted)
    if as_pickle not in files:
        raise StateError(f"{place} holds none of {as_json}, {as_skops}, {as_pickle}, so a model is missing.")
    if not trusted:
        raise _needs_trust(f"{place / as_pickle} is a pickle: loading it runs whatever code its maker put in")
    with reading(place / as_pickle):
        return pickle.loads(files[as_pickle])


def needs_trust(files: Mapping[str, bytes]) -> bool:
    """Whether one of these files of models is loaded only if trusted."""
    return any(
        name.endswith(PICKLE) or (name.endswith(SKOPS) and bool(_untrusted(content, name)))
        for name, content in files.items()
    )


def _of_member(name: str, member: str) -> str:
    """What the files of an ensemble's member begin with, where those of the ensemble begin with `name`."""
    return f"{name}-{member}"


def _read_state(content: bytes, path: Path) -> tuple[State, list[str]]:
    """A model's state, and the names of its members, if it is an ensemble."""
    with reading(path):
        state = json.loads(content)
        return state, member_names(state)


def _needs_trust(what: str) -> InvalidInputError:
    return InvalidInputError(
        f"{what}. If you made it yourself, or trust who did, add ",
        Argument("trusted", True),
        ".",
        argument="trusted",
    )


def _skops(model: Any, X: Any) -> bytes | None:
    """The model in skops' format, None where that cannot hold it."""
    skops_io = import_skops()
    try:
        content: bytes = skops_io.dumps(model)
        again = skops_io.loads(content, trusted=skops_io.get_untrusted_types(data=content))
        alike = X is None or all(
            np.array_equal(getattr(again, ask)(X), getattr(model, ask)(X))
            for ask in ("predict", "predict_proba", "decision_function")
            if hasattr(model, ask)
        )
    except Exception:  # skops raises many kinds of errors
        return None
    return content if alike else None


def import_skops() -> Any:
    """The module skops.io, or an error that says how to install it."""
    try:
        import skops.io
    except ImportError as error:
        raise InvalidInputError("files of models need skops: pip install 'moew[cli]'.") from error
    return skops.io


def _load_skops(content: bytes, path: Path, trusted: bool) -> Any:
    skops_io = import_skops()
    if not trusted:
        check_unpacked_size(content, path)
    unknown = _untrusted(content, path)
    if unknown and not trusted:
        named = f"{', '.join(unknown[:4])}{' …' if len(unknown) > 4 else ''}"
        raise _needs_trust(f"{path} holds {named}: loading it imports and runs that code")
    try:
        model = skops_io.loads(content, trusted=[*_READ_AS_DATA, *unknown])
        if not trusted:
            check_trees(model)
        return model
    except ModuleNotFoundError as missing:
        raise StateError(
            f"{path} needs the module {missing.name!r}; run from the folder that holds it, or install it."
        ) from missing
    except Exception as error:
        raise damaged(path, error) from error


def _untrusted(content: bytes, path: Path | str) -> list[str]:
    types_in = import_skops().get_untrusted_types
    try:
        return [name for name in types_in(data=content) if name not in _READ_AS_DATA]
    except Exception as error:
        raise damaged(path, error) from error
