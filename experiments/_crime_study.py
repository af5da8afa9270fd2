"""The searches of the crime experiment: settings, the rows of R splits, and the models trained on them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import permutations
from typing import Any

import numpy as np

from experiments._autoencoder import middle_layer
from experiments._crime_measures import CLASSES, MEASURES, N_GROUPS, RULES, all_measures
from experiments._experiment import PERCENT, Options, Prepared, Run, chosen
from experiments._posterior_choice import BY_VALIDATION
from experiments._scaling import standardized
from experiments._searches import (
    Arm,
    BaseWeightsOf,
    Fixed,
    Judge,
    Learned,
    Problem,
    Seen,
    given_weights,
    label_shift,
    paper_samplers,
    rows_of_repeats,
    uniform_weights,
)
from experiments.datasets import Dataset
from experiments.networks import RepeatedNetworks
from moew._util.seeds import generator, integer_seed
from moew.exceptions import InvalidInputError
from moew.models.networks import NetworkSpec
from moew.samplers import GpBucb
from moew.search._evaluate import Evaluator
from moew.types import FloatArray, IntArray

SIZES = ((755, 239), (200, 300), (200, 300))  # large and small communities in training, validation, test
N_BATCHES, BATCH_SIZE = 10, 5
EMBEDDING_DIMS, EMBEDDING_HIDDEN = 4, 10


PARTS = ("training", "validation", "test")
FILE_ORDERS = tuple(", ".join(order) for order in permutations(PARTS))


def file_order(order: str, sizes: Sequence[int]) -> list[IntArray]:
    """Training, validation and test rows as consecutive rows of the file, in one of FILE_ORDERS."""
    size, start, rows = dict(zip(PARTS, sizes, strict=True)), 0, {}
    for part in order.split(", "):
        rows[part] = np.arange(start, start + size[part])
        start += size[part]
    return [rows[part] for part in PARTS]


@dataclass(frozen=True)
class Setting:
    """The settings of one search; `search` is "none" (fixed weights), "paper", "fitted" (GP) or "ours"."""

    study: str = "iid"
    search: str = "paper"
    rule: str = "training accuracy"
    aim: str = "FPR violation"
    radius: float = 1.0
    pi: str = "none"  # "ratio": 0.526 and 2.5; "script": 0.16 and 2.5; "label": p_V(y) / p_T(y)
    features: str = "script"
    splits: str = "random"  # "random", "one" for all repeats, or one of FILE_ORDERS
    wrong_way: bool = False  # minimise accuracy, as the released script does
    choice: str = "validation"  # of a candidate: "validation", BEST_TRIAL or ARGMAX

    @property
    def greater_is_better(self) -> bool:
        """Whether the search maximises what it aims at."""
        return (self.aim == "accuracy") != self.wrong_way

    @property
    def violation(self) -> str:
        """The violation to show beside accuracy."""
        return "FPR violation" if self.aim == "accuracy" else self.aim

    @property
    def fixed(self) -> Setting:
        """The fixed weights to compare with: uniform, or π alone in the shifted study and with π(y)."""
        with_pi = self.study == "shifted" or self.pi == "label"
        return replace(self, search="none", pi=self.pi if with_pi else "none").models

    @property
    def models(self) -> Setting:
        """The setting without what its models do not depend on: with fixed weights, rule, aim and radius."""
        if self.search != "none":
            return self
        return Setting(self.study, "none", pi=self.pi, features=self.features, splits=self.splits)

    @property
    def label(self) -> str:
        """A name for files: the values that differ from the defaults."""
        given = [f"{n}={v}" for n, v in vars(self).items() if v != getattr(Setting(), n)]
        return " ".join(given) or "paper"


class Crime:
    """One study: its rows in R splits, its networks and its embeddings."""

    def __init__(
        self, options: Options, data: Dataset, study: str, splits: str = "random", sizes: Any = SIZES
    ) -> None:
        self.options, self.data, self.study = options, data, study
        if splits in FILE_ORDERS:
            split = [file_order(splits, [sum(part) for part in sizes])] * options.repeats
        else:
            split = [self._split(0 if splits == "one" else r, sizes) for r in range(options.repeats)]
        self.rows = [np.stack([parts[i] for parts in split]) for i in range(3)]  # each (R, m)
        large = data.columns["large"]
        shares = [float(large[rows].mean()) for rows in self.rows[:2]]
        ratios = (shares[1] / shares[0], (1 - shares[1]) / (1 - shares[0]))
        is_large = large[self.rows[0]]
        self.base_weights: dict[str, BaseWeightsOf] = {
            "none": uniform_weights,
            "ratio": given_weights(np.where(is_large, *ratios)),
            "script": given_weights(np.where(is_large, 0.16, 2.5)),
            "label": label_shift,
        }

    def _split(self, number: int, sizes: Sequence[tuple[int, int]]) -> list[IntArray]:
        rng = generator(self.options.seed, f"crime {self.study}", number)
        n = len(self.data.y)
        if self.study == "iid":
            return np.split(
                rng.permutation(n)[: sum(map(sum, sizes))], np.cumsum([sum(s) for s in sizes])[:-1]
            )
        large = self.data.columns["large"]
        of_size = [rng.permutation(np.flatnonzero(large)), rng.permutation(np.flatnonzero(~large))]
        ends = np.cumsum([(0, 0), *sizes], axis=0)
        if any(len(rows) < needed for rows, needed in zip(of_size, ends[-1], strict=True)):
            raise InvalidInputError(
                f"the shifted study needs {ends[-1, 0]} large and {ends[-1, 1]} small communities, "
                f"got {len(of_size[0])} and {len(of_size[1])}."
            )
        return [
            np.concatenate([of_size[s][ends[i, s] : ends[i + 1, s]] for s in (0, 1)])
            for i in range(len(sizes))
        ]

    @cached_property
    def problem(self) -> Problem:
        """Linear classifiers, and the training, validation and test rows."""
        o, rows = self.options, self.rows[0]
        X, Y = self.data.X[rows], self.data.y[rows][..., None].astype(np.float32)
        spec = NetworkSpec((X.shape[2], 1), "sigmoid", "hinge", o.steps, 100, precision=o.precision)
        seed = integer_seed(o.seed, f"crime {self.study} linear")
        networks = RepeatedNetworks(spec, X, Y, o.repeats, seed, device=o.device)
        group = self.data.columns["group"]
        parts = [
            rows_of_repeats(
                networks.place(self.data.X[part]), self.data.y[part], o.repeats, group=group[part]
            )
            for part in self.rows
        ]
        return Problem.of(networks, CLASSES, *parts)

    @property
    def our_embedding(self) -> FloatArray:
        """Our embedding (R, n, 8), of what the metric depends on: standardised flags of group × label."""
        rows = self.rows[0]
        return standardized(np.eye(2 * N_GROUPS)[2 * self.data.columns["group"][rows] + self.data.y[rows]])

    @cached_property
    def raw_embedding(self) -> FloatArray:
        """The middle layer (R, n, 4) of an autoencoder of features and label, not scaled."""
        features, labels = self.data.X[self.rows[0]], self.data.y[self.rows[0]][..., None]
        xy = np.concatenate([features, labels], axis=2).astype(np.float32)
        o, label = self.options, xy.shape[2] - 1
        seed = integer_seed(o.seed, f"crime {self.study} autoencoder")
        return middle_layer(
            xy, EMBEDDING_HIDDEN, EMBEDDING_DIMS, (label,), n_repeats=o.repeats, seed=seed, options=o
        )

    def arm(self, setting: Setting, fixed: Seen | None) -> Arm:
        """The arm of a setting; the noise of the paper's GP is that of the models with fixed weights."""
        base_weights = self.base_weights[setting.pi]
        if fixed is None:
            return Fixed(base_weights)
        seed = integer_seed(self.options.seed, f"crime {setting.label}")
        samplers: Any = GpBucb()
        if setting.search == "paper":
            samplers = paper_samplers(aimed_at(fixed, setting))
        elif setting.search == "fitted":
            samplers = GpBucb(width="fit", noise=0.1, targets="raw")
        Z = self.our_embedding if setting.search == "ours" else self.raw_embedding
        return Learned(Z, setting.radius, samplers, seed, base_weights)


def judge_of(setting: Setting) -> Judge:
    """The judge for what the setting aims at; all other measures are recorded, too."""
    evaluator = Evaluator(MEASURES[setting.aim], RULES[setting.rule], CLASSES)
    return Judge(evaluator, all_measures, setting.wrong_way)


def aimed_at(seen: Seen, setting: Setting) -> Seen:
    """The same models, with the setting's aim as their validation score."""
    values = seen.scores[f"{setting.rule}: validation {setting.aim}"]
    return Seen(seen.alphas, {**seen.scores, "validation": values})


class Searches:
    """The models of all settings: trained when first needed, or read from the folder."""

    def __init__(
        self,
        this: Run,
        data: Mapping[str, Dataset],
        sizes: Any = SIZES,
        n_batches: int = N_BATCHES,
        chosen_later: Collection[Setting] = (),
    ):
        """`chosen_later` are the settings whose search also chooses by posterior mean."""
        self.this, self.data, self.sizes, self.n_batches = this, data, sizes, n_batches
        self.chosen_later = chosen_later
        self._studies: dict[Any, Crime] = {}
        self._seen: dict[Any, Seen] = {}

    def of(self, setting: Setting, repeats: int) -> Seen:
        """The setting's models in the first `repeats` repeats."""
        setting = setting.models
        for (known, n), seen in self._seen.items():
            if known == setting and n >= repeats:
                return seen.first(repeats)
        if setting.choice != "validation":
            return self._by_posterior_mean(setting, repeats)
        found = self._seen[setting, repeats] = self.this.search(
            f"{setting.label} repeats={repeats}",
            partial(self._prepared, setting, repeats),
            n_batches=self.n_batches,
            batch_size=BATCH_SIZE,
            keep_embedding=setting in self.chosen_later,
        )
        return found

    def _by_posterior_mean(self, setting: Setting, repeats: int) -> Seen:
        """What the setting's search chooses by the posterior mean of its Gaussian process."""
        search = replace(setting, choice="validation")
        both = self.this.posterior_choice(
            f"{search.label} repeats={repeats}",
            partial(self._prepared, search, repeats),
            self.of(search, repeats),
            n_batches=self.n_batches,
        )
        for choice, seen in both.items():
            self._seen[replace(setting, choice=choice), repeats] = seen
        return both[setting.choice]

    def _prepared(self, setting: Setting, repeats: int) -> Prepared:
        fixed = None if setting.search == "none" else self.of(setting.fixed, repeats)
        key = (setting.study, setting.features, setting.splits, repeats)
        if key not in self._studies:
            options = replace(self.this.options, repeats=repeats)
            self._studies[key] = Crime(
                options, self.data[setting.features], setting.study, setting.splits, self.sizes
            )
        study = self._studies[key]
        return Prepared(study.problem, study.arm(setting, fixed), judge_of(setting))

    def result(self, setting: Setting, repeats: int, aim: Setting | None = None) -> dict[str, FloatArray]:
        """Validation score, test accuracy and violation (R,), in percent, of the model chosen for `aim`
        (None: the setting itself)."""
        aim = setting if aim is None else aim
        picks = chosen(aimed_at(self.of(setting, repeats), aim), aim.greater_is_better, unit=PERCENT)
        names = {"accuracy": "accuracy", "violation": aim.violation}
        shown = {name: picks[f"{aim.rule}: test {kind}"] for name, kind in names.items()}
        if setting.choice != "validation":
            beside = {f"{name}{BY_VALIDATION}": kind for name, kind in names.items()}
            shown |= {name: picks[f"{aim.rule}: test {kind}{BY_VALIDATION}"] for name, kind in beside.items()}
        return {"validation": picks["validation"], **shown}
