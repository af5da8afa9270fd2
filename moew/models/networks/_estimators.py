"""Networks as ordinary scikit-learn estimators that can train many example weightings at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import expit, log_expit, softmax
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if

from moew._util.state import State, has_state
from moew.data import centre_and_spread
from moew.exceptions import InvalidInputError
from moew.models.networks import _checks
from moew.models.networks._network import Network
from moew.types import FloatArray, Labels, Rows


def _has_probabilities(self: NetworkClassifier) -> bool:
    if self.loss == "hinge":
        raise AttributeError("a network trained with loss='hinge' has no probabilities; use loss='logistic'.")
    return True


@has_state
class NetworkClassifier(ClassifierMixin, Network):
    """A multilayer network for two or more classes, trained with Adam on mini-batches.

    Parameters
    ----------
    hidden
        Widths of the hidden layers; () is a linear model.
    activation
        "sigmoid", "tanh", "relu" or "identity", of the hidden layers.
    loss
        "logistic" (two classes: log loss on one output; more: softmax cross-entropy, which "softmax" names
        too), "sigmoid_cross_entropy" (one sigmoid for each class) or "hinge" (more than two classes: the
        sum over one against the rest; there is no `predict_proba`).
    steps, learning_rate
        The number of Adam's updates, and its learning rate.
    batch_size
        Rows in each update, drawn without replacement; None, or a number of n or more, takes all. Their
        weights are brought to mean one in each mini-batch.
    scale
        Standardise numeric columns. Data frames may hold boolean and categorical columns; missing values
        become the column's mean and a flag.
    random_state
        Seed of the initial parameters. The order of the mini-batches is always the same.
    l2
        Adds ``l2/2·|W|²`` to the mean loss, W the weights (not the biases) of all layers, in the units of the
        encoded rows: with n rows of weight one, hidden=() and no mini-batches, the logistic loss is
        LogisticRegression(C=1/(l2·n)), the squared loss Ridge(alpha=l2·n/2).
    early_stopping
        False, or the share of the training rows that is held out (always the same ones). Their loss,
        weighted like the rest and without the penalty, is checked every `check_every` steps; after
        `patience` checks in a row without a new best, the network stops, each of many on its own. It keeps
        the parameters of its best check. `steps` is then the maximum.
    warm_start
        "uniform" first trains one network with all weights one (initial parameters from a fixed seed; it is
        reused for the same rows and settings) and starts every weighting from it. So all candidates have the
        same initial parameters, whatever their seeds. False: random initial parameters.
    warm_steps
        Updates after a warm start; None is a fifth of `steps`.
    precision
        "float32", "tf32" or "bfloat16", of the factors of matrix products (sums are always float32). The
        shorter ones are faster on a GPU; a CPU only imitates their rounding.
    device
        "cpu", "gpu", or None for JAX's own choice. Several devices of a kind share the candidates.

    Notes
    -----
    Each set of shapes is compiled once in a process. To keep compiled programs from one process to the next,
    set JAX's own `jax.config.update("jax_compilation_cache_dir", "a folder")`, and
    `jax_persistent_cache_min_compile_time_secs` to 0 (JAX leaves out what compiles within a second).
    """

    _losses = ("logistic", "softmax", "sigmoid_cross_entropy", "hinge")

    def __init__(
        self,
        hidden: Sequence[int] = (20, 10),
        activation: str = "sigmoid",
        loss: str = "logistic",
        steps: int = 10_000,
        batch_size: int | None = 100,
        learning_rate: float = 0.001,
        scale: bool = True,
        random_state: Any = None,
        *,
        l2: float = 0.0,
        early_stopping: float | bool = False,
        patience: int = 10,
        check_every: int = 100,
        warm_start: str | bool = False,
        warm_steps: int | None = None,
        precision: str = "float32",
        device: str | None = None,
    ) -> None:
        super().__init__(
            hidden,
            activation,
            loss,
            steps,
            batch_size,
            learning_rate,
            scale,
            random_state,
            l2=l2,
            early_stopping=early_stopping,
            patience=patience,
            check_every=check_every,
            warm_start=warm_start,
            warm_steps=warm_steps,
            precision=precision,
            device=device,
        )

    def decision_function(self, X: Rows) -> FloatArray:
        """Linear outputs: (n,) for two classes, positive for the second one; (n, C) for more."""
        out = self._outputs(X)
        return out[:, 0] if len(self.classes_) == 2 else out

    def predict(self, X: Rows) -> Any:
        """The most probable class (n,)."""
        out = self.decision_function(X)
        chosen = (out > 0).astype(int) if out.ndim == 1 else out.argmax(axis=1)
        return self.classes_[chosen]

    @available_if(_has_probabilities)
    def predict_proba(self, X: Rows) -> FloatArray:
        """Probabilities (n, C) in the order of `classes_`; single sigmoids are scaled to sum to one."""
        out = self.decision_function(X)
        if out.ndim == 1:
            return np.column_stack([expit(-out), expit(out)])
        return np.asarray(softmax(log_expit(out) if self.loss == "sigmoid_cross_entropy" else out, axis=1))

    def _learn_targets(self, y: Labels) -> FloatArray:
        """0/1 (n, 1) for two classes, one-hot (n, C) for more."""
        self.classes_, codes = np.unique(_checks.class_labels(y), return_inverse=True)
        n_classes = len(self.classes_)
        if n_classes < 2:
            raise InvalidInputError(
                f"y holds one class only, {self.classes_.tolist()!r}; a classifier needs at least two.",
                argument="y",
            )
        wanted = [1] if n_classes == 2 else range(n_classes)
        return np.column_stack([codes == code for code in wanted]).astype(np.float64)

    def _target_state(self) -> State:
        return {"classes": self.classes_.tolist(), "dtype": self.classes_.dtype.str}

    def _load_target_state(self, state: State) -> None:
        self.classes_ = np.asarray(state["classes"], dtype=np.dtype(state["dtype"]))


@has_state
class NetworkRegressor(RegressorMixin, Network):
    """A multilayer network for regression, trained with Adam on mini-batches and the squared loss.

    As `NetworkClassifier`; with `scale=True` the targets are standardised for training, too; predictions
    are in the units of y.
    """

    _losses = ("squared",)

    def __init__(
        self,
        hidden: Sequence[int] = (20, 10),
        activation: str = "sigmoid",
        loss: str = "squared",
        steps: int = 10_000,
        batch_size: int | None = 100,
        learning_rate: float = 0.001,
        scale: bool = True,
        random_state: Any = None,
        *,
        l2: float = 0.0,
        early_stopping: float | bool = False,
        patience: int = 10,
        check_every: int = 100,
        warm_start: str | bool = False,
        warm_steps: int | None = None,
        precision: str = "float32",
        device: str | None = None,
    ) -> None:
        super().__init__(
            hidden,
            activation,
            loss,
            steps,
            batch_size,
            learning_rate,
            scale,
            random_state,
            l2=l2,
            early_stopping=early_stopping,
            patience=patience,
            check_every=check_every,
            warm_start=warm_start,
            warm_steps=warm_steps,
            precision=precision,
            device=device,
        )

    def predict(self, X: Rows) -> FloatArray:
        """Predictions (n,) in the units of y."""
        return self._outputs(X)[:, 0] * self.target_scale_ + self.target_offset_

    def _learn_targets(self, y: Labels) -> FloatArray:
        """Targets (n, 1), standardised where `scale` is set."""
        values = _checks.numeric_targets(y)
        self.target_offset_, self.target_scale_ = centre_and_spread("y", values) if self.scale else (0.0, 1.0)
        return ((values - self.target_offset_) / self.target_scale_)[:, None]

    def _target_state(self) -> State:
        return {"offset": self.target_offset_, "scale": self.target_scale_}

    def _load_target_state(self, state: State) -> None:
        self.target_offset_, self.target_scale_ = state["offset"], state["scale"]
