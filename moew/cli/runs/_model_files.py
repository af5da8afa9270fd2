"""A fitted model in a file: as JSON or with skops, read as data, else as a pickle, which is code."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np

from moew._util.state import Stateful, load_state
from moew.cli.runs._damage import reading
from moew.cli.runs._trees import check_trees
from moew.exceptions import InvalidInputError, StateError

MODEL, UNWEIGHTED = "model", "unweighted"  # the winner, and the one without learned weights
JSON, SKOPS, PICKLE = ".json", ".skops", ".pickle"
FILES = tuple(f"{name}{ending}" for name in (MODEL, UNWEIGHTED) for ending in (JSON, SKOPS, PICKLE))

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


def save_model(model: Any, folder: Path, X: Any, name: str = MODEL) -> str:
    """Save the model as safely as it can be, and give the file's name, which begins with `name`.

    The file is read again and asked for the rows of X: a format that gives other answers is not used.
    """
    for ending in (JSON, SKOPS, PICKLE):
        (folder / f"{name}{ending}").unlink(missing_ok=True)
    if isinstance(model, Stateful):
        (folder / f"{name}{JSON}").write_text(json.dumps(model.state()), encoding="utf-8")
        return f"{name}{JSON}"
    content = _skops(model, X)
    if content is not None:
        (folder / f"{name}{SKOPS}").write_bytes(content)
        return f"{name}{SKOPS}"
    try:
        (folder / f"{name}{PICKLE}").write_bytes(pickle.dumps(model))
    except Exception as error:
        raise StateError(f"{type(model).__name__} cannot be saved, not even as a pickle: {error}") from error
    return f"{name}{PICKLE}"


def load_model(folder: Path, trust: bool = False, name: str = MODEL) -> Any:
    """Load a model of a run; a file that could execute code only with `trust`."""
    as_json, as_skops, as_pickle = (folder / f"{name}{ending}" for ending in (JSON, SKOPS, PICKLE))
    if as_json.exists():
        with reading(as_json):
            return load_state(json.loads(as_json.read_text(encoding="utf-8")))
    if as_skops.exists():
        return _load_skops(as_skops, trust)
    if not as_pickle.exists():
        what = "model" if name == MODEL else f"{name} model"
        raise InvalidInputError(f"{folder} holds no {what}; it is no finished run of `moew fit`.")
    if not trust:
        raise InvalidInputError(
            f"{as_pickle} is a pickle: loading it runs whatever code its maker put in. If you made "
            "this run yourself, or trust who did, add --trust."
        )
    return pickle.loads(as_pickle.read_bytes())


def needs_trust(folder: Path) -> bool:
    """Whether the model of a run is loaded only with --trust."""
    as_skops = folder / f"{MODEL}{SKOPS}"
    if as_skops.exists():
        return bool(_untrusted(as_skops.read_bytes()))
    return not (folder / f"{MODEL}{JSON}").exists()


def _skops(model: Any, X: Any) -> bytes | None:
    """The model in skops' format, None where that cannot hold it."""
    import skops.io

    try:
        content: bytes = skops.io.dumps(model)
        again = skops.io.loads(content, trusted=skops.io.get_untrusted_types(data=content))
        alike = np.array_equal(np.asarray(again.predict(X)), np.asarray(model.predict(X)))
    except Exception:  # skops raises many kinds of errors
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
