"""Spam blocking: value saved per harm done, under two shifts (the paper's table of spam).

The paper's data are not public. The stand-in is 30,000 credit card clients. Blocking one who defaults saves
BILL_AMT1, blocking one who does not does LIMIT_BAL of harm, and those with LIMIT_BAL above 140,000 are the
"large providers". The threshold blocks 5 % of the validation rows. Study 1: 25 % positives in training, 5 %
in validation and test. Study 2: 50 % large in training, 20 % in validation and test. That leaves 10,000
training, 6,000 validation and 6,000 test rows, drawn again in each repeat (the paper: 180k, 10k, 30k).

"Shimodaira" weights by the known shares: of the label in study 1, of the size in study 2. The paper's MOEW
has π(y) = p_V(y) / p_T(y) in both. Money enters as its logarithm, and columns are scaled. Ours has as π
what one would weight by without any search, the money at stake (also a row of its own: "money as weight"),
and instead of the autoencoder three columns that the metric depends on. On halves of the validation rows
(`python -m benchmarks.paper_settings spam`) the score in study 1 was 0.29 with uniform weights, 0.32 with
money, 0.34 with those columns, and 0.35 with both.

TRAINING was fixed beforehand, with uniform weights and validation rows only:
`python -c "from experiments import spam; print(spam.choose_settings())"`. It is also what the paper says of
all its classifiers (hinge loss, rate 0.001). With that loss Shimodaira's weights harm in study 1: with 5 %
positives nearly all outputs settle at −1, where the negatives have no loss, and their order means little.
With logistic loss those weights neither harm nor help.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from experiments import _normalised as normalised
from experiments._experiment import PAPER_ARM, Options, Prepared, Run, chosen
from experiments._scaling import like, standardized
from experiments._searches import (
    Arm,
    Fixed,
    Judge,
    Learned,
    Problem,
    Seen,
    given_weights,
    label_shift,
    paper_samplers,
    rows_of_repeats,
)
from experiments._stand_ins import (
    BATCH_SIZE,
    CLASSES,
    N_BATCHES,
    PAPER_RADIUS,
    SECOND_RADIUS,
    Training,
    best_setting,
    classifiers,
    embedding,
    signed_log,
    uniform_values,
)
from experiments.datasets import Dataset, load_credit_default
from moew._util.seeds import generator, integer_seed
from moew.decision import ShareSelected
from moew.metrics import value_per_harm
from moew.samplers import GpBucb
from moew.search._evaluate import Evaluator
from moew.types import BoolArray, FloatArray, IntArray

SIZES = (10_000, 6_000, 6_000)  # training, validation, test
BLOCKED = 0.05
SHARES = {1: (0.25, 0.05), 2: (0.50, 0.20)}  # of positives or of large providers: training, and the others
TRAINING = Training("hinge", 0.001)
JUDGE = Judge(Evaluator(value_per_harm(), ShareSelected(BLOCKED, on="validation"), CLASSES))
OUR_RADIUS = 1.0  # `python -m benchmarks.paper_settings spam`
SECOND = "moew, GP-BUCB, R = 1"
MONEY = "money as weight"
ARMS = ("uniform", "Shimodaira", MONEY, PAPER_ARM, "moew", SECOND)
_MOEW = ((1.849, 0.133), (8.057, 0.923))
PAPER = {
    1: {"Shimodaira": (1.210, 0.063), PAPER_ARM: _MOEW[0], "moew": _MOEW[0]},
    2: {"Shimodaira": (1.010, 0.137), PAPER_ARM: _MOEW[1], "moew": _MOEW[1]},
}


class Part(NamedTuple):
    """Training, validation or test rows of all repeats: scaled X (R, n, D); labels, value and harm (R, n)."""

    X: FloatArray
    y: FloatArray
    value: FloatArray
    harm: FloatArray


def draw_split(
    rng: np.random.Generator, marked: BoolArray, shares: tuple[float, float], sizes: tuple[int, int, int]
) -> list[IntArray]:
    """Disjoint training, validation and test rows with the given shares of marked rows."""
    pools = [rng.permutation(np.flatnonzero(kind)) for kind in (marked, ~marked)]
    parts = []
    for size, share in zip(sizes, (shares[0], shares[1], shares[1]), strict=True):
        counts = (round(share * size), size - round(share * size))
        parts.append(np.concatenate([pool[:count] for pool, count in zip(pools, counts, strict=True)]))
        pools = [pool[count:] for pool, count in zip(pools, counts, strict=True)]
    return parts


def metric_columns(part: Part) -> FloatArray:
    """Our embedding (R, n, 3), of what the metric depends on: the label, ±1; the logarithm of the value for a
    positive, that of the harm for a negative, standardised and clipped at ±2."""
    money = standardized(signed_log(np.stack([part.value, part.harm], axis=2))).clip(-2, 2)
    return np.stack([2 * part.y - 1, part.y * money[..., 0], (1 - part.y) * money[..., 1]], axis=2)


class Spam:
    """The rows of one study in all repeats, and the searches on them."""

    def __init__(
        self, options: Options, data: Dataset, study: int, sizes: tuple[int, int, int] = SIZES
    ) -> None:
        self.options, self.study = options, study
        marked = data.y == 1 if study == 1 else np.asarray(data.columns["large"], np.bool_)
        splits = [
            draw_split(generator(options.seed, f"spam {study}", r), marked, SHARES[study], sizes)
            for r in range(options.repeats)
        ]
        rows = [np.stack(kind) for kind in zip(*splits, strict=True)]
        X = signed_log(data.X)
        columns = [data.y, data.columns["BILL_AMT1"], data.columns["LIMIT_BAL"]]
        self.train, self.validation, self.test = (
            Part(x, *(column[r] for column in columns))
            for x, r in ((like(X[rows[0]], X[r]), r) for r in rows)
        )
        before, after = SHARES[study]
        self.importance = np.where(marked[rows[0]], after / before, (1 - after) / (1 - before))

    @property
    def money(self) -> FloatArray:
        """The money at stake in each row (R, n), at least 1: what one would weight by without any search."""
        train = self.train
        return np.maximum(np.where(train.y == 1, train.value, train.harm), 1.0)

    def problem(self, n_repeats: int, training: Training = TRAINING) -> Problem:
        """Classifiers of the first `n_repeats` repeats, and their rows."""
        seed = integer_seed(self.options.seed, "spam", self.study)
        X, y = self.train.X[:n_repeats], self.train.y[:n_repeats]
        networks = classifiers(training, X, y.astype(np.float32), n_repeats, seed, self.options)
        validation, test = (
            rows_of_repeats(
                networks.place(part.X[:n_repeats]), part.y, n_repeats, value=part.value, harm=part.harm
            )
            for part in (self.validation, self.test)
        )
        return Problem.of(networks, CLASSES, rows_of_repeats(None, y, n_repeats), validation, test)

    @cached_property
    def embedding(self) -> FloatArray:
        """The paper's embedding (R, n, 3)."""
        o = self.options
        seed = integer_seed(o.seed, "spam embedding", self.study)
        return embedding(self.train.X, self.train.y.astype(np.float32), o.repeats, seed, o)

    def prepared(self, name: str, uniform: Seen | None) -> Prepared:
        """The search of one of ARMS."""
        o = self.options
        problem = self.problem(o.second_repeats if name == SECOND else o.repeats)
        return Prepared(problem, self.arm(name, uniform), JUDGE)

    def arm(self, name: str, uniform: Seen | None) -> Arm:
        """One of ARMS; the noise is that of the `uniform` models, which come first."""
        if name == "Shimodaira":
            return Fixed(given_weights(self.importance))
        if name == MONEY:
            return Fixed(given_weights(self.money))
        if uniform is None:
            return Fixed()
        o = self.options
        seed = integer_seed(o.seed, name, self.study)
        if name == "moew":
            return Learned(metric_columns(self.train), OUR_RADIUS, GpBucb(), seed, given_weights(self.money))
        R = o.second_repeats if name == SECOND else o.repeats
        radius = SECOND_RADIUS if name == SECOND else PAPER_RADIUS
        return Learned(self.embedding[:R], radius, paper_samplers(uniform), seed, label_shift)


def search_all(
    this: Run, data: Dataset, sizes: tuple[int, int, int] = SIZES, n_batches: int = N_BATCHES
) -> dict[tuple[int, str], Seen]:
    """Run every arm of both studies."""
    found: dict[tuple[int, str], Seen] = {}
    for study in SHARES:
        rows = Spam(this.options, data, study, sizes)
        for name in ARMS:
            prepare = partial(rows.prepared, name, found.get((study, "uniform")))
            found[study, name] = this.search(
                f"study {study} {name}", prepare, n_batches=n_batches, batch_size=BATCH_SIZE
            )
    return found


def report(this: Run, found: Mapping[tuple[int, str], Seen]) -> str:
    """The two tables; raw numbers and the figure go to the folder."""
    picks = {key: chosen(seen, greater_is_better=True) for key, seen in found.items()}
    this.write_values([(f"study {study} {name}", values) for (study, name), values in picks.items()])
    tests = {study: {name: picks[study, name]["test"] for name in ARMS} for study in SHARES}
    titles = [f"Study {study}" for study in SHARES]
    both = [normalised.lines(tests[study], PAPER[study]) for study in SHARES]
    normalised.draw(this.folder / "spam.png", titles, both, "test value per harm, uniform = 1")
    return "\n".join(
        normalised.section(
            f"Study {study}, value saved per harm done, uniform = 1", tests[study], PAPER[study]
        )
        for study in SHARES
    )


def choose_settings(repeats: int = 8, steps: int = 10_000, seed: int = 77) -> str:
    """Compare training settings by the mean log validation score of uniform networks in both studies."""
    options, data = Options(repeats, seed, steps=steps), load_credit_default()
    studies = [Spam(options, data, study) for study in SHARES]

    def score(training: Training) -> FloatArray:
        problems = [rows.problem(repeats, training) for rows in studies]
        return np.concatenate([np.log(uniform_values(one, JUDGE.evaluator, 3)) for one in problems])

    return best_setting(score)


def main(options: Options) -> str:
    """Run or continue, and return the tables; figures and raw numbers go to the folder."""
    this = Run("spam", options)
    return this.conclude(report(this, search_all(this, load_credit_default())))
