"""PyTorch modules as ordinary scikit-learn estimators that train many example weightings at once."""

from __future__ import annotations

import copy
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from moew._util.checks import COUNT, Wanted, check_parameters
from moew.exceptions import MoewWarning
from moew.models._shared import ManyClassifier, ManyEstimator, ManyRegressor, check_rows, probabilities
from moew.models.torch._devices import module_device, threads
from moew.models.torch._modules import (
    Maker,
    Task,
    as_columns,
    check_factory,
    make_module,
    make_optimizer,
    make_schedule,
    module_dtype,
)
from moew.models.torch._train import (
    Data,
    Plan,
    is_finite,
    load_data,
    load_weights,
    models_that_fit,
    train_at_once,
    train_one,
    why_one_by_one,
)
from moew.types import Features, FloatArray

_TRIED_ROWS = 3  # not 1 or 2, which wrong outputs could have as their shape
_ROWS_AT_ONCE = 16_384  # bounds the memory of a prediction
_CALLABLE = Wanted("must be None or something to call", lambda value: value is None or callable(value))


@dataclass(eq=False, repr=False)
class TorchEstimator(ManyEstimator):
    """Base of the PyTorch estimators; `TorchClassifier` describes the settings."""

    _attribute: ClassVar[str] = "module_"
    _rate: ClassVar[str] = "the optimizer's learning rate"

    module_factory: Callable[..., nn.Module]
    _: KW_ONLY
    loss: Callable[[Tensor, Tensor], Tensor] | None = None
    optimizer: Callable[..., Any] | None = None
    schedule: Callable[[Any], Any] | None = None
    steps: int = 1000
    batch_size: int | None = 100
    scale: bool = True
    device: Any = None
    models_at_once: int | None = None
    n_threads: int = 1
    random_state: Any = None

    module_: nn.Module = field(init=False)  # on the CPU, in evaluation mode

    def _check_settings(self) -> None:
        many = COUNT.or_none()
        check_parameters(self, steps=COUNT, batch_size=many, models_at_once=many, n_threads=COUNT)
        check_parameters(self, loss=_CALLABLE, optimizer=_CALLABLE, schedule=_CALLABLE)
        module_device(self.device)

    def _plan(self, rows: Features, targets: Any) -> tuple[Plan, Data]:
        codes = torch.from_numpy(targets)
        few = torch.from_numpy(self.encoder_.transform(_first(rows, _TRIED_ROWS)))
        device = module_device(self.device)
        maker = Maker(self.module_factory, self._task(), few, codes[:_TRIED_ROWS], device)
        with threads(self.n_threads):
            tried = check_factory(maker)
        make_schedule(self.schedule, make_optimizer(self.optimizer, tried))
        dtype = module_dtype(tried)
        plan = Plan(maker, self.optimizer, self.schedule, self.steps, self.batch_size, device, dtype)
        inputs = self.encoder_.transform(rows, np.float64 if dtype == torch.float64 else np.float32)
        return plan, load_data(plan, torch.from_numpy(inputs), codes)

    @abstractmethod
    def _task(self) -> Task: ...

    def _train(
        self, plan: tuple[Plan, Data], weights: FloatArray, seeds: Sequence[int], alone: bool = False
    ) -> Iterator[nn.Module]:
        how, data = plan
        most = 1 if alone else self.models_at_once or self._models_that_fit(how, data)
        at_once = most > 1
        for start in range(0, len(seeds), most):
            group = range(start, min(start + most, len(seeds)))
            # The context ends before each yield, because the number of threads is that of the whole process.
            with threads(self.n_threads):
                modules = [make_module(how.maker, seeds[k]) for k in group]
                W = load_weights(how, weights[group.start : group.stop])
                if start == 0 and at_once:
                    reason = why_one_by_one(how, modules, data)
                    at_once = reason is None
                    if reason is not None and len(seeds) > 1:
                        _warn_of_one_by_one(modules[0], reason)
                if at_once:
                    train_at_once(how, modules, data, W, most)
            for place, module in enumerate(modules):
                if not at_once:
                    with threads(self.n_threads):
                        train_one(how, module, data, W[place : place + 1])
                yield module

    def _models_that_fit(self, plan: Plan, data: Data) -> int:
        with threads(self.n_threads):
            return models_that_fit(plan, make_module(plan.maker, 0), data)

    _is_finite = staticmethod(is_finite)

    def _outputs(self, X: Features) -> FloatArray:
        check_is_fitted(self, "module_")
        encoded = self.encoder_.transform(check_rows(self, X, reset=False))
        device = module_device(self.device)
        module = self.module_ if device.type == "cpu" else copy.deepcopy(self.module_).to(device)
        inputs = torch.from_numpy(encoded).to(module_dtype(module))
        with torch.no_grad(), threads(self.n_threads):
            parts = [
                as_columns(module(inputs[start : start + _ROWS_AT_ONCE].to(device))).cpu()
                for start in range(0, max(len(inputs), 1), _ROWS_AT_ONCE)
            ]
        return np.asarray(torch.cat(parts).to(torch.float64).numpy())


def _first(rows: Features, m: int) -> Features:
    """The first m rows; by `iloc` for a data frame, whose plain slices may go by its index."""
    return rows.iloc[:m] if hasattr(rows, "iloc") else rows[:m]


def _warn_of_one_by_one(module: nn.Module, reason: str) -> None:
    warnings.warn(
        f"{type(module).__name__} modules are trained one after the other: {reason}. Set models_at_once=1 to "
        "silence this.",
        MoewWarning,
        stacklevel=2,
    )


class TorchClassifier(ManyClassifier, TorchEstimator):
    """A PyTorch module for two or more classes, trained on mini-batches with example weights.

    Parameters
    ----------
    module_factory
        Function of (n_inputs, n_outputs), or without arguments, that returns a new torch.nn.Module. The
        module maps encoded rows (b, n_inputs) to scores (b, n_outputs): one column for two classes (two are
        accepted, too), else one for each class.
    loss
        Function of (outputs, targets) that returns one loss (b,) for each row. One column of outputs is
        passed as (b,) with targets 0.0 and 1.0, several as (b, C) with integer class numbers, so PyTorch's
        own losses can be used with reduction="none". None: cross-entropy.
    optimizer
        Function of the parameters that returns a torch.optim.Optimizer, such as
        functools.partial(torch.optim.SGD, lr=0.1). None: Adam with its default settings.
    schedule
        Function of the optimizer that returns a scheduler of the learning rate, stepped at each update.
    steps
        The number of updates of the parameters.
    batch_size
        Rows in each update, drawn without replacement; None, or a number of n or more, takes all. Their
        weights are brought to mean one in each mini-batch.
    scale
        Standardise numeric columns. Data frames may hold boolean and categorical columns; missing values
        become the column's mean and a flag.
    device
        The device to compute on, such as "cpu" or "cuda"; None is a GPU where there is one. Fitted modules
        (`module_`) are on the CPU.
    models_at_once
        The most models that `fit_many` trains together; None: as many as half of the device's memory holds.
        1 trains them one after the other.
    n_threads
        PyTorch's threads on the CPU. Their number changes the last bits of sums.
    random_state
        Seed of the initial parameters. Mini-batches and dropout masks are always the same.
    """

    def predict_proba(self, X: Features) -> FloatArray:
        """Sigmoid or softmax (n, C) of the outputs, in the order of `classes_`.

        They are probabilities where the loss is a cross-entropy; with another loss, only scores in 0 to 1.
        """
        return probabilities(self.decision_function(X))

    def _task(self) -> Task:
        two = len(self.classes_) == 2
        return Task(1 if two else len(self.classes_), (2,) if two else (), True, self.loss)


class TorchRegressor(ManyRegressor, TorchEstimator):
    """A PyTorch module for regression, trained on mini-batches with example weights.

    As `TorchClassifier`; n_outputs is 1, the loss gets outputs and targets (b,) and is the squared error
    where None is given. With `scale=True` the targets are standardised for training, too; predictions are
    in the units of y.
    """

    def _task(self) -> Task:
        return Task(1, (), False, self.loss)
