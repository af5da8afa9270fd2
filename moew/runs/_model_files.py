"""A fitted model in a file: as JSON or with skops, read as data, else as a pickle, which is code."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np

from moew.exceptions import InvalidInputError, StateError
from moew.runs._damage import reading
from moew.runs._trees import check_trees
from moew.state import Stateful, load_state

JSON, SKOPS, PICKLE = "model.json", "model.skops", "model.pickle"
FILES = (JSON, SKOPS, PICKLE)

# Types beyond skops' own list whose content is data that their libraries read; none of them runs what a
# file says. Anything else is the user's code, and is loaded only when trusted.
_READ_AS_DATA = (
    "collections.OrderedDict",
    "lightgbm.basic.Booster",
    "lightgbm.sklearn.LGBMClassifier",
    "lightgbm.sklearn.LGBMRegressor",
    "moew.runs._coded_labels.CodedLabels",
    "numpy.dtype",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.tree._tree.Tree",
    "xgboost.core.Booster",
    "xgboost.sklearn.XGBClassifier",
    "xgboost.sklearn.XGBRegressor",
)


def save_model(model: Any, folder: Path, X: Any) -> str:
    """Save the model as safely as it can be, and give the file's name.

    The file is read again and asked for the rows of X: a format that gives other answers is not used.
    """
    for name in FILES:
        (folder / name).unlink(missing_ok=True)
    if isinstance(model, Stateful):
        (folder / JSON).write_text(json.dumps(model.state()), encoding="utf-8")
        return JSON
    content = _skops(model, X)
    if content is not None:
        (folder / SKOPS).write_bytes(content)
        return SKOPS
    try:
        (folder / PICKLE).write_bytes(pickle.dumps(model))
    except Exception as error:
        raise StateError(f"{type(model).__name__} cannot be saved, not even as a pickle: {error}") from error
    return PICKLE


def load_model(folder: Path, trust: bool = False) -> Any:
    """The model of a run; what could execute code only where `trust` says so."""
    if (folder / JSON).exists():
        with reading(folder / JSON):
            return load_state(json.loads((folder / JSON).read_text(encoding="utf-8")))
    if (folder / SKOPS).exists():
        return _load_skops(folder / SKOPS, trust)
    if not (folder / PICKLE).exists():
        raise InvalidInputError(f"{folder} holds no model; it is no finished run of `moew fit`.")
    if not trust:
        raise InvalidInputError(
            f"{folder / PICKLE} is a pickle: loading it runs whatever code its maker put in. If you made "
            "this run yourself, or trust who did, add --trust."
        )
    return pickle.loads((folder / PICKLE).read_bytes())


def needs_trust(folder: Path) -> bool:
    """Whether the model of a run is loaded only with --trust."""
    if (folder / SKOPS).exists():
        return bool(_untrusted((folder / SKOPS).read_bytes()))
    return not (folder / JSON).exists()


def _skops(model: Any, X: Any) -> bytes | None:
    """The model in skops' format, None where that cannot hold it."""
    import skops.io

    try:
        content: bytes = skops.io.dumps(model)
        again = skops.io.loads(content, trusted=skops.io.get_untrusted_types(data=content))
        alike = np.array_equal(np.asarray(again.predict(X)), np.asarray(model.predict(X)))
    except Exception:  # skops says in many ways what it cannot hold
        return None
    return content if alike else None


def _load_skops(path: Path, trust: bool) -> Any:
    import skops.io

    content = path.read_bytes()
    unknown = _untrusted(content)
    if unknown and not trust:
        raise InvalidInputError(
            f"{path} holds {', '.join(unknown[:4])}{' …' if len(unknown) > 4 else ''}: loading it imports "
            "and runs that code. If you made this run yourself, or trust who did, add --trust."
        )
    try:
        model = skops.io.loads(content, trusted=[*_READ_AS_DATA, *unknown])
        if not trust:
            check_trees(model)
        return model
    except ModuleNotFoundError as missing:
        raise StateError(
            f"{path} needs the module {missing.name!r}; run from the folder that holds it, or install it."
        ) from missing
    except Exception as error:
        raise StateError(f"{path} is damaged or of another version: {error}") from error


def _untrusted(content: bytes) -> list[str]:
    import skops.io

    try:
        return [name for name in skops.io.get_untrusted_types(data=content) if name not in _READ_AS_DATA]
    except Exception as error:
        raise StateError(f"the model's file is damaged: {error}") from error
