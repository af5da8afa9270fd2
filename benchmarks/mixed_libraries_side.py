"""One library on one split, in an environment of its own; asked by benchmarks/mixed_libraries.py.

The folder that is named on the command line has arrays in given.npz and the rest in asked.json. found.npz
gets scores of the validation and test rows: probabilities (n, C) of the classes, or predictions (n,).
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np

warnings.simplefilter("ignore")
MODELS = {
    "LogisticRegression": "sklearn.linear_model",
    "Ridge": "sklearn.linear_model",
    "LGBMClassifier": "lightgbm",
    "LGBMRegressor": "lightgbm",
}
Rows = tuple[np.ndarray, np.ndarray]  # features, and labels from 0 on or targets
Scores = Callable[[np.ndarray], np.ndarray]  # features → probabilities (n, C) or predictions (n,)


class Asked:
    """A model, and training rows with their columns."""

    def __init__(self, asked: dict[str, Any], given: dict[str, np.ndarray]) -> None:
        self.n_classes, self.seed = asked["n_classes"], asked["seed"]
        self.rounds: int | None = None  # of boosting
        self.training = given["X"], given["y"]
        self.annotator, self.group = given.get("annotator"), given.get("group")
        self._kind = getattr(importlib.import_module(MODELS[asked["model"]]), asked["model"])
        self._parameters = asked["parameters"]

    def model(self) -> Any:
        return self._kind(**self._parameters)

    def scores(self, model: Any) -> Scores:
        """Of a fitted model; classes it has not seen are impossible."""

        def of(X: np.ndarray) -> np.ndarray:
            if not self.n_classes:
                return np.asarray(model.predict(X)).ravel()
            found = np.zeros((len(X), self.n_classes))
            found[:, np.asarray(model.classes_, dtype=int)] = model.predict_proba(X)
            return found

        return of


def stacked(*parts: Rows) -> Rows:
    return np.vstack([X for X, _ in parts]), np.concatenate([y for _, y in parts])


def irbl(asked: Asked, trusted: Rows) -> Scores:
    from bqlearn.irbl import IRBL

    return asked.scores(_of_two_qualities(IRBL(asked.model(), asked.model()), asked, trusted))


def kpdr(asked: Asked, trusted: Rows) -> Scores:
    from bqlearn.density_ratio import KPDR

    return asked.scores(_of_two_qualities(KPDR(asked.model()), asked, trusted))


def _of_two_qualities(model: Any, asked: Asked, trusted: Rows) -> Any:
    quality = np.repeat([0, 1], [len(asked.training[1]), len(trusted[1])])
    return model.fit(*stacked(asked.training, trusted), sample_quality=quality)


def tradaboost(asked: Asked, trusted: Rows) -> Scores:
    from adapt.instance_based import TrAdaBoost, TrAdaBoostR2

    kind = TrAdaBoost if asked.n_classes else TrAdaBoostR2
    model = kind(asked.model(), n_estimators=asked.rounds, verbose=0, random_state=asked.seed)
    model.fit(*asked.training, Xt=trusted[0], yt=trusted[1])
    if not asked.n_classes:
        return lambda X: np.asarray(model.predict(X)).ravel()
    # Its vote gives classes alone: the same votes as shares.
    half = len(model.estimators_) // 2
    votes = np.asarray(model.estimator_weights_)[half:]

    def of(X: np.ndarray) -> np.ndarray:
        each = [asked.scores(one)(X) for one in model.estimators_[half:]]
        return np.asarray(np.tensordot(votes / votes.sum(), np.array(each), 1))

    return of


def clean_learning(asked: Asked, trusted: Rows) -> Scores:
    if asked.n_classes:
        from cleanlab.classification import CleanLearning
    else:
        from cleanlab.regression.learn import CleanLearning
    model = CleanLearning(asked.model(), seed=asked.seed)
    model.fit(*stacked(asked.training, trusted))
    return asked.scores(model.clf if asked.n_classes else model)


def majority_vote(asked: Asked, trusted: Rows) -> Scores:
    from crowdkit.aggregation import MajorityVote

    return _of_aggregated(MajorityVote(), asked, trusted)


def dawid_skene(asked: Asked, trusted: Rows) -> Scores:
    from crowdkit.aggregation import DawidSkene

    return _of_aggregated(DawidSkene(n_iter=100), asked, trusted)


def _of_aggregated(aggregation: Any, asked: Asked, trusted: Rows) -> Scores:
    """A model of one row for each that several annotators labelled, and of the trusted rows."""
    import pandas as pd

    X, y = asked.training
    features, task = np.unique(X, axis=0, return_inverse=True)
    answers = pd.DataFrame({"task": task.ravel(), "worker": asked.annotator, "label": y})
    labels = aggregation.fit_predict(answers).sort_index()
    once = features[labels.index.to_numpy()], labels.to_numpy().astype(int)
    return asked.scores(asked.model().fit(*stacked(once, trusted)))


def exponentiated_gradient(asked: Asked, _: Rows) -> Scores:
    """Equal rates of errors in all groups; the chance that its random decision is positive as a score."""
    from fairlearn.reductions import EqualizedOdds, ExponentiatedGradient

    model = ExponentiatedGradient(asked.model(), EqualizedOdds())
    model.fit(*asked.training, sensitive_features=asked.group)
    return model._pmf_predict


FITS: dict[str, Callable[[Asked, Rows], Scores]] = {
    "biquality-learn, IRBL": irbl,
    "biquality-learn, K-PDR": kpdr,
    "adapt, TrAdaBoost": tradaboost,
    "cleanlab, CleanLearning": clean_learning,
    "crowd-kit, majority vote": majority_vote,
    "crowd-kit, Dawid-Skene": dawid_skene,
    "fairlearn, ExponentiatedGradient": exponentiated_gradient,
}


def main(folder: Path) -> None:
    asked = json.loads((folder / "asked.json").read_text())
    with np.load(folder / "given.npz") as file:
        given = dict(file)
    problem, fit, start = Asked(asked, given), FITS[asked["method"]], time.process_time()
    trusted, found = (given["X_val"], given["y_val"]), {}
    shape = (len(trusted[1]), asked["n_classes"]) if asked["n_classes"] else len(trusted[1])
    for number, problem.rounds in enumerate(asked["rounds"]):
        last, of_val = fit(problem, trusted), np.empty(shape)
        for k in range(asked["n_folds"]):
            rows = given[f"rows_{k}"]
            rest = np.setdiff1d(np.arange(len(trusted[1])), rows)
            of_val[rest] = fit(problem, (trusted[0][rows], trusted[1][rows]))(trusted[0][rest])
        found[f"V_{number}"] = of_val if asked["n_folds"] else last(trusted[0])
        found[f"test_{number}"] = last(given["X_test"])
    fits = len(asked["rounds"]) * (1 + asked["n_folds"])
    np.savez(folder / "found.npz", fits=fits, seconds=time.process_time() - start, **found)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
