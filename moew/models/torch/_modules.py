"""The user's module, loss, optimiser and schedule: made, checked, and stacked for K modules at once."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim.lr_scheduler import ReduceLROnPlateau

from moew.exceptions import InvalidInputError
from moew.models.torch._devices import seeded

RowLoss = Callable[[Tensor, Tensor], Tensor]  # outputs (b,) or (b, C), targets (b,) → losses (b,)
_CPU = torch.device("cpu")


@dataclass(frozen=True)
class Task:
    """What the module must output, `n_outputs` columns or one of `also_allowed`, and its loss."""

    n_outputs: int
    also_allowed: tuple[int, ...]
    is_classification: bool
    loss: RowLoss | None

    def row_losses(self, outputs: Tensor, codes: Tensor) -> Tensor:
        """Losses (b,) of a module's outputs (b,), (b, 1) or (b, C) for targets (b,).

        `codes` are class numbers or the numbers of a regression. One column is compared with numbers
        (0.0 and 1.0 for two classes), C columns with integer class numbers, as PyTorch's own losses expect.
        """
        outputs = as_columns(outputs)
        single = outputs.shape[1] == 1
        outputs = outputs[:, 0] if single else outputs
        targets = codes.to(outputs.dtype) if single else codes
        if self.loss is not None:
            return self.loss(outputs, targets)
        if not self.is_classification:
            return (outputs - targets) ** 2
        if single:
            return functional.binary_cross_entropy_with_logits(outputs, targets, reduction="none")
        return functional.cross_entropy(outputs, targets, reduction="none")

    def on(self, device: torch.device) -> Task:
        """A copy with the tensors of the loss, such as class weights, on the device."""
        if device.type == "cpu" or not isinstance(self.loss, nn.Module):
            return self
        return replace(self, loss=copy.deepcopy(self.loss).to(device))


def as_columns(outputs: Tensor) -> Tensor:
    """Outputs (b,) or (b, C) as (b, C)."""
    return outputs[:, None] if outputs.ndim == 1 else outputs


@dataclass(frozen=True)
class Maker:
    """What `make_module` needs: the user's factory, and the first rows, inputs (m, D) and codes (m,) on the
    CPU, to check outputs and losses with; `device` is where the factory may draw parameters."""

    factory: Any
    task: Task
    inputs: Tensor
    codes: Tensor
    device: torch.device


def make_module(maker: Maker, seed: int) -> nn.Module:
    """A new module on the CPU whose initial parameters come from `seed`, checked on the first rows."""
    task, inputs = maker.task, maker.inputs
    with seeded(seed, maker.device):
        module = _call(maker.factory, inputs.shape[1], task.n_outputs)
        if not isinstance(module, nn.Module):
            raise InvalidInputError(
                f"module_factory must return a torch.nn.Module, it returned {type(module).__name__}.",
                argument="module_factory",
            )
        module.to(_CPU).eval()
        with torch.no_grad():
            outputs = module(inputs.to(module_dtype(module)))
        _check_outputs(outputs, task, len(inputs))
        _check_losses(task.row_losses(outputs, maker.codes), len(inputs))
    return module.train()


def check_factory(maker: Maker) -> nn.Module:
    """A module, checked in training mode, too; raise where the factory cannot be used for these rows."""
    factory = maker.factory
    if isinstance(factory, nn.Module):
        raise InvalidInputError(
            f"module_factory must make a new module at each call, got the module {type(factory).__name__}; "
            f"pass a function such as lambda n_inputs, n_outputs: {type(factory).__name__}(…).",
            argument="module_factory",
        )
    if not callable(factory):
        raise InvalidInputError(
            f"module_factory must be something to call, got {factory!r}.", argument="module_factory"
        )
    first, second = (make_module(maker, 0) for _ in range(2))
    shared = {id(p) for p in first.parameters()} & {id(p) for p in second.parameters()}
    if first is second or shared:
        raise InvalidInputError(
            "module_factory returned the same module, or modules with common parameters, at two calls; it "
            "must make a new one at each.",
            argument="module_factory",
        )
    if not any(p.requires_grad for p in first.parameters()):
        raise InvalidInputError(
            f"the module {type(first).__name__} has no parameters to train.", argument="module_factory"
        )
    with seeded(0, maker.device):
        outputs = first(maker.inputs.to(module_dtype(first)))
    _check_outputs(outputs, maker.task, len(maker.inputs))  # some modules return more in training mode
    if not maker.task.row_losses(outputs, maker.codes).requires_grad:
        raise InvalidInputError(
            f"the losses of the module {type(first).__name__} have no gradient; module and loss must compute "
            "with PyTorch, without torch.no_grad, detach or NumPy.",
            argument="module_factory",
        )
    return second


def module_dtype(module: nn.Module) -> torch.dtype:
    """The dtype of the module: that of its first floating-point parameter, or float32."""
    found = (p.dtype for p in module.parameters() if not _lazy(p) and p.dtype.is_floating_point)
    return next(found, torch.float32)


def _lazy(parameter: nn.Parameter) -> bool:
    return isinstance(parameter, nn.parameter.UninitializedParameter)


def _call(factory: Any, n_inputs: int, n_outputs: int) -> Any:
    """Call the factory with n_inputs and n_outputs where it takes two arguments, else without arguments."""
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):
        return factory(n_inputs, n_outputs)
    if {"n_inputs", "n_outputs"} <= {p.name for p in parameters if p.kind is not p.POSITIONAL_ONLY}:
        return factory(n_inputs=n_inputs, n_outputs=n_outputs)
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    plain = [p for p in parameters if p.kind in positional and p.default is p.empty]
    required_names = [p for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    if required_names or len(plain) not in (0, 2):
        raise InvalidInputError(
            "module_factory must take (n_inputs, n_outputs), or nothing; it takes "
            f"{inspect.signature(factory)}. Bind other arguments with functools.partial.",
            argument="module_factory",
        )
    return factory(n_inputs, n_outputs) if plain else factory()


def _check_outputs(outputs: Any, task: Task, m: int) -> None:
    allowed = (task.n_outputs, *task.also_allowed)
    shape = tuple(outputs.shape) if isinstance(outputs, Tensor) else type(outputs).__name__
    fits = isinstance(outputs, Tensor) and (
        (outputs.ndim == 1 and len(outputs) == m and 1 in allowed)
        or (outputs.ndim == 2 and outputs.shape[0] == m and outputs.shape[1] in allowed)
    )
    if not fits:
        wanted = " or ".join(f"({m}, {width})" for width in allowed)
        raise InvalidInputError(
            f"the module must give outputs {wanted} for {m} rows, it gave {shape}.", argument="module_factory"
        )


def _check_losses(losses: Any, m: int) -> None:
    shape = tuple(losses.shape) if isinstance(losses, Tensor) else type(losses).__name__
    if shape != (m,):
        raise InvalidInputError(
            f"loss must give one value for each row, ({m},) for {m} rows, it gave {shape}; PyTorch's own "
            "losses do so with reduction='none'.",
            argument="loss",
        )


# These update each number from its own gradients alone, so that one optimiser of K stacked models equals K
# optimisers. LBFGS, Adafactor, Muon and others that use norms of whole tensors do not.
ELEMENTWISE = tuple(
    getattr(torch.optim, name)
    for name in ("SGD", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Adagrad", "Adadelta")
)


def make_optimizer(optimizer: Callable[..., Any] | None, module: nn.Module) -> Any:
    """The optimiser of one module; Adam with its default settings where none is given."""
    trained = [p for p in module.parameters() if p.requires_grad]
    made = torch.optim.Adam(trained) if optimizer is None else optimizer(trained)
    if not (hasattr(made, "step") and hasattr(made, "zero_grad") and hasattr(made, "param_groups")):
        raise InvalidInputError(
            "optimizer must be a function that takes the parameters and returns a torch.optim.Optimizer, "
            f"such as functools.partial(torch.optim.SGD, lr=0.1); it returned {type(made).__name__}.",
            argument="optimizer",
        )
    return made


def make_schedule(schedule: Callable[..., Any] | None, optimizer: Any) -> Any:
    """The schedule of the learning rate, stepped after each update, or None."""
    if schedule is None:
        return None
    made = schedule(optimizer)
    if isinstance(made, ReduceLROnPlateau) or not hasattr(made, "step"):
        raise InvalidInputError(
            "schedule must be a function that takes the optimizer and returns a scheduler from "
            "torch.optim.lr_scheduler that goes by the number of updates alone (not ReduceLROnPlateau); it "
            f"returned {type(made).__name__}.",
            argument="schedule",
        )
    return made


def why_not_stacked(optimizer: Any, module: nn.Module) -> str | None:
    """Why this optimiser cannot update K stacked models, or None where it can."""
    name = type(optimizer).__name__
    if type(optimizer) not in ELEMENTWISE:
        return f"the optimizer {name} does not update each number from its own gradient alone"
    if optimizer._optimizer_step_pre_hooks or optimizer._optimizer_step_post_hooks:
        return f"the optimizer {name} has step hooks, which may look at whole models"
    if any(p._backward_hooks or p._post_accumulate_grad_hooks for p in module.parameters()):
        return "a parameter has a gradient hook"
    return None


def stacked_optimizer(optimizer: Any, module: nn.Module, stacked: dict[str, Tensor]) -> Any:
    """An optimiser like that of one module, on parameters (K, …) by name. The user's function is not called
    with stacked parameters, because it may sort them by shape."""
    names = {id(p): name for name, p in module.named_parameters()}
    groups = [
        {**group, "params": [stacked[names[id(p)]] for p in group["params"]]}
        for group in optimizer.param_groups
    ]
    return type(optimizer)(groups)
