"""A fitted model in a file: as JSON or with skops, read as data, else as a pickle, which is code.

An ensemble is a JSON file of its votes, and a file for each of its models, whose names follow from its own.
"""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path
from typing import Any
from zipfile import Path as ZipPath

import numpy as np

from moew._util.state import State, Stateful, load_state
from moew._util.whole_files import write_whole
from moew.exceptions import Argument, InvalidInputError, StateError
from moew.models import ModelEnsemble, member_name, member_names
from moew.saving._files import check_unpacked_size, damaged, reading
from moew.saving._trees import check_trees

MODEL, UNWEIGHTED = "model", "unweighted"  # the winner, and the one without learned weights
JSON, SKOPS, PICKLE = ".json", ".skops", ".pickle"
_ENDINGS = (JSON, SKOPS, PICKLE)
_FILE = re.compile(rf"({MODEL}|{UNWEIGHTED})(-member-\d+)*({'|'.join(map(re.escape, _ENDINGS))})")

Place = Path | ZipPath  # a folder, or what is in a saved search

# Types beyond skops' own list whose content is data that their libraries read; none of them runs what a
# file says. Anything else is the user's code, and is loaded only when trusted.
_READ_AS_DATA = (
    "collections.OrderedDict",
    "lightgbm.basic.Booster",
    "lightgbm.sklearn.LGBMClassifier",
    "lightgbm.sklearn.LGBMRegressor",
    "moew.cli.runs._coded_labels.CodedLabels",
    "numpy.dtype",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.tree._tree.Tree",
    "xgboost.core.Booster",
    "xgboost.sklearn.XGBClassifier",
    "xgboost.sklearn.XGBRegressor",
)


def is_model_file(name: str) -> bool:
    """Whether a file of that name holds a model of a run."""
    return _FILE.fullmatch(name) is not None


def model_files(folder: Path) -> list[str]:
    """The names of the files in a folder that hold its models."""
    return sorted(entry.name for entry in folder.iterdir() if is_model_file(entry.name))


def save_model(model: Any, folder: Path, X: Any, name: str = MODEL) -> str:
    """Save the model as safely as it can be, and give the file's name, which begins with `name`.

    The file is read again and asked for the rows of X, if there are any: a format that gives other answers,
    be it in the last bit, is not used.
    """
    for old in model_files(folder):
        if old.startswith((f"{name}.", f"{name}-")):
            (folder / old).unlink()
    if isinstance(model, ModelEnsemble):
        for k, member in enumerate(model.models_):
            save_model(member, folder, X, _of_member(name, member_name(k)))
    if isinstance(model, Stateful):
        ending, content = JSON, json.dumps(model.state()).encode("utf-8")
    elif (packed := _skops(model, X)) is not None:
        ending, content = SKOPS, packed
    else:
        try:
            ending, content = PICKLE, pickle.dumps(model)
        except Exception as error:
            raise StateError(
                f"{type(model).__name__} cannot be saved, not even as a pickle: {error}"
            ) from error
    write_whole(folder / f"{name}{ending}", lambda new: new.write_bytes(content), private=True)
    return f"{name}{ending}"


def load_model(folder: Place, trust: bool = False, name: str = MODEL) -> Any:
    """Load a model of a run; a file that could execute code only with `trust`."""
    as_json, as_skops, as_pickle = (folder / f"{name}{ending}" for ending in _ENDINGS)
    if as_json.exists():
        state, members = _read_state(as_json)
        # Outside of `reading`, so that an error names the member's own file.
        models = {member: load_model(folder, trust, _of_member(name, member)) for member in members}
        with reading(as_json):
            return load_state(state, models)
    if as_skops.exists():
        return _load_skops(as_skops, trust)
    if not as_pickle.exists():
        raise _missing(folder, name)
    if not trust:
        raise _needs_trust(f"{as_pickle} is a pickle: loading it runs whatever code its maker put in")
    with reading(as_pickle):
        return pickle.loads(as_pickle.read_bytes())


def needs_trust(folder: Path, name: str = MODEL) -> bool:
    """Whether a model of a run, or a member of it, is loaded only with --trust."""
    as_json, as_skops = folder / f"{name}{JSON}", folder / f"{name}{SKOPS}"
    if as_json.exists():
        return any(needs_trust(folder, _of_member(name, member)) for member in _read_state(as_json)[1])
    if not as_skops.exists():
        return True
    content = as_skops.read_bytes()
    check_unpacked_size(content, as_skops)
    return bool(_untrusted(content, as_skops))


def _of_member(name: str, member: str) -> str:
    """What the files of an ensemble's member begin with, where those of the ensemble begin with `name`."""
    return f"{name}-{member}"


def _read_state(path: Place) -> tuple[State, list[str]]:
    """A model's state, and the names of its members, if it is an ensemble."""
    with reading(path):
        state = json.loads(path.read_text(encoding="utf-8"))
        return state, member_names(state)


def _needs_trust(what: str) -> InvalidInputError:
    return InvalidInputError(
        f"{what}. If you made it yourself, or trust who did, add ",
        Argument("trusted", True),
        ".",
        argument="trusted",
    )


def _missing(folder: Place, name: str) -> InvalidInputError:
    if name not in (MODEL, UNWEIGHTED):
        files = ", ".join(f"{name}{ending}" for ending in _ENDINGS)
        return InvalidInputError(
            f"{folder} holds none of {files}, so a member of its ensemble of models is missing."
        )
    what = "model" if name == MODEL else f"{name} model"
    return InvalidInputError(f"{folder} holds no {what}; it is no finished run of `moew fit`.")


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


def _load_skops(path: Place, trust: bool) -> Any:
    skops_io = import_skops()
    with reading(path):  # in a saved search, it is unpacked here
        content = path.read_bytes()
    if not trust:
        check_unpacked_size(content, path)
    unknown = _untrusted(content, path)
    if unknown and not trust:
        named = f"{', '.join(unknown[:4])}{' …' if len(unknown) > 4 else ''}"
        raise _needs_trust(f"{path} holds {named}: loading it imports and runs that code")
    try:
        model = skops_io.loads(content, trusted=[*_READ_AS_DATA, *unknown])
        if not trust:
            check_trees(model)
        return model
    except ModuleNotFoundError as missing:
        raise StateError(
            f"{path} needs the module {missing.name!r}; run from the folder that holds it, or install it."
        ) from missing
    except Exception as error:
        raise damaged(path, error) from error


def _untrusted(content: bytes, path: Place) -> list[str]:
    types_in = import_skops().get_untrusted_types
    try:
        return [name for name in types_in(data=content) if name not in _READ_AS_DATA]
    except Exception as error:
        raise damaged(path, error) from error
