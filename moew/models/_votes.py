"""Several models' answers on the same rows made one: weighted means and weighted majorities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from moew.exceptions import Argument, InvalidInputError
from moew.types import Array, FloatArray


def checked_votes(votes: Any, n_models: int) -> FloatArray:
    """The votes (n_models,) as float64, not normalised; raise unless each is a positive number."""
    try:
        given = np.asarray(votes)
    except ValueError:  # lists of different lengths
        given = np.empty(0)
    given = given.astype(np.float64) if given.dtype.kind in "iuf" else np.empty(0)  # texts are no numbers
    if not n_models or given.shape != (n_models,) or not np.isfinite(given.sum()) or not (given > 0).all():
        raise InvalidInputError(
            Argument("votes"),
            f" must be one positive number for each of the {n_models} models, got {votes!r}; leave out "
            "models that have no vote.",
            argument="votes",
        )
    return given


def weighted_mean(answers: Sequence[Array], votes: FloatArray) -> Array:
    """The mean of the models' numbers, each (n,) or (n, C); a single model's are given back as they are."""
    if len(answers) == 1:
        return answers[0]
    check_same_shape(answers)
    shares = votes / votes.sum()
    # Model after model, so that a row's mean does not depend on which rows stand beside it.
    total = shares[0] * np.asarray(answers[0], dtype=np.float64)
    for share, answer in zip(shares[1:], answers[1:], strict=True):
        total += share * np.asarray(answer, dtype=np.float64)
    return np.asarray(total)


def weighted_majority(labels: Sequence[Array], votes: FloatArray, classes: Array) -> Array:
    """The label (n,) with most votes for each row; among equals, the one that comes first in `classes`."""
    check_same_shape(labels)
    # The votes as they were given: sums of whole numbers are exact, so that ties are found.
    counts = np.zeros((len(labels[0]), len(classes)))
    for of_model, vote in zip(labels, votes, strict=True):
        counts += vote * (np.asarray(of_model)[:, None] == classes)
    return np.asarray(classes[counts.argmax(axis=1)])


def class_scores(decision: Array, n_classes: int) -> FloatArray | None:
    """A decision function as (n,), positive for the second of two classes, or as (n, C) for more.

    None if its columns are not the classes, such as one against one.
    """
    if n_classes != 2:
        return decision if decision.shape[1:] == (n_classes,) else None
    if decision.shape[1:] == (2,):
        return np.asarray(decision[:, 1] - decision[:, 0])
    return decision.reshape(len(decision)) if decision.size == len(decision) else None


def check_same_shape(answers: Sequence[Array]) -> None:
    shapes = [np.shape(answer) for answer in answers]
    for shape in shapes:
        if shape != shapes[0]:
            raise InvalidInputError(
                f"the models do not answer alike: one gave an answer of shape {shapes[0]}, another of shape "
                f"{shape}, for the same rows.",
                argument="models",
            )
