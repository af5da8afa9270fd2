"""Networks as ordinary scikit-learn estimators that train many example weightings at once."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import log_expit
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from moew._util.checks import check_parameters
from moew._util.state import State, Stateful, has_state, packed, plain_setting, unpack_array
from moew.data import TabularEncoder, is_numeric_array, row_blocks
from moew.exceptions import InvalidInputError
from moew.models._shared import ManyClassifier, ManyEstimator, ManyRegressor, check_rows, probabilities
from moew.models.networks._devices import choose_devices
from moew.models.networks._engine import all_finite, split_rows
from moew.models.networks._groups import train_weightings, uniform_layers
from moew.models.networks._layers import run_layers
from moew.models.networks._spec import (
    WARM_START,
    WARM_STEPS,
    EarlyStopping,
    Layers,
    NetworkSpec,
    layer_widths,
)
from moew.types import Features, FloatArray

_Plan = tuple[NetworkSpec, FloatArray, FloatArray]  # what to train, on inputs (n, D) and targets (n, C)


@dataclass(eq=False, repr=False)
class Network(Stateful, ManyEstimator):
    """Base of the network estimators; `NetworkClassifier` describes the settings."""

    state_home: ClassVar[str] = "moew.models"
    _attribute: ClassVar[str] = "layers_"
    _rate: ClassVar[str] = "learning_rate"
    _losses: ClassVar[tuple[str, ...]]

    hidden: Sequence[int] = (20, 10)
    activation: str = "sigmoid"
    loss: str = "logistic"
    steps: int = 10_000
    batch_size: int | None = 100
    learning_rate: float = 0.001
    scale: bool = True
    random_state: Any = None
    _: KW_ONLY
    l2: float = 0.0
    early_stopping: float | bool = False
    patience: int = 10
    check_every: int = 100
    warm_start: str | bool = False
    warm_steps: int | None = None
    precision: str = "float32"
    device: str | None = None

    layers_: Layers = field(init=False)  # W (out, in), b (out,) for each layer

    def hidden_representation(self, X: Features) -> FloatArray:
        """Activations (n, h) of the last hidden layer; the encoded rows where there is none."""
        return self._run(slice(None, -1), X, linear_end=False)

    def _outputs(self, X: Features) -> FloatArray:
        return self._run(slice(None), X, linear_end=True)

    def _run(self, layers: slice, X: Features, *, linear_end: bool) -> FloatArray:
        """Values (n, out) of the last of these layers."""
        check_is_fitted(self, "layers_")
        rows = check_rows(self, X, reset=False)
        # Arrays are encoded block by block; tables as a whole, so that each column is read once.
        parts = (rows[block] for block in row_blocks(rows)) if is_numeric_array(rows) else [rows]
        values = [
            run_layers(
                self.layers_[layers], self.activation, self.encoder_.transform(part), linear_end=linear_end
            )
            for part in parts
        ]
        return values[0] if len(values) == 1 else np.concatenate(values)

    def _check_settings(self) -> None:
        if self.loss not in self._losses:
            raise InvalidInputError(
                f"loss of {type(self).__name__} must be one of {self._losses}, got {self.loss!r}.",
                argument="loss",
            )

    def _plan(self, rows: Features, targets: Any) -> _Plan:
        inputs = self.encoder_.transform(rows, np.float32)  # as training computes
        columns = self._columns(targets)
        choose_devices(self.device)
        check_parameters(self, warm_start=WARM_START, warm_steps=WARM_STEPS)
        stopping = None
        if self.early_stopping is not False:
            stopping = EarlyStopping(self.early_stopping, self.patience, self.check_every)
            split_rows(len(inputs), stopping.share)
        spec = NetworkSpec(
            (inputs.shape[1], *layer_widths(self.hidden), columns.shape[1]),
            self.activation,
            self.loss,
            self.steps,
            self.batch_size,
            self.learning_rate,
            self.l2,
            stopping,
            self.precision,
        )
        return spec, inputs, columns

    def _columns(self, targets: Any) -> FloatArray:
        """Targets (n,) as the columns (n, C) that the network is to give."""
        return np.asarray(targets)[:, None]

    def _weight_problems(self, weights: FloatArray) -> dict[int, InvalidInputError]:
        problems = super()._weight_problems(weights)
        if self.early_stopping is False:
            return problems
        parts = split_rows(weights.shape[1], self.early_stopping)
        for k, row in enumerate(weights):
            for rows, purpose in zip(parts, ("to train on", "held out for early stopping"), strict=True):
                if k not in problems and not row[rows].any():
                    problems[k] = InvalidInputError(
                        f"the sample weights of all {len(rows)} rows {purpose} are zero; "
                        "set early_stopping=False, or another share.",
                        argument="early_stopping",
                    )
        return problems

    def _train(
        self, plan: _Plan, weights: FloatArray, seeds: Sequence[int], alone: bool = False
    ) -> Iterator[Layers]:
        spec, inputs, targets = plan
        if not self.warm_start:
            return train_weightings(spec, inputs, targets, weights, seeds, self.device)
        start = uniform_layers(spec, inputs, targets, self.device)
        fifth = -(-spec.steps // 5)
        shorter = replace(spec, steps=fifth if self.warm_steps is None else int(self.warm_steps))
        return train_weightings(shorter, inputs, targets, weights, seeds, self.device, start)

    _is_finite = staticmethod(all_finite)

    def _content(self) -> State:
        check_is_fitted(self, "layers_")
        params = self.get_params(deep=False)
        names = getattr(self, "feature_names_in_", None)
        return {
            "params": {name: plain_setting(value) for name, value in params.items()},
            "n_features": self.n_features_in_,
            "feature_names": None if names is None else [str(name) for name in names],
            "encoder": self.encoder_.state(),
            "targets": self._target_state(),
            "layers": packed(self.layers_),
        }

    @classmethod
    def from_state(cls, state: State, objects: Mapping[str, Any]) -> Self:
        params = state["params"]
        self = cls(**{**params, "hidden": tuple(params["hidden"])})
        self.n_features_in_ = state["n_features"]
        if state["feature_names"] is not None:
            self.feature_names_in_ = np.asarray(state["feature_names"], dtype=object)
        self.encoder_ = TabularEncoder.from_state(state["encoder"])
        self._load_target_state(state["targets"])
        self.layers_ = [(unpack_array(W), unpack_array(b)) for W, b in state["layers"]]
        return self

    @abstractmethod
    def _target_state(self) -> State: ...

    @abstractmethod
    def _load_target_state(self, state: State) -> None: ...


def _has_probabilities(self: NetworkClassifier) -> bool:
    if self.loss == "hinge":
        raise AttributeError("a network trained with loss='hinge' has no probabilities; use loss='logistic'.")
    return True


@has_state
class NetworkClassifier(ManyClassifier, Network):
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
        Rows in each update, drawn without replacement; None, or n or more, takes all. Their weights are
        brought to mean one.
    scale
        Standardise numeric columns. Data frames may hold boolean and categorical columns; missing values
        become the column's mean and a flag.
    random_state
        Seed of the initial parameters. The order of the mini-batches is always the same.
    l2
        Adds ``l2/2·|W|²`` to the mean loss, W the weights (not the biases) of all layers for encoded rows:
        with n rows of weight one, hidden=() and no mini-batches, the logistic loss is
        LogisticRegression(C=1/(l2·n)), the squared loss Ridge(alpha=l2·n/2).
    early_stopping
        False, or the share of the training rows that is held out (always the same ones). Their weighted
        loss, without the penalty, is checked every `check_every` steps; after `patience` checks in a row
        without a new best, the network stops, each of many on its own, with the parameters of its best check.
    warm_start
        "uniform" starts every weighting, whatever its seed, from one network trained with all weights one
        (from a fixed seed; it is reused for the same rows and settings). False: random initial parameters.
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

    @available_if(_has_probabilities)
    def predict_proba(self, X: Features) -> FloatArray:
        """Probabilities (n, C) in the order of `classes_`; single sigmoids are scaled to sum to one."""
        out = self.decision_function(X)
        return probabilities(log_expit(out) if out.ndim > 1 and self.loss == "sigmoid_cross_entropy" else out)

    def _columns(self, targets: Any) -> FloatArray:
        """0/1 (n, 1) for two classes, one-hot (n, C) for more."""
        n_classes = len(self.classes_)
        wanted = [1] if n_classes == 2 else range(n_classes)
        return np.column_stack([targets == code for code in wanted]).astype(np.float64)

    def _target_state(self) -> State:
        return {"classes": self.classes_.tolist(), "dtype": self.classes_.dtype.str}

    def _load_target_state(self, state: State) -> None:
        self.classes_ = np.asarray(state["classes"], dtype=np.dtype(state["dtype"]))


@has_state
@dataclass(eq=False, repr=False)
class NetworkRegressor(ManyRegressor, Network):
    """A multilayer network for regression, trained with Adam on mini-batches and the squared loss.

    As `NetworkClassifier`; with `scale=True` the targets are standardised for training, too; predictions
    are in the units of y.
    """

    loss: str = "squared"
    _losses = ("squared",)

    def _target_state(self) -> State:
        return {"offset": self.target_offset_, "scale": self.target_scale_}

    def _load_target_state(self, state: State) -> None:
        self.target_offset_, self.target_scale_ = state["offset"], state["scale"]
