"""Base of the network classifier and regressor: encoding, training, hidden layer, JSON state."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from moew._util.seeds import draw_seed
from moew._util.state import State, Stateful, pack_array, unpack_array
from moew.data import TabularEncoder
from moew.data._columns import is_numeric_array, row_blocks
from moew.exceptions import InvalidInputError, TrainingDivergedError
from moew.models import _shared
from moew.models.networks import _checks
from moew.models.networks._devices import choose_devices
from moew.models.networks._engine import all_finite
from moew.models.networks._groups import let_go_of_rows, train_weightings
from moew.models.networks._initial import split_rows
from moew.models.networks._predict import run_layers
from moew.models.networks._spec import EarlyStopping, Layers, NetworkSpec, layer_widths
from moew.models.networks._warm import uniform_layers
from moew.types import FloatArray, Labels, Rows


class Network(Stateful, BaseEstimator):
    """Base of the network estimators; `NetworkClassifier` describes the settings."""

    state_home: ClassVar[str] = "moew.models"
    _losses: ClassVar[tuple[str, ...]]

    layers_: Layers  # W (out, in), b (out,) for each layer
    encoder_: TabularEncoder
    n_features_in_: int

    def __init__(
        self,
        hidden: Sequence[int] = (20, 10),
        activation: str = "sigmoid",
        loss: str = "",
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
        self.hidden = hidden
        self.activation = activation
        self.loss = loss
        self.steps = steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.scale = scale
        self.random_state = random_state
        self.l2 = l2
        self.early_stopping = early_stopping
        self.patience = patience
        self.check_every = check_every
        self.warm_start = warm_start
        self.warm_steps = warm_steps
        self.precision = precision
        self.device = device

    def fit(self, X: Rows, y: Labels, sample_weight: Any = None) -> Self:
        """Train one network on X (n, columns) and y (n,), with `sample_weight` (n,) where given."""
        inputs, targets = self._learn_encoding(X, y)
        given = 1.0 if sample_weight is None else sample_weight
        weights = _check_sample_weight(given, inputs, dtype=np.float64)[None]
        spec = self._spec(inputs, targets)
        for problem in _weight_problems(spec, weights).values():
            raise problem
        seed = draw_seed(self.random_state)
        (layers,) = self._trained(spec, inputs, targets, weights, [seed])
        if not all_finite(layers):
            raise _diverged()
        self.layers_ = layers
        return self

    def fit_many(
        self, X: Rows, y: Labels, weights: FloatArray, seeds: Sequence[int | None]
    ) -> Iterator[tuple[int, Any]]:
        """Train one network for each of the K weightings (K, n); yield (k, fitted copy) in order.

        The initial parameters come from seeds[k] (None: from the estimator's own `random_state`), and the
        order of the mini-batches is the same for all. So network k depends on weights[k] and seeds[k] only,
        bit for bit, whatever is trained with it, and is the one that `fit` gives with
        `random_state=seeds[k]`. Where weights cannot be used or training diverges, the exception comes in
        place of the copy.
        """
        template = clone(self)
        inputs, targets = template._learn_encoding(X, y)
        weights = _shared.weighting_matrix(weights, len(inputs), len(seeds))
        spec = template._spec(inputs, targets)
        return self._train_many(template, spec, inputs, targets, weights, seeds)

    def _train_many(
        self,
        template: Self,
        spec: NetworkSpec,
        inputs: FloatArray,
        targets: FloatArray,
        weights: FloatArray,
        seeds: Sequence[int | None],
    ) -> Iterator[tuple[int, Any]]:
        problems = _weight_problems(spec, weights)
        good = [k for k in range(len(seeds)) if k not in problems]
        drawn = [draw_seed(self.random_state if seeds[k] is None else seeds[k]) for k in good]
        usable = weights[good] if problems else weights  # not copied without need
        trained = self._trained(spec, inputs, targets, usable, drawn) if good else iter(())
        try:
            for k, seed in enumerate(seeds):
                if k in problems:
                    yield k, problems[k]
                    continue
                layers = next(trained)
                yield k, template._copy_with(layers, seed) if all_finite(layers) else _diverged()
        finally:
            del inputs, targets, trained
            let_go_of_rows()

    def _trained(
        self,
        spec: NetworkSpec,
        inputs: FloatArray,
        targets: FloatArray,
        weights: FloatArray,
        seeds: list[int],
    ) -> Iterator[Layers]:
        if not self.warm_start:
            return train_weightings(spec, inputs, targets, weights, seeds, self.device)
        start = uniform_layers(spec, inputs, targets, self.device)
        fifth = -(-spec.steps // 5)
        shorter = replace(spec, steps=fifth if self.warm_steps is None else int(self.warm_steps))
        return train_weightings(shorter, inputs, targets, weights, seeds, self.device, start)

    def hidden_representation(self, X: Rows) -> FloatArray:
        """Activations (n, h) of the last hidden layer; the encoded rows where there is none."""
        return self._run(slice(None, -1), X, linear_end=False)

    def _outputs(self, X: Rows) -> FloatArray:
        """Linear outputs (n, C)."""
        return self._run(slice(None), X, linear_end=True)

    def _run(self, layers: slice, X: Rows, *, linear_end: bool) -> FloatArray:
        """Values (n, out) of the last of these layers."""
        check_is_fitted(self, "layers_")
        rows = _shared.check_rows(self, X, reset=False)
        # Arrays are encoded block by block; tables as a whole, so that each column is read once.
        parts = (rows[block] for block in row_blocks(rows)) if is_numeric_array(rows) else [rows]
        values = [
            run_layers(
                self.layers_[layers], self.activation, self.encoder_.transform(part), linear_end=linear_end
            )
            for part in parts
        ]
        return values[0] if len(values) == 1 else np.concatenate(values)

    def _learn_encoding(self, X: Rows, y: Labels) -> tuple[FloatArray, FloatArray]:
        """Fit the encoders; return inputs (n, D) and targets (n, C)."""
        if self.loss not in self._losses:
            raise InvalidInputError(
                f"loss of {type(self).__name__} must be one of {self._losses}, got {self.loss!r}.",
                argument="loss",
            )
        rows, y = _shared.check_rows_and_labels(self, X, y)
        targets = self._learn_targets(y)
        self.encoder_ = TabularEncoder(scale=self.scale).fit(rows)
        return self.encoder_.transform(rows, np.float32), targets  # as training computes

    @abstractmethod
    def _learn_targets(self, y: Labels) -> FloatArray: ...

    def _spec(self, inputs: FloatArray, targets: FloatArray) -> NetworkSpec:
        """The network's settings, checked before anything is trained."""
        choose_devices(self.device)
        _checks.check_warm_start(self.warm_start, self.warm_steps)
        stopping = None
        if self.early_stopping is not False:
            stopping = EarlyStopping(self.early_stopping, self.patience, self.check_every)
            split_rows(len(inputs), stopping.share)
        return NetworkSpec(
            (inputs.shape[1], *layer_widths(self.hidden), targets.shape[1]),
            self.activation,
            self.loss,
            self.steps,
            self.batch_size,
            self.learning_rate,
            self.l2,
            stopping,
            self.precision,
        )

    def _copy_with(self, layers: Layers, seed: int | None) -> Self:
        """A fitted copy of this template, whose encoders are already fitted."""
        copy = clone(self)
        fitted = {name: value for name, value in vars(self).items() if name.endswith("_")}
        vars(copy).update(fitted, layers_=layers)
        return copy if seed is None else copy.set_params(random_state=seed)  # type: ignore[no-any-return]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _content(self) -> State:
        check_is_fitted(self, "layers_")
        params = self.get_params(deep=False)
        seed = params["random_state"]
        known = isinstance(seed, int | np.integer)
        names = getattr(self, "feature_names_in_", None)
        return {
            "params": {
                **{name: v.item() if isinstance(v, np.generic) else v for name, v in params.items()},
                "hidden": list(layer_widths(self.hidden)),
                "random_state": int(seed) if known else None,  # a generator is not part of what was learned
            },
            "n_features": self.n_features_in_,
            "feature_names": None if names is None else [str(name) for name in names],
            "encoder": self.encoder_.state(),
            "targets": self._target_state(),
            "layers": [[pack_array(W), pack_array(b)] for W, b in self.layers_],
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


def _weight_problems(spec: NetworkSpec, weights: FloatArray) -> dict[int, InvalidInputError]:
    problems = dict(_shared.bad_weightings(weights))
    if spec.early_stopping is not None:
        parts = split_rows(weights.shape[1], spec.early_stopping.share)
        problems = {**dict(_checks.bad_shares(weights, *parts)), **problems}
    return problems


def _diverged() -> TrainingDivergedError:
    return TrainingDivergedError(
        "training ended with parameters that are not finite; lower learning_rate, or set scale=True."
    )
