"""A finished run: predictions and weights of new rows, from its folder alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from moew._util.state import State, load_state
from moew.cli.runs._folder import CHECKSUM, MODELS, SIMPLE, RunFolder, file_digest, parts_checksum
from moew.cli.runs._schema import Schema, TableRows
from moew.exceptions import InvalidInputError, StateError
from moew.models import Calibration
from moew.saving import MODEL, load_model, model_files, reading, using
from moew.saving import UNWEIGHTED as UNWEIGHTED_FILE
from moew.search import (
    CALIBRATION,
    CONSTANT,
    PARTS,
    TUNED,
    UNWEIGHTED,
    FinalModel,
    calibration_from,
    classes_from,
    constant_model,
    rule_from,
)
from moew.types import DecisionRule, FloatArray

_PARTS = {"schema", "weight_function", "decision", "unweighted_decision", "classes", "pos_label"}


@dataclass(frozen=True)
class FinishedRun:
    """A run that was loaded from its folder."""

    folder: Path
    schema: Schema
    decision: DecisionRule | None
    unweighted_decision: DecisionRule | None
    classes: np.ndarray[Any, Any] | None
    pos_label: Any
    weight_state: State
    digests: Mapping[str, str]  # of the models' files; none in runs of versions that wrote none
    calibration: Calibration | None = None  # of the winner's probabilities
    tuned_decision: DecisionRule | None = None  # of the unweighted model
    constant: Any = None  # the best constant answer; None if none was kept

    def model(self, trust: bool = False, *, unweighted: bool = False) -> Any:
        """The fitted model; one that only code can make again needs `trust`."""
        name = UNWEIGHTED_FILE if unweighted else MODEL
        if trust:  # before any code of a file is run that is not the run's
            self._check_files(name)
        model = load_model(self.folder, trust, name)
        self._check_files(name)  # after reading it, which says what is wrong in more detail
        return model

    def _check_files(self, name: str) -> None:
        """Raise if a file of the model is not the one that the run wrote."""
        for file in model_files(self.folder):
            if not (file.startswith((f"{name}.", f"{name}-")) and file in self.digests):
                continue
            if file_digest(self.folder / file) != self.digests[file]:
                raise StateError(
                    f"{self.folder / file} is not what was written: damaged, edited or of another run. Take "
                    "a copy of it, or make the run again."
                )

    def rows_to_predict(self, path: Path, separator: str | None = None) -> TableRows:
        """The rows of a file, with those of the metric's columns that the decision looks at."""
        needed = () if self.decision is None else self.decision.columns
        given = [name for name in needed if name in self.schema.columns]
        return self.schema.read(path, labels=False, ids=False, columns=given, separator=separator)

    def rows_to_weigh(self, path: Path, separator: str | None = None) -> TableRows:
        """The labelled rows of a file, with those of the metric's columns that the embedding looks at."""
        with reading(self.folder / PARTS):
            fitted = embeddings_in(self.weight_state)
            looked_at = [column["name"] for e in fitted for column in e.get("row_columns", [])]
            needed = dict.fromkeys([*looked_at, *(name for e in fitted for name in e.get("beside", []))])
        given = [name for name in needed if name in self.schema.columns]
        return self.schema.read(path, ids=False, columns=given, separator=separator)

    def predict(self, rows: TableRows, *, trust: bool = False, unweighted: bool = False) -> dict[str, Any]:
        """Columns: the rows' ids, the prediction, and the score or the probability of each class; of the
        winner, or of the model without learned weights."""
        model = self.model(trust, unweighted=unweighted)
        rule = self.unweighted_decision if unweighted else self.decision
        with using(self.folder):
            columns = self._answers(model, rule, rows, None if unweighted else self.calibration)
            if odd := [name for name, of_rows in columns.items() if of_rows.shape != (len(rows),)]:
                raise ValueError(f"it gives no column {odd[0]!r} of {len(rows)} rows")
            return columns

    def models_by_strategy(self, chosen: str, *, trust: bool = False) -> dict[str, FinalModel]:
        """The models that the folder holds: the selected model, which is the strategy `chosen`, the
        unweighted one, and those of simple strategies."""
        winner = FinalModel(self.model(trust), self.decision, self.classes, self.pos_label, self.calibration)
        found = {chosen: winner}
        if any(file.startswith(f"{UNWEIGHTED_FILE}.") for file in model_files(self.folder)):
            plain = self.model(trust, unweighted=True)
            rules = {UNWEIGHTED: self.unweighted_decision}
            if self.tuned_decision is not None:
                rules[TUNED] = self.tuned_decision
            for strategy, rule in rules.items():
                found.setdefault(strategy, FinalModel(plain, rule, self.classes, self.pos_label))
        if self.constant is not None:
            found.setdefault(CONSTANT, FinalModel(self._constant_model(), None, self.classes, self.pos_label))
        return found

    def _constant_model(self) -> Any:
        classifies = self.classes is not None
        labels = self.classes if self.classes is not None else [self.constant]
        return constant_model(self.constant, np.zeros((len(labels), 1)), labels, classifies=classifies)

    def _answers(
        self, model: Any, rule: DecisionRule | None, rows: TableRows, calibration: Calibration | None
    ) -> dict[str, Any]:
        columns: dict[str, Any] = {rows.id_name: rows.ids}
        needed = () if rule is None else rule.columns
        # As in the search: a column that the user named goes before a feature of that name.
        of_rule = {**{name: rows.X[name] for name in needed if name in rows.X}, **rows.columns}
        final = FinalModel(model, rule, self.classes, self.pos_label, calibration)
        columns["prediction"] = final.decide(rows.X, of_rule)
        if self.classes is not None and (calibration is not None or hasattr(model, "predict_proba")):
            shares = final.probabilities(rows.X)
            columns |= {f"probability_{c}": shares[:, k] for k, c in enumerate(self.classes.tolist())}
        elif self.classes is not None and len(self.classes) == 2 and hasattr(model, "decision_function"):
            columns["score"] = np.asarray(model.decision_function(rows.X))
        return columns

    def weights(self, rows: TableRows, objects: Mapping[str, Any] | None = None) -> FloatArray:
        """The learned weights of labelled rows; `objects` are functions of the user's own."""
        if rows.y is None:
            raise InvalidInputError("weights are of labelled rows; read them with their labels.")
        with reading(self.folder / PARTS):
            function = load_state(self.weight_state, objects)
        with using(self.folder / PARTS):
            weights = np.asarray(function(rows.X, rows.y, rows.columns), dtype=np.float64)
            if weights.shape != (len(rows),):
                raise ValueError(f"its weights of {len(rows)} rows have the shape {weights.shape}")
        return weights


def embeddings_in(weight_state: State) -> list[State]:
    """What was fitted of each embedding in the state of a weight function: several are in that of an
    average, none in that of powers of the target."""
    if "functions" in weight_state:
        return [fitted for one in weight_state["functions"] for fitted in embeddings_in(one)]
    return [weight_state["embedding"].get("fitted", {})] if "embedding" in weight_state else []


def _simple_strategies(state: State | None, classes: np.ndarray[Any, Any] | None) -> tuple[Any, Any]:
    """The tuned rule and the constant of `simple_parts`, None where there is none."""
    if state is None:
        return None, None
    constant = state["constant"]
    is_answer = isinstance(constant, int | float) if classes is None else constant in classes.tolist()
    if not (constant is None or is_answer):
        raise StateError(f"its constant {constant!r} is no answer of the model.")
    return rule_from(state["tuned_decision"], classes), constant


def load_run(folder: Path) -> FinishedRun:
    """Load the run in a folder of `moew fit` without executing anything from it."""
    parts = RunFolder(folder).read_json(PARTS)
    with reading(folder / PARTS):
        named = set(parts) - {CALIBRATION, SIMPLE} if isinstance(parts, dict) else set()
        if named not in (_PARTS, _PARTS | {MODELS, CHECKSUM}):
            raise StateError(f"it must hold {', '.join(sorted(_PARTS))}, and nothing else.")
        classes = classes_from(parts["classes"], parts["pos_label"])
        found = FinishedRun(
            folder,
            Schema.from_state(parts["schema"]),
            rule_from(parts["decision"], classes),
            rule_from(parts["unweighted_decision"], classes),
            classes,
            parts["pos_label"],
            parts["weight_function"],
            dict(parts.get(MODELS, {})),
            calibration_from(parts, classes),
            *_simple_strategies(parts.get(SIMPLE), classes),
        )
        # Last, so that an entry that cannot be read is named. Version 0.1.0 wrote no checksum.
        if CHECKSUM in parts and parts[CHECKSUM] != parts_checksum(parts):
            raise StateError("it is not what was written: damaged, or edited. Take a copy of it.")
        return found
