"""Base of the PyTorch classifier and regressor: encoding, training one or many, outputs of the module."""

from __future__ import annotations

import copy
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import _check_sample_weight, check_is_fitted
from torch import Tensor, nn

from moew._util.seeds import draw_seed
from moew.data import TabularEncoder
from moew.exceptions import MoewWarning, TrainingDivergedError
from moew.models import _shared
from moew.models.torch import _checks
from moew.models.torch._dry_run import why_one_by_one
from moew.models.torch._memory import models_that_fit
from moew.models.torch._modules import Maker, Task, as_columns, check_factory, make_module, module_dtype
from moew.models.torch._optimizers import make_optimizer, make_schedule
from moew.models.torch._seeding import threads
from moew.models.torch._train import Data, Plan, is_finite, load_data, load_weights, train_at_once, train_one
from moew.types import FloatArray, Labels, Rows

_TRIED_ROWS = 3  # not 1 or 2, which wrong outputs could have as their shape
_ROWS_AT_ONCE = 16_384  # bounds the memory of a prediction


class TorchEstimator(BaseEstimator):
    """Base of the PyTorch estimators; `TorchClassifier` describes the settings."""

    module_: nn.Module  # on the CPU, in evaluation mode
    encoder_: TabularEncoder
    n_features_in_: int

    def __init__(
        self,
        module_factory: Callable[..., nn.Module],
        *,
        loss: Callable[[Tensor, Tensor], Tensor] | None = None,
        optimizer: Callable[..., Any] | None = None,
        schedule: Callable[[Any], Any] | None = None,
        steps: int = 1000,
        batch_size: int | None = 100,
        scale: bool = True,
        device: Any = None,
        models_at_once: int | None = None,
        n_threads: int = 1,
        random_state: Any = None,
    ) -> None:
        self.module_factory = module_factory
        self.loss = loss
        self.optimizer = optimizer
        self.schedule = schedule
        self.steps = steps
        self.batch_size = batch_size
        self.scale = scale
        self.device = device
        self.models_at_once = models_at_once
        self.n_threads = n_threads
        self.random_state = random_state

    def fit(self, X: Rows, y: Labels, sample_weight: Any = None) -> Self:
        """Train one module on X (n, columns) and y (n,), with `sample_weight` (n,) where given."""
        plan, data = self._prepare(X, y)
        given = 1.0 if sample_weight is None else sample_weight
        weights = _check_sample_weight(given, data.inputs, dtype=np.float64)[None]
        for _, problem in _shared.bad_weightings(weights):
            raise problem
        with threads(self.n_threads):
            module = make_module(plan.maker, draw_seed(self.random_state))
            train_one(plan, module, data, load_weights(plan, weights))
        if not is_finite(module):
            raise _diverged()
        self.module_ = module
        return self

    def fit_many(
        self, X: Rows, y: Labels, weights: FloatArray, seeds: Sequence[int | None]
    ) -> Iterator[tuple[int, Any]]:
        """Train one module for each of the K weightings (K, n); yield (k, fitted copy) in order.

        The initial parameters come from seeds[k] (None: from the estimator's own `random_state`), and all
        modules have the same mini-batches and dropout masks. So module k depends on weights[k] and seeds[k]
        only, up to rounding, and is the one that `fit` gives with `random_state=seeds[k]`. Where weights
        cannot be used or training diverges, the exception comes in place of the copy. Modules and optimisers
        that cannot be trained at once are trained one after the other, with a warning that says why.
        """
        template = clone(self)
        plan, data = template._prepare(X, y)
        weights = _shared.weighting_matrix(weights, len(data.inputs), len(seeds))
        return self._train_many(template, plan, data, weights, seeds)

    def _train_many(
        self, template: Self, plan: Plan, data: Data, weights: FloatArray, seeds: Sequence[int | None]
    ) -> Iterator[tuple[int, Any]]:
        problems = dict(_shared.bad_weightings(weights))
        good = [k for k in range(len(seeds)) if k not in problems]
        drawn = [draw_seed(self.random_state if seeds[k] is None else seeds[k]) for k in good]
        trained = template._train(plan, data, weights[good], drawn)
        for k, seed in enumerate(seeds):
            if k in problems:
                yield k, problems[k]
                continue
            module = next(trained)
            yield k, template._copy_with(module, seed) if is_finite(module) else _diverged()

    def _train(
        self, plan: Plan, data: Data, weights: FloatArray, seeds: Sequence[int]
    ) -> Iterator[nn.Module]:
        """Yield one trained module for each of the weights (K, n), in order."""
        most = self.models_at_once or self._models_that_fit(plan, data)
        at_once = most > 1
        for start in range(0, len(seeds), most):
            group = range(start, min(start + most, len(seeds)))
            # The context ends before each yield, because the number of threads is that of the whole process.
            with threads(self.n_threads):
                modules = [make_module(plan.maker, seeds[k]) for k in group]
                W = load_weights(plan, weights[group.start : group.stop])
                if start == 0 and at_once:
                    reason = why_one_by_one(plan, modules, data)
                    at_once = reason is None
                    if reason is not None and len(seeds) > 1:
                        _warn_of_one_by_one(modules[0], reason)
                if at_once:
                    train_at_once(plan, modules, data, W, most)
            for place, module in enumerate(modules):
                if not at_once:
                    with threads(self.n_threads):
                        train_one(plan, module, data, W[place : place + 1])
                yield module

    def _models_that_fit(self, plan: Plan, data: Data) -> int:
        with threads(self.n_threads):
            return models_that_fit(plan, make_module(plan.maker, 0), data)

    def _prepare(self, X: Rows, y: Labels) -> tuple[Plan, Data]:
        """Check all that can be checked without training; return how to train and on what."""
        _checks.check_settings(self)
        rows, y = _shared.check_rows_and_labels(self, X, y)
        codes = torch.from_numpy(self._learn_targets(y))
        self.encoder_ = TabularEncoder(scale=self.scale).fit(rows)
        few = torch.from_numpy(self.encoder_.transform(_first(rows, _TRIED_ROWS)))
        device = _checks.module_device(self.device)
        maker = Maker(self.module_factory, self._task(), few, codes[:_TRIED_ROWS], device)
        with threads(self.n_threads):
            tried = check_factory(maker)
        make_schedule(self.schedule, make_optimizer(self.optimizer, tried))
        dtype = module_dtype(tried)
        plan = Plan(maker, self.optimizer, self.schedule, self.steps, self.batch_size, device, dtype)
        inputs = self.encoder_.transform(rows, np.float64 if dtype == torch.float64 else np.float32)
        return plan, load_data(plan, torch.from_numpy(inputs), codes)

    @abstractmethod
    def _learn_targets(self, y: Labels) -> Any: ...

    @abstractmethod
    def _task(self) -> Task: ...

    def _copy_with(self, module: nn.Module, seed: int | None) -> Self:
        """A fitted copy of this template, whose encoders are already fitted."""
        made = clone(self)
        fitted = {name: value for name, value in vars(self).items() if name.endswith("_")}
        vars(made).update(fitted, module_=module)
        return made if seed is None else made.set_params(random_state=seed)  # type: ignore[no-any-return]

    def _outputs(self, X: Rows) -> FloatArray:
        """The module's outputs (n, C) as float64."""
        check_is_fitted(self, "module_")
        encoded = self.encoder_.transform(_shared.check_rows(self, X, reset=False))
        device = _checks.module_device(self.device)
        module = self.module_ if device.type == "cpu" else copy.deepcopy(self.module_).to(device)
        inputs = torch.from_numpy(encoded).to(module_dtype(module))
        with torch.no_grad(), threads(self.n_threads):
            parts = [
                as_columns(module(inputs[start : start + _ROWS_AT_ONCE].to(device))).cpu()
                for start in range(0, max(len(inputs), 1), _ROWS_AT_ONCE)
            ]
        return np.asarray(torch.cat(parts).to(torch.float64).numpy())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _first(rows: Rows, m: int) -> Rows:
    """The first m rows; by `iloc` for a data frame, whose plain slices may go by its index."""
    return rows.iloc[:m] if hasattr(rows, "iloc") else rows[:m]


def _warn_of_one_by_one(module: nn.Module, reason: str) -> None:
    warnings.warn(
        f"{type(module).__name__} modules are trained one after the other: {reason}. Set models_at_once=1 to "
        "silence this.",
        MoewWarning,
        stacklevel=2,
    )


def _diverged() -> TrainingDivergedError:
    return TrainingDivergedError(
        "training ended with parameters that are not finite; lower the optimizer's learning rate, or set "
        "scale=True."
    )
