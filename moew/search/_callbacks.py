"""Callbacks: what is told of a search while `fit` runs, to log it elsewhere."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

from moew._printable import shortened
from moew.data import Rows
from moew.exceptions import MoewWarning
from moew.metrics import Metric

if TYPE_CHECKING:
    from moew.search._loop import OnTold
    from moew.search._result import FittedSearch
    from moew.search._settings import SearchSettings
    from moew.search._study import Trial


class SearchCallback:
    """Told of a search while it runs: subclass it, and write the methods that you need.

    What a method gets is to be read and not changed. It is called in the process that called `fit`, one at a
    time, and the search waits for it.
    """

    def on_begin(self, settings: SearchSettings, metric: Metric) -> None:
        """Called before anything is trained, with the search's parameters and the metric that is optimised.

        An error here ends the fit.
        """

    def on_trial(self, strategy: str, trial: Trial) -> None:
        """Called for each candidate that this process trained: its strategy, such as "example weights", and
        the candidate with its number in this way and its value, or its error.

        An error here becomes a warning, and this fit calls `on_trial` no more.
        """

    def on_end(self, fitted: FittedSearch | None, training: Rows, validation: Rows) -> None:
        """Called at the end, with the finished search and the rows that `fit` got.

        `fitted` is None if the fit ended with an error or was interrupted; `validation.X` is None if no
        validation rows were given. An error here becomes a warning.
        """


def call_at_begin(settings: SearchSettings, metric: Metric) -> None:
    """Tell all callbacks that the search begins. An error of one ends it, and those before are told so."""
    begun: list[SearchCallback] = []
    try:
        for callback in settings.callbacks or ():
            callback.on_begin(settings, metric)
            begun.append(callback)
    except BaseException:
        call_at_end(begun, None, Rows(None, None), Rows(None, None))
        raise


def trial_caller(callbacks: Sequence[SearchCallback], strategies: Sequence[str]) -> OnTold:
    """The function that tells all callbacks of a trial of the search for `strategies[place]`."""
    working = list(callbacks)

    def tell(place: int, trial: Trial, *_: object) -> None:
        for callback in tuple(working):
            try:
                callback.on_trial(strategies[place], trial)
            except Exception as error:
                working.remove(callback)
                _warn(callback, "on_trial", error, " It is told of no further candidates.")

    return tell


def call_at_end(
    callbacks: Sequence[SearchCallback], fitted: FittedSearch | None, training: Rows, validation: Rows
) -> None:
    """Tell all callbacks that the search has ended, with a result or without."""
    for callback in callbacks:
        try:
            callback.on_end(fitted, training, validation)
        except Exception as error:
            _warn(callback, "on_end", error, " The search itself is complete." if fitted else "")


def _warn(callback: SearchCallback, method: str, error: Exception, then: str) -> None:
    why = shortened(f"{type(error).__name__}: {error}", 500).rstrip(".")
    told = f"the callback {type(callback).__name__} failed in {method}: {why}.{then}"
    warnings.warn(told, MoewWarning, stacklevel=2)
