"""The strategies, from the simplest to example weights: which trainings each proposes, and how it chooses
among them on some rows. `STRATEGIES` lists them for all places: the selection rule, the result, `compare`,
the report and the command line."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_expit
from scipy.stats import chi2_contingency

from moew._util.seeds import integer_seed
from moew.data import LabelledRows
from moew.embedding import DirectionsEmbedding, LabelEmbedding
from moew.exceptions import Argument, InvalidInputError, MoewWarning
from moew.samplers import Ball, BallAndBox, Box, Halving, resolve_sampler
from moew.search._choices import Choice, Chooser, Part
from moew.search._loop import Search, n_in_share
from moew.search._prepare import Prepared, fit_weighting, given_by_weight, make_study
from moew.types import FloatArray, SamplerOfPoints, Task, Weighting
from moew.weighting import (
    BaseWeightsEstimator,
    CovariateShift,
    ExampleWeighting,
    JointShift,
    LabelShift,
    PowersOfTarget,
    RandomWeighting,
    UniformBaseWeights,
)

AND_TUNED = ", tuned"
SAME = 1e-9  # weights with a smaller relative difference count as the same
BY_LABEL, BY_FEATURES, BY_BOTH = (f"importance weights by {what}" for what in ("label", "features", "both"))
_NO_CHANCE = 0.05  # the p-value of a difference beyond chance; see moew/_util/margins.py
_RADIUS = 4.0  # two classes' weights up to a ratio of e⁴ = 55; powers of the target up to ±4
_NOTHING = 0.1  # so small an alpha is all but the unweighted model: weights differ by some percent
_SMOOTHING = 0.5  # rows that are added to each class of the validation rows, as in LabelShift
_FIRST = 5  # random hyper-parameters, before TPE proposes

Choose = Callable[[Part], Choice | None]
"""(rows to choose on) → what is chosen, or None if the strategy does not exist there."""

Share = tuple[float, float]
"""The part of the candidates of a fit that a search has, from where to where."""
ALL_CANDIDATES, NO_SHARE = (0.0, 1.0), (0.0, 0.0)

Candidates = Mapping[str, Sequence[int]]
"""The numbers of the candidates that were trained for each strategy."""


@dataclass(frozen=True)
class Variant:
    """A strategy in one search, its decisions tuned or not: its name, and how it chooses on some rows."""

    name: str
    simple: bool
    choose: Choose


class Strategy:
    """A method to get to a model that is good by the metric.

    A subclass, and a place in `STRATEGIES`, add one. What it proposes is trained in the same folds as all
    candidates; what it chooses is evaluated as what the others choose.
    """

    name: ClassVar[str]
    called: ClassVar[str | None] = None  # in a sentence, where that is not its name; a singular then
    simple: ClassVar[bool] = True  # whether no α is searched for it
    share: ClassVar[float] = 0.0  # of the candidates of a fit
    task: ClassVar[Task | None] = None  # that it is for; None: for both
    can_be_tuned: ClassVar[bool] = True  # whether it also stands there with tuned decisions
    begins_with: ClassVar[str | None] = None  # the strategy whose candidates it may take as well

    def is_for(self, prepared: Prepared) -> bool:
        """Whether it exists for these rows and settings."""
        return self.task in (None, prepared.data.task)

    def searches(self, prepared: Prepared, share: Share, alone: bool = False) -> list[Search]:
        """The searches for its trainings, with its share of the candidates; one with `NO_SHARE` is a fixed
        list of one, that of α = 0. `alone`, in a comparison, it is one that begins with the unweighted
        model."""
        return []

    def fixed(self, prepared: Prepared) -> tuple[FloatArray, str] | None:
        """The weights (K, n) of a fixed list of trainings, for a comparison, and a note about them."""
        return None

    def chooser(self, chooser: Chooser, candidates: Candidates) -> Choose | None:
        """How it chooses on some rows: the best of its candidates and of those it begins with."""
        own = candidates.get(self.name, ())
        if not own:
            return None
        others = candidates.get(self.begins_with, ()) if self.begins_with else ()
        return partial(chooser.best, [*others, *own])


def search_of(
    prepared: Prepared,
    strategy: Strategy,
    weighting: Weighting,
    share: Share,
    *,
    name: str | None = None,
    optional: bool = True,
    **changes: Any,
) -> Search:
    """A search for a strategy, with the parts of the fit; its study has the name and seed of the settings, or
    of its own `name`. `changes` are arguments of `WeightStudy` that differ from the settings."""
    if name is not None:
        of = f"{prepared.settings.study_name}: {name}"
        changes = {"name": of, "seed": integer_seed(prepared.seed, name), **changes}
    study, evaluator = make_study(prepared, weighting, **changes), prepared.evaluator
    parts = (study, prepared.data, prepared.trainer, weighting, evaluator, share, optional)
    return Search(*parts, strategy=strategy.name, name=name or strategy.name)


def ball_search(
    prepared: Prepared,
    strategy: Strategy,
    weighting: Weighting,
    share: Share = NO_SHARE,
    *,
    radius: float = 1.0,
    name: str | None = None,
    alone: bool = False,
) -> Search:
    """A search of weights in a ball: on a line candidates are spread evenly, elsewhere by GP-BUCB."""
    on_a_line = weighting.n_dims == 1
    return search_of(
        prepared,
        strategy,
        weighting,
        share,
        name=name or strategy.name,
        optional=not alone,
        domain=Ball(weighting.n_dims, radius),
        sampler=Halving() if on_a_line else "gp_bucb",
        alpha_zero_repeats=int(alone or share == NO_SHARE),
        n_initial=0 if on_a_line else max(4, round(share[1] * prepared.settings.batch_size)),
    )


def with_tuned_decisions(chooser: Chooser, choose: Choose) -> Choose:
    """The same choice with its decisions tuned."""

    def chosen(rows: Part) -> Choice | None:
        choice = choose(rows)
        return None if choice is None else chooser.tuned(choice)

    return chosen


def zero_is_unweighted(prepared: Prepared, weighting: Weighting) -> bool:
    """Whether the weights at α = 0 are the user's own: π = 1."""
    own = prepared.data.training.own_weights
    at_zero = weighting.training_weights(np.zeros((1, weighting.n_dims)))[0]
    return bool(np.allclose(at_zero, own, rtol=SAME, atol=0))


class Unweighted(Strategy):
    """One training with the user's own weights; in a fit only where α = 0 is not the unweighted model."""

    name = "unweighted"
    called = "the unweighted model"
    can_be_tuned = False  # a strategy of its own, behind the constant prediction

    def searches(self, prepared: Prepared, share: Share, alone: bool = False) -> list[Search]:
        return [ball_search(prepared, self, OwnWeights(prepared))]

    def fixed(self, prepared: Prepared) -> tuple[FloatArray, str] | None:
        return np.ones((1, len(prepared.data.training))), ""

    def chooser(self, chooser: Chooser, candidates: Candidates) -> Choose | None:
        own = candidates.get(self.name, ())
        return partial(chooser.single, own[0]) if own else None


class TunedDecisions(Strategy):
    """The same model, with its decisions tuned for the metric; no training of its own."""

    name = "tuned decisions"
    can_be_tuned = False

    def chooser(self, chooser: Chooser, candidates: Candidates) -> Choose | None:
        own = candidates.get(Unweighted.name, ())
        return with_tuned_decisions(chooser, partial(chooser.single, own[0])) if own else None


class ConstantPrediction(Strategy):
    """No training: the best class, or the best quantile of a target, for every row."""

    name = "constant prediction"
    called = "a constant"
    can_be_tuned = False

    def chooser(self, chooser: Chooser, candidates: Candidates) -> Choose:
        return chooser.constant


@dataclass(frozen=True)
class OwnWeights:
    """The user's own weights for every candidate, whatever α (K, n_dims) is."""

    prepared: Prepared
    n_dims: int = 1

    def training_weights(self, alphas: FloatArray) -> FloatArray:
        """The user's weights (K, n)."""
        return np.tile(self.prepared.data.training.own_weights, (len(alphas), 1))

    def weight_function(self, alpha: FloatArray) -> Any:
        """Weights of one for any rows."""
        return unweighted_function(self.prepared)


def unweighted_function(prepared: Prepared) -> Any:
    """A weight function that gives any rows the weight one."""
    training = prepared.data.training
    weighting = ExampleWeighting(LabelEmbedding(), UniformBaseWeights())
    weighting.fit(None, training.y, task=prepared.data.task, sample_weight=training.sample_weight)
    return weighting.weight_function(np.zeros(weighting.n_dims))


class ImportanceWeights(Strategy):
    """Up to three trainings, one for each shift that the validation rows are seen to have; in a comparison
    all ratios that can be estimated."""

    name = "importance weights"
    can_be_tuned = False
    begins_with = Unweighted.name

    def searches(self, prepared: Prepared, share: Share, alone: bool = False) -> list[Search]:
        return [
            ball_search(prepared, self, weighting, name=name)
            for name, weighting in importance_weightings(prepared).items()
            if _is_seen(prepared, name, weighting)
        ]

    def fixed(self, prepared: Prepared) -> tuple[FloatArray, str] | None:
        found = importance_weightings(prepared)
        if not found:
            no_shift = (
                "a shift of these rows is not estimated"
                if prepared.data.given_validation
                else "no validation rows were given, so there is no shift to weight for"
            )
            return np.ones((1, len(prepared.data.training))), f"{no_shift}: unweighted."
        ratios = np.stack([weighting.pi_ for weighting in found.values()])
        by = ", ".join(name.removeprefix(f"{self.name} by ") for name in found)
        return ratios / ratios.mean(axis=1, keepdims=True), f"the best by {by}."


def importance_weightings(prepared: Prepared) -> dict[str, ExampleWeighting]:
    """Weightings whose weights at α = 0 are a density ratio of validation to training rows: by label, by
    features, and by both; without those that cannot be estimated."""
    if not prepared.data.given_validation:
        return {}
    training, given, task = prepared.data.training, given_by_weight(prepared), prepared.data.task
    seed = integer_seed(prepared.seed, "importance")
    shifts: dict[str, BaseWeightsEstimator] = {BY_LABEL: LabelShift()}
    if not hasattr(training.X, "tocsr"):
        shifts[BY_FEATURES] = CovariateShift(random_state=seed)
        shifts[BY_BOTH] = JointShift(random_state=seed)
    found = {}
    for name, shift in shifts.items():
        # Columns and labels may be such that a ratio cannot be estimated, or there are too few rows.
        with contextlib.suppress(InvalidInputError), warnings.catch_warnings():
            warnings.simplefilter("ignore", MoewWarning)  # of classes that the validation rows lack
            found[name] = ExampleWeighting(LabelEmbedding(), shift).fit(
                training.X, training.y, given.X, given.y, task=task, sample_weight=training.sample_weight
            )
    return found


def _is_seen(prepared: Prepared, name: str, weighting: ExampleWeighting) -> bool:
    """Whether the density ratio differs from one beyond chance; shares of classes always differ a little."""
    if np.ptp(weighting.pi_) <= SAME:
        return False
    if name != BY_LABEL or prepared.data.task == "regression":
        return True  # the estimate is one where no shift is seen
    labels = [prepared.data.training.y, given_by_weight(prepared).y]
    counts = [[np.count_nonzero(y == label) for label in np.unique(labels[0])] for y in labels]
    return bool(chi2_contingency(counts).pvalue < _NO_CHANCE)


class ClassWeights(Strategy):
    """A search in as many dimensions as classes less one; equal weights are the unweighted model."""

    name = "class weights"
    share = 0.2
    task = "classification"
    begins_with = Unweighted.name

    def searches(self, prepared: Prepared, share: Share, alone: bool = False) -> list[Search]:
        training = prepared.data.training
        weighting = ExampleWeighting(DirectionsEmbedding(), UniformBaseWeights())
        weighting.fit(None, training.y, task=prepared.data.task, sample_weight=training.sample_weight)
        search = ball_search(prepared, self, weighting, share, radius=_RADIUS, alone=alone)
        search.study.suggest(search.study.alpha_zero_repeats, first_class_weights(prepared, weighting))
        return [search]


class PowersOfTheTarget(Strategy):
    """A search on a line, for regressors; the power 0 is the unweighted model."""

    name = "powers of the target"
    share = 0.2
    task = "regression"
    begins_with = Unweighted.name

    def searches(self, prepared: Prepared, share: Share, alone: bool = False) -> list[Search]:
        training = prepared.data.training
        weighting = PowersOfTarget(training.y, training.sample_weight)
        return [ball_search(prepared, self, weighting, share, radius=_RADIUS, alone=alone)]


def first_class_weights(prepared: Prepared, weighting: ExampleWeighting) -> FloatArray:
    """The alphas (k, d) that a search of class weights begins with: balanced weights, their square root, and
    the label shift where validation rows were given; without those that are all but another or no weights."""
    classes, data = prepared.evaluator.classes, prepared.data
    assert classes is not None
    trained = _shares(data.training, classes)
    found: list[FloatArray] = []
    if not (trained > 0).all():  # a class whose training rows have no weight cannot be balanced
        return np.empty((0, weighting.n_dims))
    wanted = [1 / trained, 1 / np.sqrt(trained)]
    if data.given_validation and np.isin(data.given.y, classes).all():
        wanted.append(_shares(data.given, classes, _SMOOTHING) / trained)
    for weights in wanted:
        alpha = _alpha(weighting, classes, weights)
        if alpha is not None and all(np.abs(alpha - other).max() >= _NOTHING for other in found):
            found.append(alpha)
    return np.concatenate([np.empty((0, weighting.n_dims)), *found])


def _shares(rows: LabelledRows, classes: Any, more: float = 0.0) -> FloatArray:
    """The share (C,) of each class of the rows, by the user's weights, with so many rows more of each."""
    own = rows.own_weights / rows.own_weights.mean()
    counts = np.array([own[rows.y == label].sum() for label in classes]) + more
    return np.asarray(counts / counts.sum())


def _alpha(weighting: ExampleWeighting, classes: Any, weights: FloatArray) -> FloatArray | None:
    """The alpha (1, d) whose weights σ(zᵀα) of the classes (C,) have the ratios of `weights` (C,)."""
    log_ratio = np.log(np.maximum(weights / weights.max(), 1e-12))
    with np.errstate(divide="ignore"):
        log_rest = np.log1p(-np.exp(log_ratio))

    def products(top: float) -> FloatArray:
        """zᵀα (C,) = logit(σ(top)·ratio) of the classes, if that of the heaviest is `top`."""
        return np.asarray(log_ratio + log_expit(top) - np.logaddexp(log_rest, log_ratio + log_expit(-top)))

    # They add up to 0 over the classes, which says what the heaviest has.
    top = brentq(lambda top: products(top).sum(), -1.0, 30.0 * len(weights))
    Z = weighting.embedding.transform(None, classes)
    alpha = np.linalg.lstsq(Z, products(top), rcond=None)[0]
    return None if np.abs(alpha).max() < _NOTHING else np.asarray(alpha[None])


class HyperParameters(Strategy):
    """A search in the user's search space."""

    name = "hyper-parameters"
    share = 0.2
    begins_with = Unweighted.name

    def is_for(self, prepared: Prepared) -> bool:
        return prepared.space is not None

    def searches(self, prepared: Prepared, share: Share, alone: bool = False) -> list[Search]:
        from moew.search._optuna import Tpe  # loads Optuna

        space = prepared.space
        assert space is not None
        search = search_of(
            prepared,
            self,
            OwnWeights(prepared, n_dims=0),
            share,
            name=self.name,
            domain=Box(space.n_dims, space.half_width),
            space=space,
            sampler=Tpe(space),
            alpha_zero_repeats=int(alone),
            n_initial=max(_FIRST, round((share[1] - share[0]) * prepared.settings.batch_size)),
        )
        return [search]


@dataclass(frozen=True)
class WeightSettings:
    """The settings of `ExampleWeights`, as `SearchSettings` has them, too."""

    embedding: Any = "directions"
    base_weights: Any = "label_shift"
    sampler: Any = "gp_bucb"
    radius: float | None = None
    batch_size: int = 10
    final: Literal["ensemble", "smoothed", "best"] = "ensemble"
    alpha_zero_repeats: int = 1
    stop_when: float | None = None


@dataclass(frozen=True)
class ExampleWeights(WeightSettings, Strategy):
    """The search for α, with hyper-parameters where there is a search space; it may choose among the
    candidates of all strategies, and average several of them.

    Parameters
    ----------
    embedding : "directions", "autoencoder", "label", "discriminative", columns, transformer, function or \
Embedding
        z(x, y), the low-dimensional coordinates that the weights depend on. "directions" are the label, the
        metric's columns, a linear discriminant and principal components. Columns are a list such as
        ["age", "cost"], or "columns=age,cost", of columns of X or of `columns`.
    base_weights : "label_shift", "covariate_shift", "uniform", function or BaseWeights
        π, the weights at α = 0. If no validation rows are given there is no shift to estimate, and π = 1.
    sampler : "gp_bucb", "random" or Sampler
        Where the next candidates come from.
    radius : float or None, default None
        Radius R of the ball that α is searched in; None is the default, 4, which a benchmark chose.
    batch_size : int, default 10
        K, the number of candidates that are proposed and trained at a time.
    final : "ensemble", "smoothed" or "best", default "ensemble"
        What becomes of the candidates: up to five models whose predictions are averaged (Caruana's greedy
        selection); the single candidate with the best posterior mean of the sampler's Gaussian process, which
        looks at its neighbours, too (the paper's source has it for small validation sets); or the single
        best, as in the paper.
    alpha_zero_repeats : int, default 1
        How many α = 0 models are trained first; from two or more the search learns the metric's noise.
    stop_when : float or None, default None
        A gain in the metric's units, such as 0.002: the search for example weights stops after a batch if the
        upper confidence bound over the ball is less than this above the best value so far, or if the
        prediction interval is narrower than this everywhere. The first `batch_size` candidates, which are
        random, do not stop it. Simpler strategies still get their share.
        `result_.stopped` says why, and how many trainings were saved. Needs a sampler with a model, as
        "gp_bucb" is. None trains all candidates.
    """

    name = "example weights"
    simple = False

    def searches(self, prepared: Prepared, share: Share, alone: bool = False) -> list[Search]:
        settings, space, weighting = prepared.settings, prepared.space, fit_weighting(prepared)
        ball = Ball(weighting.n_dims, settings.ball_radius)
        changes: dict[str, Any] = {"domain": ball}
        if space is not None:
            changes = {"domain": BallAndBox(ball, Box(space.n_dims, space.half_width)), "space": space}
        sampler = resolve_sampler(settings.sampler)
        if isinstance(sampler, SamplerOfPoints):  # it is told how many candidates it has
            sampler = sampler.for_budget(changes["domain"], n_in_share(share, settings.n_candidates))
            changes["n_initial"] = 0
        search = search_of(prepared, self, weighting, share, optional=False, **changes, sampler=sampler)
        return [replace(search, stop_when=settings.stop_when)]


class RandomWeights(Strategy):
    """As many models with random weights as a search has candidates: what trying many brings by itself."""

    name = "random weights"
    can_be_tuned = False

    def searches(self, prepared: Prepared, share: Share, alone: bool = False) -> list[Search]:
        rows = prepared.data.training
        weighting = RandomWeighting(len(rows), rows.sample_weight, prepared.seed)
        return [search_of(prepared, self, weighting, share, optional=False)]


_EXAMPLE_WEIGHTS, _UNWEIGHTED = ExampleWeights(), Unweighted()
STRATEGIES: tuple[Strategy, ...] = (
    _UNWEIGHTED,
    ConstantPrediction(),
    TunedDecisions(),
    ImportanceWeights(),
    ClassWeights(),
    PowersOfTheTarget(),
    HyperParameters(),
    _EXAMPLE_WEIGHTS,
)
"""In the order of their simplicity."""
COMPARED: tuple[Strategy, ...] = (*STRATEGIES[:-1], RandomWeights())
"""Those that `compare` sets beside the whole search."""

UNWEIGHTED, CONSTANT, TUNED = Unweighted.name, ConstantPrediction.name, TunedDecisions.name
IMPORTANCE, CLASS_WEIGHTS, POWERS = ImportanceWeights.name, ClassWeights.name, PowersOfTheTarget.name
WEIGHTS, RANDOM = ExampleWeights.name, RandomWeights.name


def strategy_names() -> tuple[str, ...]:
    """The names of all strategies of a fit, the simplest first."""
    return tuple(strategy.name for strategy in STRATEGIES)


def resolve_strategies(given: Any) -> tuple[Literal["auto"] | tuple[str, ...], ExampleWeights]:
    """The names of the strategies that a user asks for, "auto" for all, and the settings of example weights.

    `given` is "auto", or a list of names and of `ExampleWeights(…)`, in which "auto" stands for all.
    """
    asked = [given] if isinstance(given, str | ExampleWeights) else given
    known, found, weights = strategy_names(), set(), _EXAMPLE_WEIGHTS
    if not isinstance(asked, list | tuple) or not asked:
        raise _no_strategies(given)
    for one in asked:
        if isinstance(one, ExampleWeights):
            if weights is not _EXAMPLE_WEIGHTS:
                raise _no_strategies(given)
            weights = one
            found.add(one.name)
        elif isinstance(one, str) and one in (*known, "auto"):
            found |= set(known) if one == "auto" else {one}
        else:
            raise _no_strategies(one)
    if WEIGHTS not in found:
        raise InvalidInputError(
            Argument("strategies"),
            f" must hold {WEIGHTS!r}, which the others are compared with; `moew.compare` shows each alone.",
        )
    return "auto" if found == set(known) else tuple(name for name in known if name in found), weights


def _no_strategies(given: Any) -> InvalidInputError:
    return InvalidInputError(
        Argument("strategies"),
        " must be 'auto', or a list of one ExampleWeights(…) and of names among "
        f"{', '.join(map(repr, ('auto', *strategy_names())))}; got {given!r}.",
    )


def called(name: str) -> str:
    """A strategy, tuned or not, as a sentence calls it."""
    base = name.removesuffix(AND_TUNED)
    known = next((strategy for strategy in STRATEGIES if strategy.name == base), None)
    words = base if known is None else known.called or base
    return words if base == name else f"{words} and tuned decisions"


def is_singular(name: str) -> bool:
    """Whether a sentence calls it by a singular."""
    return any(strategy.name == name and strategy.called for strategy in STRATEGIES)


def list_searches(prepared: Prepared) -> dict[str, Search]:
    """The searches of a fit, which run side by side, that of example weights first.

    The strategies that are asked for propose trainings, each with its share of the candidates. The unweighted
    model is always trained: where α = 0 is not it, by a search of its own.
    """
    begin, beside = 0.0, []
    for strategy in STRATEGIES[1:-1]:
        if strategy.name in prepared.settings.strategy_names and strategy.is_for(prepared):
            beside.append((strategy, (begin, begin + strategy.share)))
            begin += strategy.share
    found = _EXAMPLE_WEIGHTS.searches(prepared, (begin, 1.0))
    if not zero_is_unweighted(prepared, found[0].weighting):
        found += _UNWEIGHTED.searches(prepared, NO_SHARE)
    for strategy, share in beside:
        found += strategy.searches(prepared, share)
    return {search.name: search for search in found}


def list_variants(
    chooser: Chooser,
    candidates: Candidates,
    asked: Sequence[str],
    averages: bool,
    smoothed: Choose | None = None,
) -> list[Variant]:
    """Those of the strategies `asked` for that exist for a search, and the unweighted model, tuned and not,
    the simplest first.

    `candidates` are the numbers of the candidates of each strategy, one for the unweighted model or none if
    it failed. Example weights may take all candidates, and average several of them if `averages`; or they
    choose as `smoothed` does.
    """
    variants: list[Variant] = []
    for strategy in STRATEGIES:
        if strategy is not _UNWEIGHTED and strategy.name not in asked:
            continue
        if strategy is _EXAMPLE_WEIGHTS:
            everything = [k for one in STRATEGIES for k in candidates.get(one.name, ())]
            found: Choose | None = smoothed or partial(
                chooser.ensemble if averages else chooser.best, everything
            )
        else:
            found = strategy.chooser(chooser, candidates)
        if found is None:
            continue
        choose = lru_cache(maxsize=1)(found)  # the tuned variant needs the last choice again
        variants.append(Variant(strategy.name, strategy.simple, choose))
        # The single best is as in the paper: its own decisions.
        if strategy.can_be_tuned and (averages or strategy.simple):
            tuned = with_tuned_decisions(chooser, choose)
            variants.append(Variant(strategy.name + AND_TUNED, strategy.simple, tuned))
    return variants
