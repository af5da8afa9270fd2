"""Decision thresholds and false-positive rates by group, for the scores of R × K models at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from moew.exceptions import InvalidInputError
from moew.types import BoolArray, FloatArray, IntArray

N_GROUPS = 4
COVERAGE, GREEDY_MOVES = 0.278, 1000  # the authors'
ONE_THRESHOLD = ("training accuracy", "validation accuracy", "zero", "coverage")
RULES = (*ONE_THRESHOLD, "post-shift")


@dataclass(frozen=True)
class Scored:
    """Scores (R, K, m) of rows with labels (R, m) and groups (R, m) of 0 … 3."""

    scores: FloatArray
    positive: BoolArray
    groups: IntArray


def thresholds(rule: str, training: Scored, validation: Scored) -> FloatArray:
    """Thresholds (R, K, 4), one for each group; a row is positive if its score is above.

    "post-shift" gives each group its own (see `post_shift`), all others give one to all: of the best
    accuracy on training or validation rows, 0, or that which 27.8 % of the training scores exceed.
    """
    if rule == "post-shift":
        return post_shift(training)
    match rule:
        case "training accuracy":
            one = most_accurate(training)
        case "validation accuracy":
            one = most_accurate(validation)
        case "coverage":
            one = np.percentile(training.scores, 100.0 * (1.0 - COVERAGE), axis=2)
        case "zero":
            one = np.zeros(training.scores.shape[:2])
        case _:
            raise InvalidInputError(f"rule must be one of {RULES}, got {rule!r}.")
    return np.repeat(one[:, :, None], N_GROUPS, axis=2)


def most_accurate(rows: Scored) -> FloatArray:
    """The threshold (R, K) of the best accuracy; of several, the one that selects the fewest."""
    order = np.argsort(-rows.scores, axis=2, kind="stable")
    best_first = np.take_along_axis(rows.scores, order, axis=2)
    labels = np.take_along_axis(np.broadcast_to(rows.positive[:, None], order.shape), order, axis=2)
    gains = np.cumsum(np.where(labels, 1, -1), axis=2)
    gains[:, :, :-1][best_first[:, :, :-1] == best_first[:, :, 1:]] = -order.shape[2]  # not between equals
    n_selected = np.concatenate([np.zeros_like(gains[:, :, :1]), gains], axis=2).argmax(axis=2)
    return _first_outside(best_first, n_selected)


def post_shift(rows: Scored) -> FloatArray:
    """Thresholds (R, K, 4) for equal false-positive rates at one coverage, by the authors' greedy way.

    Each group starts with its best 27.8 %; then, 1,000 times, one row more is selected in the group with the
    lowest rate and one less in the group with the highest.
    """
    R, K, m = rows.scores.shape
    best_first = np.empty((R, K, N_GROUPS, m))
    rates = np.zeros((R, K, N_GROUPS, m + 1))  # [..., g, j]: of group g with its j best rows selected
    sizes = np.empty((R, 1, N_GROUPS), np.intp)
    for g in range(N_GROUPS):
        member = rows.groups == g
        scores = np.where(member[:, None], rows.scores, -np.inf)  # those of other groups come last
        order = np.argsort(-scores, axis=2, kind="stable")
        best_first[:, :, g] = np.take_along_axis(scores, order, axis=2)
        negative = member & ~rows.positive
        sorted_negative = np.take_along_axis(np.broadcast_to(negative[:, None], order.shape), order, axis=2)
        n_negative = np.maximum(negative.sum(axis=1), 1)[:, None, None]
        rates[:, :, g, 1:] = np.cumsum(sorted_negative, axis=2) / n_negative
        sizes[:, 0, g] = member.sum(axis=1)
    counts = np.broadcast_to((sizes * COVERAGE).astype(np.intp), (R, K, N_GROUPS)).copy()
    limits = np.broadcast_to(sizes, counts.shape)
    r, k = np.ogrid[:R, :K]
    for _ in range(GREEDY_MOVES):
        now = np.take_along_axis(rates, counts[..., None], axis=3)[..., 0]
        lowest, highest = now.argmin(axis=2), now.argmax(axis=2)
        counts[r, k, lowest] = np.minimum(counts[r, k, lowest] + 1, limits[r, k, lowest])
        counts[r, k, highest] = np.maximum(counts[r, k, highest] - 1, 0)
    return _first_outside(best_first, counts)


def _first_outside(best_first: FloatArray, counts: IntArray) -> FloatArray:
    """The highest score that is not among the `counts` best: the threshold of those."""
    ends = np.full((*best_first.shape[:-1], 1), -np.inf)
    return np.take_along_axis(np.concatenate([best_first, ends], axis=-1), counts[..., None], axis=-1)[..., 0]


def measure(rows: Scored, cuts: FloatArray) -> dict[str, FloatArray]:
    """Accuracy and three readings of "fairness violation" (R, K), in percent, with thresholds (R, K, 4).

    "FPR violation": between the groups with the highest and lowest share of positive decisions among the
    negatives, as the paper says. "FDR violation": likewise, but of wrong decisions among the positive
    decisions; 0 for a group without any. "coverage violation": likewise of the positive decisions.
    """
    r, k = np.ogrid[: cuts.shape[0], : cuts.shape[1]]
    decided = rows.scores > cuts[r[..., None], k[..., None], rows.groups[:, None]]
    wrong = decided & ~rows.positive[:, None]
    rates: dict[str, list[FloatArray]] = {"FPR": [], "FDR": [], "coverage": []}
    for g in range(N_GROUPS):
        member = (rows.groups == g)[:, None]
        n_wrong, n_decided = (wrong & member).sum(axis=2), (decided & member).sum(axis=2)
        n_negative = (member[:, 0] & ~rows.positive).sum(axis=1)[:, None]
        rates["FPR"].append(n_wrong / np.maximum(n_negative, 1))
        rates["FDR"].append(n_wrong / np.maximum(n_decided, 1))
        rates["coverage"].append(n_decided / np.maximum(member.sum(axis=2), 1))
    found = {f"{name} violation": 100.0 * np.ptp(values, axis=0) for name, values in rates.items()}
    return {"accuracy": 100.0 * (decided == rows.positive[:, None]).mean(axis=2), **found}
