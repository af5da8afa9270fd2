"""The user's optimiser: for one module as it is, and for K at once on stacked parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import ReduceLROnPlateau

from moew.exceptions import InvalidInputError

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
    """An optimiser like that of one module, on parameters (K, …) by name: same groups, same settings.

    The user's function is not called with stacked parameters, because it may sort them by shape.
    """
    names = {id(p): name for name, p in module.named_parameters()}
    groups = [
        {**group, "params": [stacked[names[id(p)]] for p in group["params"]]}
        for group in optimizer.param_groups
    ]
    return type(optimizer)(groups)


def needs_closure(optimizer: Any) -> bool:
    """Whether `step` cannot be called without a function that computes the loss."""
    closure = inspect.signature(type(optimizer).step).parameters.get("closure")
    return closure is not None and closure.default is inspect.Parameter.empty


def update(optimizer: Any, schedule: Any, closure: Callable[[], Tensor]) -> None:
    """Do one step of the optimiser and of the schedule.

    An optimiser that needs the closure (LBFGS) computes the loss itself; for all others the gradients are
    computed before the step, so that step hooks such as gradient clipping see them.
    """
    if needs_closure(optimizer):
        optimizer.step(closure)
    else:
        closure()
        optimizer.step()
    if schedule is not None:
        schedule.step()
