"""The end of a search before its last candidate: more promise little, the time is over, or Ctrl-C."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, Literal

from moew._util.numbers import count, is_number, number
from moew.exceptions import Argument, InvalidInputError
from moew.samplers import resolve_sampler
from moew.types import Outlook, SamplerWithModel


@dataclass(frozen=True)
class Stopped:
    """Why and where a search stopped before its last batch; numbers are in the metric's units."""

    reason: Literal["gain", "width"]
    n_candidates: int  # asked for, with those of α = 0
    n_saved: int  # candidates that were not trained
    n_trainings_saved: int  # the models of all their folds
    gain: float  # of the highest upper confidence bound over the best value
    width: float  # of the widest prediction interval
    stop_when: float

    def __str__(self) -> str:
        why = (
            f"the upper confidence bound promised a gain of {number(max(self.gain, 0.0))} at most"
            if self.reason == "gain"
            else f"the prediction interval was nowhere wider than {number(self.width)}"
        )
        trainings = "training" if self.n_trainings_saved == 1 else "trainings"
        return (
            f"the search for example weights stopped after {self.n_candidates} of "
            f"{self.n_candidates + self.n_saved} candidates, because {why}, below {number(self.stop_when)}; "
            f"this saved {self.n_trainings_saved} {trainings}."
        )


@dataclass(frozen=True)
class CutOff:
    """That a search ended before all its candidates were trained, and not because more promised little."""

    reason: Literal["timeout", "interrupt"]
    n_trained: int  # of all ways, with those of α = 0, also those that failed
    n_candidates: int  # that it would have trained
    timeout: float | None = None  # seconds

    def __str__(self) -> str:
        why = (
            f"the search ended by its timeout of {number(self.timeout)} s"
            if self.reason == "timeout"
            else "the search was interrupted"
        )
        were = "was" if self.n_trained == 1 else "were"
        return f"{why}: {self.n_trained:,} of {count(self.n_candidates, 'candidate')} {were} trained."


@dataclass(frozen=True)
class Deadline:
    """The moment from which on no candidate is begun, so many seconds after this object was made."""

    seconds: float
    begun: float = field(default_factory=time.monotonic)

    @property
    def is_over(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() - self.begun >= self.seconds


def reason_to_stop(outlook: Outlook | None, stop_when: float) -> Literal["gain", "width"] | None:
    """Why a search with this outlook can stop; None if it should go on."""
    if outlook is None:
        return None
    if outlook.gain < stop_when:
        return "gain"
    return "width" if outlook.width < stop_when else None


def check_stop_when(stop_when: Any, sampler: Any) -> None:
    """Raise unless `stop_when` is None or a positive number, and the sampler has a model to ask."""
    if stop_when is None:
        return
    if not (is_number(stop_when) and stop_when > 0):
        raise InvalidInputError(
            Argument("stop_when"),
            " must be a positive number in the metric's units, or None to train all candidates; got "
            f"{stop_when!r}.",
            argument="stop_when",
        )
    if not isinstance(resolve_sampler(sampler), SamplerWithModel):
        raise InvalidInputError(
            Argument("stop_when"),
            f" needs a sampler with a model of the scores, and {sampler!r} has none: take ",
            Argument("sampler", "gp_bucb"),
            ", or leave out ",
            Argument("stop_when"),
            ".",
            argument="stop_when",
        )
