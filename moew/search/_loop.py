"""Algorithm 1: train a model for each candidate alpha, score it, ask for the next ones.

Several searches can run side by side: each batch of candidates of all of them is trained in one call, so that
a model that trains many weightings at once gets them together. A single search is a special case.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from joblib import Parallel, delayed

from moew._util.progress import Report, progress
from moew.metrics import Predictions
from moew.search._candidates import TrainBatch, train_batch, train_in_time, train_together
from moew.search._ledger import Budget, Ledger, Outcome, Search
from moew.search._study import Trial, WeightStudy
from moew.storage import Crew

OnTold = Callable[[int, Trial, list[Any] | Exception, Predictions | None], None]
"""Called for each trial that was trained, with the index of its search, the trial with its value or its
error, its models, or what stopped them, and its predictions, None for a failure."""
Show = Callable[..., contextlib.AbstractContextManager[Report]]
"""(number of candidates, of batches, already=candidates that are done) → context that shows the progress."""

_QUIET = partial(progress, enabled=False)


def search_side_by_side(
    searches: Sequence[Search],
    budget: Budget,
    *,
    train: TrainBatch | None = None,
    on_told: OnTold | None = None,
    keep: bool = True,
    n_jobs: int = 1,
    crew: Crew | None = None,
    show: Show = _QUIET,
) -> list[Outcome]:
    """Run Algorithm 1 for several searches, batch by batch; each gives the same bits as it would alone.

    Studies that know candidates already, as after an interruption, go on with them.

    Parameters
    ----------
    searches : the searches, each with a study of its own
    budget : how many candidates they train, and what ends them before
    train : trains a batch of all searches; None: each with its trainer, those on the same rows together
    on_told : called for every trial that was trained, scored or failed
    keep : whether the outcomes hold predictions
    n_jobs : processes that propose alphas
    crew : the processes on these searches; those that join train each batch together
    show : shows the progress; without it nothing is shown
    """
    joined = crew is not None and crew.joins
    ledgers = [Ledger(search, keep, joined) for search in searches]
    train = _training(train, ledgers, budget, crew if joined else None)
    total = sum(budget.ends(ledgers, budget.n_batches))
    interrupted = False
    with show(total, budget.n_batches, already=_n_done(ledgers)) as report:
        try:
            for batch, ends in enumerate(budget.batches(ledgers), 1):
                asked = _ask([search.study for search in searches], ends, n_jobs)
                if not any(asked) and not joined:
                    continue
                try:
                    # Closed at once when interrupted, so that what is still being trained ends.
                    with contextlib.closing(train(asked)) as trained:
                        for place, trial, models in trained:
                            told, predictions = ledgers[place].enter(trial, models)
                            if on_told is not None:
                                on_told(place, told, models, predictions)
                            report(_n_done(ledgers), batch, ledgers[0].best_value)
                            if crew is not None:
                                crew.check()
                finally:  # also what was trained before an interruption
                    for ledger in ledgers:
                        ledger.tell_rest()
                budget.check_failures(ledgers)
        except KeyboardInterrupt:
            if not budget.can_conclude(ledgers):
                raise
            interrupted = True
    cut_off = budget.cut_off(ledgers, interrupted)
    return [ledger.outcome(cut_off) for ledger in ledgers]


def _n_done(ledgers: Iterable[Ledger]) -> int:
    return sum(len(ledger.values) for ledger in ledgers)


def _ask(studies: Sequence[WeightStudy], ends: Sequence[int], n_jobs: int) -> list[list[Trial]]:
    """The trials of each study below the number `ends` that are not yet told."""
    if n_jobs != 1:
        wanted = [(study, end - study.n_asked) for study, end in zip(studies, ends, strict=True)]
        wanted = [(study, k) for study, k in wanted if k > 0]
        alphas = Parallel(n_jobs=n_jobs)(delayed(study.next_alphas)(k) for study, k in wanted)
        for (study, _), found in zip(wanted, alphas, strict=True):
            study.ask_with(found)
    return [study.ask_until(end) for study, end in zip(studies, ends, strict=True)]


def _training(
    train: TrainBatch | None, ledgers: Sequence[Ledger], budget: Budget, others: Crew | None
) -> TrainBatch:
    """The function that trains a batch, as long as the time is not over, and together with others."""
    is_over = partial(budget.is_over, ledgers)
    if train is None:
        goes_on = None if others is None else others.holds_its_share
        train = partial(train_batch, [ledger.search for ledger in ledgers], goes_on)
        if budget.deadline is not None:
            train = partial(train_in_time, train, ledgers, is_over)
    return train if others is None else partial(train_together, train, others, ledgers, is_over)
