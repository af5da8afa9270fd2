"""A finished run: predictions and weights of new rows, from the search that its folder holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from moew.cli._users_code import look_in, users_code
from moew.cli.runs._folder import SEARCH, RunFolder
from moew.cli.runs._schema import Schema, TableRows
from moew.exceptions import InvalidInputError
from moew.saving import reading, using
from moew.search import UNWEIGHTED, FinalModel, FittedSearch, load_fitted
from moew.types import FloatArray


@dataclass(frozen=True)
class FinishedRun:
    """A run that was loaded from its folder."""

    folder: Path
    schema: Schema
    fitted: FittedSearch

    def rows_to_predict(self, path: Path, separator: str | None = None) -> TableRows:
        """The rows of a file, with those of the metric's columns that the decision looks at."""
        rule = self.fitted.winner.rule
        return self._rows(path, separator, () if rule is None else rule.columns, labels=False)

    def rows_to_weigh(self, path: Path, separator: str | None = None) -> TableRows:
        """The labelled rows of a file, with those of the metric's columns that the embedding looks at."""
        return self._rows(path, separator, getattr(self.fitted.weight_function, "wanted_columns", ()))

    def rows_to_evaluate(self, path: Path, separator: str | None = None) -> TableRows:
        """The labelled rows of a file, with all columns of the metric, and groups."""
        return self._rows(path, separator, self.schema.columns, groups=True)

    def _rows(self, path: Path, separator: str | None, needed: Iterable[str], **what: bool) -> TableRows:
        with using(self.folder / SEARCH):
            columns = [name for name in needed if name in self.schema.columns]
            return self.schema.read(path, ids=False, columns=columns, separator=separator, **what)

    def unseen(self, rows: TableRows) -> dict[str, dict[str, int]]:
        """As `Schema.unseen`."""
        with using(self.folder / SEARCH):
            return self.schema.unseen(rows)

    def predict(self, rows: TableRows, *, unweighted: bool = False) -> dict[str, Any]:
        """Columns: the rows' ids, the prediction, and the score or the probability of each class; of the
        winner, or of the model without learned weights."""
        model = self.fitted.unweighted if unweighted else self.fitted.winner
        if model is None:
            raise InvalidInputError(f"{self.folder} holds no unweighted model: it could not be trained.")
        with using(self.folder / SEARCH):
            columns = {rows.id_name: rows.ids, **_answers(model, rows)}
            if odd := [name for name, of_rows in columns.items() if of_rows.shape != (len(rows),)]:
                raise ValueError(f"it gives no column {odd[0]!r} of {len(rows)} rows")
        return columns

    def models_by_strategy(self) -> dict[str, FinalModel]:
        """The selected model, the unweighted one, and those of simple strategies."""
        found, unweighted = {self.fitted.result.selected: self.fitted.winner}, self.fitted.unweighted
        others = {} if unweighted is None else {UNWEIGHTED: unweighted}
        for strategy, model in {**others, **self.fitted.simple_models}.items():
            found.setdefault(strategy, model)
        return found

    def weights(self, rows: TableRows) -> FloatArray:
        """The learned weights of labelled rows."""
        with using(self.folder / SEARCH):
            function = self.fitted.weight_function
            weights = np.asarray(function(rows.X, rows.y, rows.columns), dtype=np.float64)
            if weights.shape != (len(rows),):
                raise ValueError(f"its weights of {len(rows)} rows have the shape {weights.shape}")
        return weights


def _answers(final: FinalModel, rows: TableRows) -> dict[str, Any]:
    needed = () if final.rule is None else final.rule.columns
    # As in the search: a column that the user named goes before a feature of that name.
    of_rule = {**{name: rows.X[name] for name in needed if name in rows.X}, **rows.columns}
    columns: dict[str, Any] = {"prediction": final.decide(rows.X, of_rule)}
    if final.classes is None:
        return columns
    if final.calibration is not None or hasattr(final.model, "predict_proba"):
        shares = final.probabilities(rows.X)
        columns |= {f"probability_{c}": shares[:, k] for k, c in enumerate(final.classes.tolist())}
    elif len(final.classes) == 2 and hasattr(final.model, "decision_function"):
        columns["score"] = np.asarray(final.model.decision_function(rows.X))
    return columns


@users_code()
def load_run(folder: Path, trusted: bool = False, objects: Mapping[str, Any] | None = None) -> FinishedRun:
    """Load the run in a folder of `moew fit`; without `trusted`, nothing of it is executed. `objects` are
    functions of the user's own, by their names."""
    path = RunFolder(folder).file_of_finished_run(SEARCH)
    if trusted:
        look_in(Path.cwd())  # where the model's own class may be
    fitted, _, table = load_fitted(path, trusted, objects)
    with reading(path):
        return FinishedRun(folder, Schema(**table), fitted)
