"""Messages of the library with the options of the command line in place of Python's arguments."""

from __future__ import annotations

from typing import Any

from moew.exceptions import Argument

# Arguments of the library that are not called like their option; all others are, but for dashes.
_OPTIONS = {
    "X_test": "--test",
    "X_val": "--validation",
    "X_val and y_val": "--validation",
    "estimator": "--model",
    "groups": "--together",
    "groups_test": "--together",
    "groups_val": "--together",
    "metadata": "--metric-column",
    "metadata_test": "--metric-column",
    "metadata_val": "--metric-column",
    "metric=[…, …]": "--also",
    "n_batches": "--batches",
    "n_candidates": "--candidates",
    "n_dims": "--dims",
    "n_jobs": "--jobs",
    "pos_label": "--positive",
    "random_state": "--seed",
    "storage": "--out or --storage",
    "validation": "--validation-share",
    "width": "--kernel-width",
}
# Messages about these arguments help only in Python.
_SENTENCES = {
    "study": "the run was begun with other data, another model or metric, or other settings of the search; "
    "take the same to go on with it, another --out, or --force to begin anew."
}


def message_of(error: Any) -> str:
    """What an error or a warning says, on one line."""
    if getattr(error, "argument", None) in _SENTENCES:
        return _SENTENCES[error.argument]
    text = error.worded(say) if hasattr(error, "worded") else str(error)
    return " ".join(text.split()) or type(error).__name__


def say(argument: Argument) -> str:
    """An argument as an option: `--decision accurate` for decision='accurate'."""
    name, value = argument.name, argument.value
    if name == "on":
        return f"@{value}" if argument.has_value else "@train, @validation or @each"
    if name == "trusted":
        return "--trust"
    if name == "greater_is_better":
        return "--higher-is-better" if value is True else "--lower-is-better"
    if name == "validation" and argument.has_value and not isinstance(value, float):
        return f"--folds {'none' if value is None else value}"
    option = _OPTIONS.get(name, f"--{name.replace('_', '-')}")
    if not argument.has_value or value is True:  # an option without a value
        return option
    return f"no {option}" if value is None else f"{option} {value}"
