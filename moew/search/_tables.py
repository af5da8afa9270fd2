"""Results for people in a notebook: HTML tables, data frames, and scikit-learn's `cv_results_`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from moew._printable import printable
from moew.exceptions import MoewError
from moew.search._study import Trial
from moew.types import FloatArray, IntArray

if TYPE_CHECKING:
    from pandas import DataFrame

# No colours of its own, so that it is as light or dark as the notebook.
_TABLE = "border-collapse: collapse; margin: 0.4em 0; font: inherit; font-variant-numeric: tabular-nums"
_CELL = "padding: 0.15em 1em 0.15em 0; border: none; background: none; text-align: "
_RULE = "; border-bottom: 1px solid currentColor"
_CHOSEN = "; font-weight: bold"


def html_table(
    caption: str,
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    below: Sequence[str],
    chosen: int | None = None,
) -> str:
    """A table as HTML that needs nothing else, with lines of text below; row number `chosen` is bold."""

    def line(cells: Sequence[str], tag: str, more: str = "") -> str:
        styles = [f"{_CELL}{'left' if k == 0 else 'right'}{more}" for k in range(len(cells))]
        shown = (
            f'<{tag} style="{style}">{_text(cell)}</{tag}>' for style, cell in zip(styles, cells, strict=True)
        )
        return f"<tr>{''.join(shown)}</tr>"

    body = "".join(line(row, "td", _CHOSEN if k == chosen else "") for k, row in enumerate(rows))
    after = "".join(f"<div>{_text(words)}</div>" for words in below)
    return (
        f'<div><div>{_text(caption)}</div><table style="{_TABLE}"><thead>{line(heads, "th", _RULE)}</thead>'
        f"<tbody>{body}</tbody></table>{after}</div>"
    )


def _text(words: str) -> str:
    return escape(printable(words))


def data_frame(columns: Mapping[str, Any], what: str) -> DataFrame:
    """The columns as a data frame of pandas, which is loaded now; `what` names it in the error without."""
    try:
        import pandas as pd
    except ImportError as error:
        raise MoewError(
            f"{what} as a data frame needs pandas; install it with: pip install 'moew[parquet]'"
        ) from error
    return pd.DataFrame(columns)


def trial_columns(trials: Sequence[Trial], greater_is_better: bool) -> dict[str, Any]:
    """The trials as columns (n,): number, value, rank, error, pending, one for each dimension of alpha, and
    one for each hyper-parameter that is searched."""
    return {
        "number": np.array([trial.number for trial in trials], dtype=np.int64),
        "value": _values(trials),
        "rank": ranks(_scores(trials, greater_is_better)),
        "error": _objects([trial.error for trial in trials]),
        "pending": np.array([trial.pending for trial in trials], dtype=bool),
        **_alphas(trials),
        **_parameters(trials),
    }


def cv_results(trials: Sequence[Trial], greater_is_better: bool) -> dict[str, Any]:
    """The trials in the layout of scikit-learn's `cv_results_`; see `ExampleWeightSearch`."""
    scores = _scores(trials, greater_is_better)
    return {
        "params": [dict(trial.parameters) for trial in trials],
        **_parameters(trials),
        **_alphas(trials),
        "mean_test_score": scores,
        "rank_test_score": ranks(scores).astype(np.int32),
        "error": _objects([trial.error for trial in trials]),
    }


def ranks(scores: FloatArray) -> IntArray:
    """1 for the highest of the scores (n,), the same for equal ones; those that are NaN come last."""
    known = scores[~np.isnan(scores)]
    n_better = len(known) - np.searchsorted(np.sort(known), scores, side="right")
    return np.asarray(np.where(np.isnan(scores), len(known), n_better) + 1, dtype=np.int64)


def _values(trials: Sequence[Trial]) -> FloatArray:
    return np.array([trial.value for trial in trials], dtype=np.float64)


def _scores(trials: Sequence[Trial], greater_is_better: bool) -> FloatArray:
    """Values of which greater ones are better (n,)."""
    return _values(trials) if greater_is_better else -_values(trials)


def _alphas(trials: Sequence[Trial]) -> dict[str, FloatArray]:
    n_dims = max((len(trial.alpha) for trial in trials), default=0)
    return {f"alpha_{k}": np.array([trial.alpha[k] for trial in trials]) for k in range(n_dims)}


def _parameters(trials: Sequence[Trial]) -> dict[str, Any]:
    """A masked array (n,) for each hyper-parameter, as scikit-learn has them."""
    names = list(dict.fromkeys(name for trial in trials for name in trial.parameters))
    found = {}
    for name in names:
        values = [trial.parameters.get(name) for trial in trials]
        missing = [name not in trial.parameters for trial in trials]
        kinds = {type(value) for value, gone in zip(values, missing, strict=True) if not gone}
        plain = kinds <= {int, float} and not any(missing)
        array = np.array(values) if plain else _objects(values)
        found[f"param_{name}"] = np.ma.MaskedArray(array, mask=missing)
    return found


def _objects(values: Sequence[Any]) -> Any:
    """An array (n,) of any objects, also of lists, which NumPy would take for rows."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
