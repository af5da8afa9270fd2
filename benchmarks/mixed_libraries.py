"""Libraries for rows of mixed origin, as rivals in benchmarks/mixed.py, each in an environment of its own.

They get the features, labels, columns and the model of a problem, and give scores of the validation rows,
each by a model that did not learn from it, and of the test rows. Decisions are tuned on the former.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
from own_environment import in_cache, python_with
from rivals_judge import raw_outputs
from rivals_methods import Outcome, Watch

if TYPE_CHECKING:
    from mixed_methods import MixedBench

SIDE = Path(__file__).parent / "mixed_libraries_side.py"
LONGEST = 900.0  # seconds that a library may take for one split
FEWEST_ANSWERS = 1.5  # to each row on average, for methods that compare annotators


def _is_classification(bench: MixedBench) -> str | None:
    return "it is for classes" if bench.classes is None else None


def _has_several_answers(bench: MixedBench) -> str | None:
    if "annotator" not in bench.origins:
        return "rows have no annotators"
    answers = len(bench.T) / len(np.unique(bench.T.X, axis=0))
    return None if answers > FEWEST_ANSWERS else f"a row has {answers:.2f} answers on average"


def _has_hidden_groups(bench: MixedBench) -> str | None:
    if "group" not in bench.origins:
        return "rows have no groups"
    return None if bench.classes is not None and len(bench.classes) == 2 else "it is for two classes"


def _fits_any(_: MixedBench) -> None:
    return None


@dataclass(frozen=True)
class Library:
    """What is installed where, and why it does not fit a problem."""

    folder: str
    requirements: tuple[str, ...]
    why_not: Callable[[MixedBench], str | None]
    learns_from_v: bool = True  # whether it learns from validation rows, too
    rounds: tuple[int | None, ...] = (None,)  # of boosting: the best on the validation rows


BIQUALITY = "biquality-0.1", ("biquality-learn==0.1.0", "scikit-learn==1.5.*", "lightgbm==4.*")
ADAPT = (
    "adapt-0.4",
    ("adapt==0.4.5", "tensorflow-cpu==2.15.*", "scikit-learn==1.3.*", "numpy==1.26.*", "lightgbm==4.*"),
)
CLEANLAB = "cleanlab-2.9", ("cleanlab==2.9.*", "lightgbm==4.*")
CROWD = "crowd-kit-1.2", ("crowd-kit==1.2.0", "lightgbm==4.*")
FAIRLEARN = "fairlearn-0.15", ("fairlearn==0.15.*", "lightgbm==4.*")

LIBRARIES = {
    "biquality-learn, IRBL": Library(*BIQUALITY, _is_classification),
    "biquality-learn, K-PDR": Library(*BIQUALITY, _is_classification),
    "adapt, TrAdaBoost": Library(*ADAPT, _fits_any, rounds=(2, 4, 10)),
    "cleanlab, CleanLearning": Library(*CLEANLAB, _fits_any),
    "crowd-kit, majority vote": Library(*CROWD, _has_several_answers),
    "crowd-kit, Dawid-Skene": Library(*CROWD, _has_several_answers),
    "fairlearn, ExponentiatedGradient": Library(*FAIRLEARN, _has_hidden_groups, learns_from_v=False),
}


def run_library(bench: MixedBench, name: str) -> Outcome:
    """What a library reaches, or NaN and why it was left out."""
    library = LIBRARIES[name]
    why_not = library.why_not(bench)
    if bench.problem.model == "network":
        why_not = "its environment has no model of moew's"
    if why_not is None:
        try:
            python = python_with(library.requirements, in_cache(library.folder))
        except subprocess.CalledProcessError as error:
            why_not = f"it could not be installed: {error}"
    if why_not is not None:
        print(f"{bench.problem.name} {bench.split}, {name}: left out, {why_not}", flush=True)
        return Outcome(np.nan, extra={"left out": why_not})
    outputs, watch = _ask(bench, name, library, python)
    best = int(np.argmax([bench.score(on_V) for on_V, _ in outputs]))
    on_V, on_E = outputs[best]
    rule = bench.tuned(on_V)
    return bench.outcome(watch, on_E, rule, tuned=str(rule), rounds=library.rounds[best])


def _ask(
    bench: MixedBench, name: str, library: Library, python: Path
) -> tuple[list[tuple[np.ndarray, np.ndarray]], Watch]:
    """Raw outputs on V and on the test rows for each number of rounds, and what they cost."""
    T, V, classes = bench.T, bench.V, bench.classes
    estimator = bench.problem.estimator()
    usual = type(estimator)().get_params()
    asked: dict[str, Any] = {
        "method": name,
        "model": type(estimator).__name__,
        "parameters": {k: v for k, v in estimator.get_params().items() if k not in usual or v != usual[k]},
        "n_classes": 0 if classes is None else len(classes),
        "n_folds": len(bench.folds_of_V) if library.learns_from_v else 0,
        "seed": bench.split,
        "rounds": library.rounds,
    }
    labels = [y if classes is None else np.searchsorted(classes, y) for y in (T.y, V.y)]
    given: dict[str, Any] = {"X": T.X, "y": labels[0], "X_val": V.X, "y_val": labels[1], "X_test": bench.E.X}
    if library.learns_from_v:
        given |= {f"rows_{k}": rows for k, (rows, _) in enumerate(bench.folds_of_V)}
    named = [name for name in ("annotator", "group") if name in bench.origins]
    given |= {name: np.asarray(T.columns[name]).astype(str) for name in named}
    with TemporaryDirectory() as folder:
        np.savez(Path(folder) / "given.npz", **given)
        (Path(folder) / "asked.json").write_text(json.dumps(asked))
        ended = subprocess.run(
            [python, SIDE, folder], capture_output=True, text=True, timeout=LONGEST, check=False
        )
        if ended.returncode:
            raise RuntimeError(ended.stderr.strip().splitlines()[-1] if ended.stderr.strip() else "it ended")
        with np.load(Path(folder) / "found.npz") as found:
            outputs = [
                (_raw(found[f"V_{k}"], classes), _raw(found[f"test_{k}"], classes))
                for k in range(len(library.rounds))
            ]
            return outputs, Watch(int(found["fits"]), float(found["seconds"]))


def _raw(scores: np.ndarray, classes: np.ndarray | None) -> np.ndarray:
    return scores if classes is None else raw_outputs(scores)
