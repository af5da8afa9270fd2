"""Theorem 1 with models: weights of training rows by training an estimator, class weights from scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import log_softmax
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from experiments.theory._losses import Losses, class_errors, codes_in
from experiments.theory._measures import Measure
from experiments.theory._optimal_weights import OptimalWeights, optimal_weights
from moew.exceptions import Argument, InvalidInputError
from moew.types import Array, Features, FloatArray, IntArray, Labels


@dataclass(frozen=True, eq=False)  # == of arrays is an array
class OptimalExampleWeights:
    """The weights of training rows that Theorem 1 promises, as far as the estimator can use them.

    Training that minimises the losses themselves is best with the theorem's weights. An estimator minimises a
    smooth loss in their place, so that other weights that were tried may do better: these are the best of
    all.

    Attributes
    ----------
    theorem : OptimalWeights, the theorem's weights of the losses, and what can be achieved
    weights : (K,), the weights of the losses that gave the best model: the theorem's, or others that were
        tried
    value : the metric of that model
    costs : (n, C), w(x, y) of the theorem for `weights`: what each prediction of each row costs
    sample_weight : (n,), the same as one number for each row, with mean one, where all wrong predictions of a
        row cost the same; else None
    estimator : the estimator, trained on all rows with these costs
    n_models : how many weightings were trained
    """

    theorem: OptimalWeights
    weights: FloatArray
    value: float
    costs: FloatArray
    sample_weight: FloatArray | None
    estimator: Any
    n_models: int


def optimal_example_weights(
    measure: Measure,
    losses: Losses,
    estimator: Any,
    X: Features,
    y: Labels,
    *,
    cv: int | None = None,
    max_models: int = 20,
    tolerance: float = 1e-6,
    sample_weight_name: str = "sample_weight",
) -> OptimalExampleWeights:
    """The weights of training rows with which the estimator is best for the metric on their distribution.

    Models are trained with the weights of the proof, in turns with the weights that their losses lead to.
    Where the costs of a row's wrong predictions differ, the row is given to the estimator once for each
    class, weighted by how much that prediction saves.

    Parameters
    ----------
    measure : ConcaveMeasure or RatioMeasure, of the losses
    losses : what the losses of the rows are, such as `class_errors(y)`
    estimator : classifier whose `fit` takes sample weights
    X, y : n training rows and their labels
    cv : folds whose models' losses are measured out of fold; None: on the rows that they are trained on
    max_models : how many weightings are trained at most
    tolerance : as in `optimal_weights`
    sample_weight_name : the name of the weights in `fit`

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from experiments.theory import class_errors, g_mean
    >>> X, y = make_classification(1000, weights=[0.9], class_sep=0.5, random_state=0)
    >>> losses, model = class_errors(y), LogisticRegression()
    >>> plain = g_mean()(losses.of(model.fit(X, y).predict(X)))
    >>> found = optimal_example_weights(g_mean(), losses, model, X, y)
    >>> round(plain, 2), round(found.value, 2), found.n_models
    (0.67, 0.83, 3)
    """
    labels = np.asarray(y)
    codes = codes_in(labels, losses.classes, "y")
    if codes.shape != losses.kinds.shape:
        raise InvalidInputError(
            f"y has {len(codes)} rows and the losses were made of {len(losses.kinds)}; use the same rows.",
            argument="losses",
        )
    rows = _Rows(estimator, X, labels, codes, losses, sample_weight_name)
    if cv is None:
        folds = [(np.arange(len(codes)), np.arange(len(codes)))]
    else:
        folds = list(StratifiedKFold(cv, shuffle=True, random_state=0).split(codes, codes))

    tried: list[tuple[FloatArray, float]] = []

    def achieved(weights: FloatArray) -> FloatArray:
        predicted = labels.copy()
        for trained, scored in folds:
            predicted[scored] = rows.trained(weights, trained).predict(_take(X, scored))
        found = losses.of(predicted)
        tried.append((weights, measure(found)))
        return found

    theorem = optimal_weights(
        measure, achieved, start=np.ones(len(losses)), max_models=max_models, tolerance=tolerance
    )
    if not any(np.allclose(weights, theorem.weights) for weights, _ in tried):
        achieved(theorem.weights)
    # Among equals the theorem's.
    tried.sort(key=lambda one: not np.allclose(one[0], theorem.weights))
    weights, value = tried[int(np.nanargmax([value for _, value in tried]))]
    costs = losses.example_costs(weights)
    plain = plain_weights(costs, codes)
    if plain is not None:
        plain = np.asarray(plain / plain.mean())
    model = rows.trained(weights, np.arange(len(codes)))
    return OptimalExampleWeights(theorem, weights, value, costs, plain, model, len(tried))


def optimal_class_weights(
    measure: Measure, y: Labels, scores: Any, *, sample_weight: Any = None, max_models: int = 200
) -> OptimalWeights:
    """The weights of the class errors that Theorem 1 promises, for the models that differ from one by class
    weights alone; nothing is trained.

    A model whose classes are weighted is taken to decide as one with offsets added to its scores: exact for
    true log-probabilities. A training row of a class with share p has the weight β / p.

    Parameters
    ----------
    measure : ConcaveMeasure or RatioMeasure, of the class errors (C,)
    y : n labels, of rows that the model was not trained on
    scores : (n,), of the second of two classes, on any scale; or (n, C), log-probabilities of all classes or
        numbers that differ from them by a constant in each row
    sample_weight : (n,), how much each row counts
    max_models : how many offsets are tried at most

    Examples
    --------
    Of ten rows, two are positive. For the best G-mean, a positive row counts three times as much as a
    negative.

    >>> from experiments.theory import g_mean
    >>> y, scores = [0, 0, 0, 0, 0, 0, 1, 0, 0, 1], [0.1, 0.1, 0.2, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
    >>> found = optimal_class_weights(g_mean(), y, scores)
    >>> found.losses.tolist(), (found.weights / [0.8, 0.2]).round(2).tolist()
    ([0.25, 0.0], [1.43, 4.29])
    """
    losses = class_errors(y, sample_weight)
    given = np.asarray(scores, dtype=np.float64)
    C = len(losses.classes)
    if given.shape not in ([(len(losses.kinds),)] if C == 2 else []) + [(len(losses.kinds), C)]:
        raise InvalidInputError(
            f"scores must have shape (n, {C}){' or (n,)' if C == 2 else ''} for {len(losses.kinds)} rows, "
            f"got {given.shape}.",
            argument="scores",
        )
    if not np.isfinite(given).all():
        raise InvalidInputError("scores must be finite numbers; some are NaN or infinite.", argument="scores")
    if given.ndim == 2 and C == 2:
        given = given[:, 1] - given[:, 0]
    oracle = _threshold_for(losses, given) if given.ndim == 1 else _offsets_for(losses, given)
    return optimal_weights(measure, oracle, start=np.ones(C), max_models=max_models)


def plain_weights(costs: FloatArray, codes: IntArray) -> FloatArray | None:
    """The weights (n,) of rows with these costs (n, C) of predictions and codes (n,) of their own class,
    where all wrong predictions of a row cost the same and the right one nothing; else None."""
    saved = _saved(costs)
    own = saved[np.arange(len(codes)), codes]
    rest = saved.sum(axis=1) - own
    return own if (np.abs(rest) <= 1e-12 * saved.max()).all() else None


def _saved(costs: FloatArray) -> FloatArray:
    """How much less than the costliest prediction each one costs (n, C)."""
    return np.asarray(costs.max(axis=1, keepdims=True) - costs)


@dataclass(frozen=True)
class _Rows:
    """Training rows, and how to train on some of them."""

    estimator: Any
    X: Features
    labels: Array
    codes: IntArray
    losses: Losses
    sample_weight_name: str

    def trained(self, weights: FloatArray, numbers: IntArray) -> Any:
        """The estimator, trained on these rows for weights (K,) of the losses."""
        costs = self.losses.example_costs(weights)[numbers]
        X, labels, own = (
            _take(self.X, numbers),
            self.labels[numbers],
            plain_weights(costs, self.codes[numbers]),
        )
        if own is None:
            # Σ_j saved_j·1[ŷ ≠ j] is the cost of ŷ and a constant: cost-sensitive training by sample weights.
            saved = _saved(costs)
            at, predicted = np.nonzero(saved)
            X, labels, own = _take(X, at), self.losses.classes[predicted], saved[at, predicted]
        model = clone(self.estimator)
        try:
            return model.fit(X, labels, **{self.sample_weight_name: own / own.mean()})
        except TypeError as error:
            raise InvalidInputError(
                f"{type(model).__name__} could not be trained with weights ({error}); use an estimator that "
                "takes them, and give their name as ",
                Argument("sample_weight_name"),
                ".",
                argument="estimator",
            ) from error


def _take(X: Features, numbers: IntArray) -> Features:
    return (
        X.iloc[numbers]
        if hasattr(X, "iloc")
        else np.asarray(X)[numbers]
        if isinstance(X, list)
        else X[numbers]
    )


def _threshold_for(losses: Losses, scores: FloatArray) -> Any:
    """From weights (2,) to the class errors (2,) at the threshold of the scores (n,) that is best for
    them."""
    order = np.argsort(scores, kind="stable")
    ends = np.append(np.diff(scores[order]) > 0, True)  # equal scores are decided together
    per_row = losses.row_weights[order] / len(order)
    positive = losses.kinds[order] == 1
    missed = np.append(0.0, np.cumsum(np.where(positive, per_row, 0.0))[ends])  # those below the threshold
    right = np.append(0.0, np.cumsum(np.where(positive, 0.0, per_row))[ends])
    errors = np.stack([1 - right / right[-1], missed / missed[-1]], axis=1)

    def best(weights: FloatArray) -> FloatArray:
        return np.asarray(errors[int((errors @ weights).argmin())])

    return best


def _offsets_for(losses: Losses, scores: FloatArray) -> Any:
    """From weights (C,) to the class errors (C,) of the scores (n, C) with the offsets that are best for
    them."""
    log_proba = log_softmax(scores, axis=1)
    shares = np.bincount(losses.kinds, losses.row_weights) / len(losses.kinds)

    def best(weights: FloatArray) -> FloatArray:
        decided = (log_proba + np.log(weights / shares)).argmax(axis=1)
        return losses.of(losses.classes[decided])

    return best
