"""Cases of `MetricSearch.fit`: generated rows, models, metrics and settings; what must hold after."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import checkout  # noqa: F401  # finds experiments/, beside this folder
import numpy as np
from fuzz_cases import chance, checking, expect, expect_close, expect_same, odd_value, pick
from fuzz_further import ODD_FURTHER, further_settings, odd_fit_params
from fuzz_models import SOUND_METRICS, odd_metric, odd_model, sound_model
from fuzz_properties import check_result
from fuzz_rows import Problem, Rng, make_problem
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.metrics import get_scorer_names
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit, StratifiedKFold

from experiments.samplers import Annealing, CoverSampler, GridSampler
from moew import ExampleWeights, MetricSearch, TrainingOptions, load
from moew.decision import EqualFalsePositiveRates, MostAccurate, RecallReached, ShareSelected, Tuned
from moew.embedding import AutoencoderEmbedding, LabelEmbedding
from moew.exceptions import InvalidInputError, MoewError
from moew.metrics import METRICS
from moew.samplers import GpBucb
from moew.search import WEIGHTS
from moew.weighting import CovariateShift

_STARTS_PROCESSES = ("n_jobs", "candidate_timeout")  # with values that can be taken, which takes seconds
_ODD_SETTINGS = 0.12  # share of the settings that are odd in an odd case


def fit_case(rng: Rng) -> None:
    """Fit a generated search. Sound input must work; whatever works must have the properties."""
    problem = make_problem(rng, odd=chance(rng, 0.6))
    search, settings = make_search(rng, problem)
    if not problem.sound:
        search.fit(**problem.arguments)
    else:
        with checking(f"a sound fit, {settings}"):
            search.fit(**problem.arguments)
    check_result(search, problem)
    if chance(rng, 0.2) and problem.sound:
        again = clone(search).fit(**problem.arguments)
        _check_same(again, search, problem, "fitted twice")
    if chance(rng, 0.15):
        check_saved(search, problem)
    if chance(rng, 0.3):
        predict_odd_rows(rng, search, problem)


def make_search(rng: Rng, problem: Problem) -> tuple[MetricSearch, dict[str, Any]]:
    """A search whose parameters are sound if the problem is."""
    model, needed = sound_model(rng, problem.task)
    settings = {**sound_settings(rng, problem), **needed}
    if problem.sound or chance(rng, 0.5):
        further_model, further = further_settings(rng, problem, settings["metric"])
        settings.update(further)
        if further_model is not None:
            model = further_model
            settings.pop("sample_weight_name", None)
    if not problem.sound:
        if chance(rng, 0.25):
            model, needed = odd_model(rng, problem.task)
            settings.update(needed)
        if chance(rng, 0.25):
            settings["metric"] = odd_metric(rng)
        if chance(rng, 0.5):
            settings.update(odd_settings(rng))
        if chance(rng, 0.05):
            problem.rows["fit_params"] = odd_fit_params(rng)
    settings["random_state"] = settings.get("random_state", int(rng.integers(100)))
    return MetricSearch.from_settings(model, **settings), settings


def sound_settings(rng: Rng, problem: Problem) -> dict[str, Any]:
    """Settings that work together with sound rows of the problem."""
    given = "X_val" in problem.rows
    batch_size = int(rng.integers(1, 5))
    settings: dict[str, Any] = {
        "metric": pick(rng, SOUND_METRICS[problem.n_classes]),
        "n_candidates": int(rng.integers(1, 3)) * batch_size,
        "batch_size": batch_size,
        "embedding": pick(rng, ["directions", "label", "label", [0], PCA(1), _first_column]),
        "sampler": pick(rng, ["gp_bucb", "random", "random", Annealing()]),
        "final": pick(rng, ["ensemble", "smoothed", "best"]),
        "strategies": pick(rng, ["auto", "auto", WEIGHTS, [WEIGHTS], ["class weights", WEIGHTS]]),
        "honest": pick(rng, ["halves", "halves", None]),
        "evaluate_on": pick(
            rng, ["validation", "validation", "auto", 2] if given else ["auto", 0.3, 3, "splits"]
        ),
    }
    if settings["evaluate_on"] == "splits":
        n = problem.n_rows
        order = rng.permutation(n)
        half = n // 2
        settings["evaluate_on"] = [(order[:half], order[half:]), (order[half:], order[:half])]
        settings["metric"] = None  # others may be undefined on a fold without a class
    if settings["metric"] in get_scorer_names() and chance(rng, 0.75):
        settings["honest"] = (
            None  # halves take thousands of calls, and scikit-learn's take a millisecond each
        )
    if given:
        settings["base_weights"] = pick(rng, ["label_shift", "uniform", "covariate_shift"])
        if problem.task == "regression" and settings["base_weights"] == "label_shift":
            settings["base_weights"] = "uniform"
    if chance(rng, 0.3):
        settings["radius"] = float(rng.choice([0.1, 1.0, 30.0]))
    if chance(rng, 0.1):
        settings["alpha_zero_repeats"] = 2
    if chance(rng, 0.1) and settings["sampler"] == "gp_bucb":
        settings["stop_when"] = 0.01
    if chance(rng, 0.003):
        settings["n_jobs"] = 2
    return settings


def is_fast(metric: Any) -> bool:
    """Whether a call takes so little that thousands may be made."""
    if isinstance(metric, list | dict):
        return all(map(is_fast, metric.values() if isinstance(metric, dict) else metric))
    if isinstance(metric, str):
        return metric in METRICS
    return metric is None or not hasattr(metric, "_score_func")  # scikit-learn's scorers


def _first_column(X: Any, y: Any) -> Any:
    try:
        return np.asarray(X, dtype=float)[:, :1]
    except (TypeError, ValueError):  # texts, sparse rows
        return np.arange(len(y), dtype=float)[:, None]


def _bad_embedding(X: Any, y: Any) -> Any:
    return np.full((len(y), 2), np.nan)


def odd_settings(rng: Rng) -> dict[str, Any]:
    """Some settings with values that are unusual, or that nobody can take."""
    options: dict[str, list[Any]] = {
        "radius": [1e-12, 1e12, 1e-13, 0, -1.0, np.float32(2), np.array(2.0), "4"],
        "batch_size": [0, -1, 1.0, None, np.int8(2)],
        "alpha_zero_repeats": [0, 3, 1.5],
        "n_jobs": [0, 1, 2.5, "2", True, 1j, [1]],
        "sampler": [
            GpBucb(noise="repeats"), GpBucb(width=1e-9), Annealing(cooling=1e9),
            CoverSampler(),
            GridSampler(), "no", GpBucb, RandomLike(), GpBucb(targets="raw", noise=0.0),
            GpBucb(width="domain"),
        ],
        "embedding": [
            "columns", [], [99], [-1], ["x0"], ["nothing"], _bad_embedding, lambda X: X, LabelEmbedding,
            PCA(50),
            LabelEmbedding(standardize=False), lambda X, y: X, lambda X, y: None, "label",
        ],
        "base_weights": [
            "covariate_shift", "label_shift", "no", lambda X, y: -np.ones(len(y)), CovariateShift, _ones,
        ],
        "decision": [
            "tuned", "threshold=0.3", "select=0.2", "accurate", "recall=0.9", "accurate@train",
            "equal_fpr=0.2", 0.4, 1.5,
            ShareSelected(0.3), RecallReached(0.8), MostAccurate(), EqualFalsePositiveRates(0.3),
            Tuned("group"), "no=3",
        ],
        "evaluate_on": [
            [], [([0], [1])], 0.0, 1.0, 0.99, 0.001, 1, 10**6, 5, None, "validation", "no", True, KFold(2),
            StratifiedKFold(2),
            GroupKFold(2), ShuffleSplit(2, random_state=0), iter([]),
            [(np.array([0, 1]), np.array([10**9]))], 2, 3, 0.5,
        ],
        "final": ["Best", None, ["best"], 1],
        "strategies": [
            None, 1, "no", [], ["class weights"], ["auto", "auto"], ("auto", WEIGHTS), [[WEIGHTS]],
            ExampleWeights(radius=-1.0), ["auto", ExampleWeights(final="best")], ExampleWeights,
        ],
        "training": [TrainingOptions(most_failures=2), TrainingOptions(), 3, TrainingOptions],
        "honest": ["holdout", 0.3, 0.0, 1.0, 1, True, "no", 0.999],
        "stop_when": [0, -1, 1e-9, 1e9, "x", np.nan],
        "candidate_timeout": [0, -1, "x", np.inf, np.nan, None, [1]],
        "most_failures": [0, 0.5, 1, 2, -1, None],
        "sample_weight_name": ["", "weight", "sample_weight__x", None, 3],
        "random_state": [None, np.random.RandomState(0), -1, 2**40, "x", 0.5, np.int64(7)],
        "study_name": ["", None, 3],
        "search_space": [{}, {"C": 3}, {"no": None}, 7],
        "storage": [3, "", ".", Path("/nowhere/study.db"), "sqlite://", "no://x"],
        **ODD_FURTHER,
    }  # fmt: skip
    chosen: dict[str, Any] = {}
    for name, values in options.items():
        if chance(rng, _ODD_SETTINGS):
            odder = chance(rng, 0.2) and name not in _STARTS_PROCESSES
            chosen[name] = odd_value(rng) if odder else pick(rng, values)
    if chance(rng, 0.004):  # these take seconds
        chosen["embedding"] = AutoencoderEmbedding(n_dims=2, steps=5)
    if chance(rng, 0.004):
        chosen["candidate_timeout"] = 60
    return {name: value for name, value in chosen.items() if not _is_file(name, value)}


def _is_file(name: str, value: Any) -> bool:
    """Whether an odd value would be taken for a file name, which would lie in the current folder."""
    return name == "storage" and isinstance(value, str) and value not in ("", ".", "sqlite://", "no://x")


def _ones(X: Any, y: Any) -> Any:
    return np.ones(len(y))


class RandomLike:
    """A sampler of a user's that proposes nonsense."""

    def check_domain(self, domain: Any) -> None:
        """Takes all."""

    def propose(self, alphas: Any, scores: Any, *, pending: Any, k: int, domain: Any, rng: Any) -> Any:
        return np.full((k, domain.n_dims), rng.choice([np.nan, 1e9, 0.1]))


def _check_same(one: MetricSearch, other: MetricSearch, problem: Problem, what: str) -> None:
    X = problem.rows["X"]
    with checking(what):
        expect_same(one.predict(X), other.predict(X), f"{what}: predictions")
        expect_same(one.sample_weight_, other.sample_weight_, f"{what}: weights")
        for name in ("best_score_", "honest_score_", "best_alpha_", "selected_", "unweighted_score_"):
            expect_same(getattr(one, name), getattr(other, name), f"{what}: {name}")
        values = [[trial.value for trial in search.result_.trials] for search in (one, other)]
        expect_same(values[0], values[1], f"{what}: values of the trials")


def check_saved(search: MetricSearch, problem: Problem) -> None:
    """A saved and loaded search predicts the same bits; one that is refused says so."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "search.moew"
        try:
            search.save(path)
        except InvalidInputError:  # only code can make the model again
            search.save(path, trusted=True)
        with checking("loading what was saved"):
            again = load(path, trusted=True)
            if search.decision_ is None or not search.decision_.columns:
                expect_same(
                    again.predict(problem.rows["X"]), search.predict(problem.rows["X"]), "loaded: predict"
                )
            for name in ("best_score_", "honest_score_", "sample_weight_", "best_alpha_", "selected_"):
                expect_same(getattr(again, name), getattr(search, name), f"loaded: {name}")


def predict_odd_rows(rng: Rng, search: MetricSearch, problem: Problem) -> None:
    """Rows that differ from those of the fit: an answer for each, or a ValueError or TypeError with a reason.

    What scikit-learn says about rows, such as a wrong number of features, is said by its own errors.
    """
    other = make_problem(rng, odd=True)
    X: Any = other.rows.get("X")
    y: Any = other.rows.get("y")
    share: Any = pick(rng, [0.5, 0.0, 2.0, -1.0, None, "x"])
    asked: list[Callable[[], Any]] = [
        lambda: search.predict(X),
        lambda: search.metric_value(X, y),
        lambda: search.example_weights(X, y),
        lambda: search.downsample(share),
        lambda: search.save(pick(rng, ["/nowhere/x", "/", ""])),
    ]
    ask = pick(rng, asked)
    try:
        found = ask()
    except MoewError:
        return
    except (ValueError, TypeError, AttributeError, IndexError, KeyError) as error:
        if ask not in asked[:5] or not str(error):
            raise
        return
    if ask is asked[0]:
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        expect(len(found) == n, f"{len(found)} predictions of {n} rows")
    if ask is asked[3]:
        kept, weights = found
        expect(len(kept) == len(weights), "rows and weights of a sample differ in number")
        expect_close(np.unique(kept), kept, "rows of a sample are in order and different")
