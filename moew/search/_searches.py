"""The searches of one fit, which run side by side: example weights, and the simple ways that train models."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from moew._util.seeds import integer_seed
from moew.data import SearchData
from moew.embedding import DirectionsEmbedding, LabelEmbedding
from moew.exceptions import InvalidInputError
from moew.samplers import Ball, BallAndBox, Box, Halving, resolve_sampler
from moew.search._loop import Search, Suggestion, n_in_share
from moew.search._prepare import Prepared, make_study
from moew.search._study import WeightStudy
from moew.search._theorem_1 import theorem_class_weights
from moew.search._ways import CLASS_WEIGHTS, IMPORTANCE, PARAMETERS, POWERS, WEIGHTS
from moew.types import FloatArray, SamplerOfPoints, Weighting
from moew.weighting import CovariateShift, ExampleWeighting, PowersOfTarget, UniformBaseWeights

SIMPLE_SHARE = 0.2  # of the candidates, which class weights or powers of the target get
PARAMETERS_SHARE = 0.2  # of the candidates, which hyper-parameters of unweighted models get
FIRST_PARAMETERS = 5  # random ones, before TPE proposes
SAME = 1e-9  # weights with a smaller relative difference count as the same
SIMPLE_RADIUS = 4.0  # two classes' weights up to a ratio of e⁴ = 55, and powers of the target up to ±4


def list_searches(prepared: Prepared, weighting: Weighting) -> dict[str, Search]:
    """The searches by the way that they belong to, that of example weights first.

    Without a guard only the unweighted model is trained besides, if α = 0 is not it. The unweighted model is
    the first candidate of the simple ways' search, or the α = 0 model of the first search.
    """
    settings, data = prepared.settings, prepared.data
    plain = zero_is_unweighted(prepared, weighting)
    simple = SIMPLE_SHARE if settings.guard else 0.0
    rest = simple + (PARAMETERS_SHARE if settings.guard and prepared.space is not None else 0.0)
    searches = {WEIGHTS: _search(prepared, weighting, (rest, 1.0), WEIGHTS, optional=False)}
    if simple or not plain:
        name = simple_name(prepared)
        search = _search(prepared, _simple_weighting(prepared), (0.0, simple), name, zero=not plain)
        holder = searches[WEIGHTS].study if plain else search.study
        searches[name] = _with_suggestion(prepared, search, holder) if simple else search
    if settings.guard and prepared.shifted and _can_estimate_shift(data):
        # Columns may be such that a ratio cannot be estimated, and the model takes them all the same.
        with contextlib.suppress(InvalidInputError):
            searches[IMPORTANCE] = _search(prepared, _importance(prepared), (0.0, 0.0), IMPORTANCE)
    if rest > simple:
        searches[PARAMETERS] = parameters_search(prepared, (simple, rest), zero=False)
    return searches


def simple_search(prepared: Prepared) -> Search:
    """A search of class weights, or of powers of the target, with the whole budget; its first candidate is
    the unweighted model."""
    weighting, name = _simple_weighting(prepared), simple_name(prepared)
    search = _search(prepared, weighting, (0.0, 1.0), name, optional=False)
    return _with_suggestion(prepared, search, search.study)


def _with_suggestion(prepared: Prepared, search: Search, holder: WeightStudy) -> Search:
    """The search of simple weights, with the class weights of Theorem 1 among its candidates where the metric
    has such a form; number 0 of `holder` is the unweighted model."""
    alphas = theorem_class_weights(prepared, search.weighting)
    return search if alphas is None else replace(search, suggestion=Suggestion(holder, 0, alphas))


def simple_name(prepared: Prepared) -> str:
    """The way of simple weights that there is for the task."""
    return CLASS_WEIGHTS if prepared.data.task == "classification" else POWERS


def _can_estimate_shift(data: SearchData) -> bool:
    fewest = min(len(data.training), data.n_given_rows)
    return fewest >= CovariateShift().n_folds and not hasattr(data.training.X, "tocsr")


def parameters_search(
    prepared: Prepared, share: tuple[float, float] = (0.0, 1.0), *, zero: bool = True
) -> Search:
    """A search of the hyper-parameters of unweighted models, whose first candidate has the estimator's own
    if `zero`. A search space in which every model fails does not end the other searches."""
    from moew.search._tpe import Tpe  # loads Optuna

    space = prepared.space
    assert space is not None
    weighting = _Unweighted(prepared)
    study = make_study(
        prepared,
        weighting,
        domain=Box(space.n_dims, space.half_width),
        space=space,
        name=f"{prepared.settings.study_name}: {PARAMETERS}",
        seed=integer_seed(prepared.seed, PARAMETERS),
        sampler=Tpe(space),
        alpha_zero_repeats=int(zero),
        n_initial=max(FIRST_PARAMETERS, round((share[1] - share[0]) * prepared.settings.batch_size)),
    )
    return Search(study, prepared.data, prepared.trainer, weighting, prepared.evaluator, share, optional=True)


def zero_is_unweighted(prepared: Prepared, weighting: Weighting) -> bool:
    """Whether the weights at α = 0 are the user's own: π = 1."""
    own = prepared.data.training.own_weights
    at_zero = weighting.training_weights(np.zeros((1, weighting.n_dims)))[0]
    return bool(np.allclose(at_zero, own, rtol=SAME, atol=0))


def _search(
    prepared: Prepared,
    weighting: Weighting,
    share: tuple[float, float],
    name: str,
    *,
    zero: bool = True,
    optional: bool = True,
) -> Search:
    if name == WEIGHTS:
        study = make_study(prepared, weighting, **_of_weights(prepared, weighting, share))
    else:
        on_a_line = weighting.n_dims == 1
        study = make_study(
            prepared,
            weighting,
            domain=Ball(weighting.n_dims, SIMPLE_RADIUS),
            name=f"{prepared.settings.study_name}: {name}",
            seed=integer_seed(prepared.seed, name),
            sampler=Halving() if on_a_line else "gp_bucb",
            alpha_zero_repeats=int(zero),
            n_initial=0 if on_a_line else max(4, round(share[1] * prepared.settings.batch_size)),
        )
    stop_when = prepared.settings.stop_when if name == WEIGHTS else None
    data, trainer, evaluator = prepared.data, prepared.trainer, prepared.evaluator
    return Search(study, data, trainer, weighting, evaluator, share, optional, stop_when)


def _of_weights(prepared: Prepared, weighting: Weighting, share: tuple[float, float]) -> dict[str, Any]:
    """What the study of example weights has otherwise: the domain of α together with hyper-parameters, and
    a sampler that knows how many candidates it has."""
    settings, space = prepared.settings, prepared.space
    ball = Ball(weighting.n_dims, settings.ball_radius)
    changes: dict[str, Any] = {"domain": ball}
    if space is not None:
        changes = {"domain": BallAndBox(ball, Box(space.n_dims, space.half_width)), "space": space}
    sampler = resolve_sampler(settings.sampler)
    if isinstance(sampler, SamplerOfPoints):
        n_candidates = n_in_share(share, settings.budget)
        sampler = sampler.for_budget(changes["domain"], n_candidates)
        changes["n_initial"] = 0
    return {**changes, "sampler": sampler}


@dataclass(frozen=True)
class _Unweighted:
    """The user's own weights for every candidate; there is no α."""

    prepared: Prepared
    n_dims = 0

    def training_weights(self, alphas: FloatArray) -> FloatArray:
        """The user's weights (K, n) for alphas (K, 0)."""
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


def _simple_weighting(prepared: Prepared) -> Any:
    training, data = prepared.data.training, prepared.data
    if data.task == "regression":
        return PowersOfTarget(training.y, training.sample_weight)
    weighting = ExampleWeighting(DirectionsEmbedding(), UniformBaseWeights())
    return weighting.fit(None, training.y, task=data.task, sample_weight=training.sample_weight)


def _importance(prepared: Prepared) -> ExampleWeighting:
    """Weights by the density ratio of the features alone, at α = 0."""
    shift = CovariateShift(random_state=integer_seed(prepared.seed, "importance"))
    training, given = prepared.data.training, prepared.data.given
    return ExampleWeighting(LabelEmbedding(), shift).fit(
        training.X,
        training.y,
        given.X,
        given.y,
        task=prepared.data.task,
        sample_weight=training.sample_weight,
    )
