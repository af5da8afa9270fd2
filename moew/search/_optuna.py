"""What Optuna is for: hyper-parameters that are searched, TPE as their sampler, candidates as its trials.

The user's distributions are coordinates of a cube, each from −half_width to half_width. Numbers lie on it in
proportion, or in proportion to their logarithm; whole numbers, steps and choices have equal parts of it.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from moew.exceptions import InvalidInputError
from moew.samplers import check_known
from moew.types import Domain, FloatArray

if TYPE_CHECKING:
    import optuna
    from optuna.distributions import BaseDistribution

    from moew.search._study import Trial, WeightStudy

    SearchSpace = Mapping[str, BaseDistribution] | None

_MOST_PARAMETERS = 10  # dimensions of alpha up to which each is a parameter of a trial


@dataclass(frozen=True)
class ParameterSpace:
    """The distributions by name, and the values that the estimator itself has."""

    distributions: Mapping[str, Any]
    own: Mapping[str, Any]
    half_width: float

    @property
    def n_dims(self) -> int:
        """How many parameters there are."""
        return len(self.distributions)

    @property
    def start(self) -> FloatArray:
        """The coordinates (p,) nearest to the estimator's own values; the middle for those that have none,
        such as None."""
        return self.coordinates(self.own)

    def values(self, coordinates: FloatArray) -> dict[str, Any]:
        """The parameters at coordinates (p,)."""
        shares = np.clip((np.asarray(coordinates) / self.half_width + 1) / 2, 0.0, 1.0).tolist()
        pairs = zip(self.distributions.items(), shares, strict=True)
        return {name: _value(distribution, share) for (name, distribution), share in pairs}

    def coordinates(self, values: Mapping[str, Any]) -> FloatArray:
        """The coordinates (p,) of parameters; `values` gives the same parameters for them, up to rounding."""
        shares = [_share(distribution, values[name]) for name, distribution in self.distributions.items()]
        return np.asarray(self.half_width * (2 * np.array(shares) - 1))


def resolve_space(
    given: SearchSpace, estimator: Any, weight_name: str, half_width: float
) -> ParameterSpace | None:
    """The space to search, checked against the estimator; None if there is nothing to search."""
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise InvalidInputError(
            "search_space must map names of parameters to Optuna distributions, such as "
            f"{{'C': FloatDistribution(1e-3, 1e3, log=True)}}; got {given!r}.",
            argument="search_space",
        )
    if not given:
        return None
    try:
        from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
    except ImportError as error:
        raise InvalidInputError(
            "a search space needs Optuna, which is not installed: pip install 'moew[optuna]'.",
            argument="search_space",
        ) from error
    parameters = estimator.get_params()
    for name, distribution in given.items():
        inside = [other for other in given if isinstance(other, str) and other.startswith(f"{name}__")]
        if name == weight_name:
            why = "is the name of the example weights, which are searched already."
        elif name not in parameters:
            why = f"is no parameter of the estimator; it has {', '.join(sorted(parameters))}."
        elif inside:
            why = f"is searched already by its part {inside[0]!r}; name one of them."
        elif not isinstance(distribution, FloatDistribution | IntDistribution | CategoricalDistribution):
            why = f"needs an Optuna distribution, such as FloatDistribution(0.1, 10.0); got {distribution!r}."
        elif distribution.single():
            why = f"has a single value in {distribution}: set it as the estimator's own parameter."
        else:
            continue
        raise InvalidInputError(f"search_space: {name!r} {why}", argument="search_space")
    return ParameterSpace(dict(given), {name: parameters[name] for name in given}, half_width)


def _value(distribution: Any, share: float) -> Any:
    """The value at a share of the way from the lowest to the highest."""
    if n := _n_parts(distribution):
        part = min(int(share * n), n - 1)
        if hasattr(distribution, "choices"):
            return distribution.choices[part]
        return min(distribution.low + distribution.step * part, distribution.high)
    first, last = _ends(distribution)
    value = first + share * (last - first)
    if distribution.log:
        value = math.exp(value) if distribution.step is None else round(math.exp(value))
    return min(max(value, distribution.low), distribution.high)


def _share(distribution: Any, value: Any) -> float:
    """The inverse of `_value`: values outside count as the nearest, and what is no value as the middle."""
    n = _n_parts(distribution)
    if hasattr(distribution, "choices"):
        same = [i for i, c in enumerate(distribution.choices) if type(c) is type(value) and c == value]
        return (same[0] + 0.5) / n if same else 0.5
    if not isinstance(value, Real) or math.isnan(value):
        return 0.5
    low, high = float(distribution.low), float(distribution.high)
    inside = min(max(float(value), low), high)
    if n:
        return (round((inside - low) / float(distribution.step)) + 0.5) / n
    first, last = _ends(distribution)
    return ((math.log(inside) if distribution.log else inside) - first) / (last - first)


def _n_parts(distribution: Any) -> int:
    """How many choices or steps there are, which have equal parts; 0 for other numbers."""
    if hasattr(distribution, "choices"):
        return len(distribution.choices)
    if distribution.log or distribution.step is None:
        return 0
    return round(float(distribution.high - distribution.low) / float(distribution.step)) + 1


def _ends(distribution: Any) -> tuple[float, float]:
    """The ends of numbers, or of their logarithms; whole numbers reach half of one further there, so that
    each has its part."""
    if not distribution.log:
        return distribution.low, distribution.high
    half = 0.0 if distribution.step is None else 0.5
    return math.log(distribution.low - half), math.log(distribution.high + half)


@dataclass(frozen=True)
class Tpe:
    """Proposes parameters by tree-structured Parzen estimators (Bergstra et al., 2011).

    What is known is told to a new study in memory each time. A candidate that failed, or that is still in
    training, counts as the worst that was seen, so that the next ones lie elsewhere.
    """

    space: ParameterSpace

    def check_domain(self, domain: Domain) -> None:
        """Raise unless the domain is that of the parameters."""
        if domain.n_dims != self.space.n_dims:
            what = f"TPE searches {self.space.n_dims} parameters, the domain has {domain.n_dims} dimensions."
            raise InvalidInputError(what, argument="sampler")

    def propose(
        self,
        alphas: FloatArray,
        scores: FloatArray,
        *,
        pending: FloatArray,
        k: int,
        domain: Domain,
        rng: np.random.Generator,
    ) -> FloatArray:
        """The next `k` points (k, p); random ones while nothing has a score."""
        import optuna

        points, scores, pending, k = check_known(alphas, scores, pending, k, domain)
        finite = np.isfinite(scores)
        if not finite.any():
            return domain.sample(rng, k)
        worst = float(scores[finite].min())
        told = np.append(np.where(finite, scores, worst), np.full(len(pending), worst))
        distributions, asked = dict(self.space.distributions), []
        with _quiet():
            sampler = optuna.samplers.TPESampler(n_startup_trials=1, seed=int(rng.integers(2**31)))
            study = optuna.create_study(direction="maximize", sampler=sampler)
            for point, value in zip(np.concatenate([points, pending]), told.tolist(), strict=True):
                known = {"params": self.space.values(point), "distributions": distributions, "value": value}
                study.add_trial(optuna.trial.create_trial(**known))
            for _ in range(k):
                trial = study.ask(distributions)
                asked.append(self.space.coordinates(trial.params))
                study.tell(trial, worst)
        return np.stack(asked)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without Optuna's log lines, and its warnings of experimental features, for every candidate."""
    import optuna

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        optuna.logging.set_verbosity(before)


def to_optuna(study: WeightStudy, storage: Any = None) -> optuna.Study:
    """A new Optuna study of the candidates so far, for dashboards and Optuna's own plots, in memory or in a
    storage of Optuna's."""
    try:
        import optuna
    except ImportError as error:
        raise InvalidInputError(
            "an Optuna study needs Optuna, which is not installed: pip install 'moew[optuna]'."
        ) from error

    if storage is not None and not isinstance(storage, str | optuna.storages.BaseStorage):
        raise InvalidInputError(
            "an Optuna study is kept in a URL such as 'sqlite:///shown.db' or in a storage of Optuna's, "
            f"got {storage!r}.",
            argument="storage",
        )
    directions = optuna.study.StudyDirection
    direction = directions.MAXIMIZE if study.greater_is_better else directions.MINIMIZE
    try:
        with _quiet():
            found = optuna.create_study(storage=storage, study_name=study.name, direction=direction)
    except optuna.exceptions.DuplicatedStudyError as error:
        raise InvalidInputError(
            f"the storage has a study {study.name!r} already; name another one, or delete it with "
            "optuna.delete_study.",
            argument="storage",
        ) from error
    found.add_trials([_trial_of(trial, study) for trial in study.trials()])
    return found


def _trial_of(trial: Trial, study: WeightStudy) -> optuna.trial.FrozenTrial:
    from optuna.distributions import FloatDistribution
    from optuna.trial import TrialState, create_trial

    alpha, size = trial.alpha.tolist(), study.domain.size
    shown = alpha if len(alpha) <= _MOST_PARAMETERS else []
    parameters: dict[str, Any] = {f"alpha_{i}": value for i, value in enumerate(shown)}
    distributions: dict[str, Any] = dict.fromkeys(parameters, FloatDistribution(-size, size))
    if study.space is not None:
        parameters |= study.space.values(trial.coordinates)
        distributions |= study.space.distributions
    has_value = math.isfinite(trial.value)
    state = TrialState.COMPLETE if has_value else TrialState.RUNNING if trial.pending else TrialState.FAIL
    notes = {"number": trial.number, **({} if trial.error is None else {"error": trial.error})}
    return create_trial(
        state=state,
        value=trial.value if has_value else None,
        params=parameters,
        distributions=distributions,
        user_attrs=notes,
    )
