"""K modules of one kind, trained on the same rows with K weightings: all at once, or one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from moew.models._shared import BATCH_SEED, batch_rows
from moew.models.torch._modules import Maker, Task
from moew.models.torch._optimizers import make_optimizer, make_schedule, stacked_optimizer, update
from moew.models.torch._seeding import seeded
from moew.types import FloatArray
from moew.weighting._normalise import mini_batch_divisor

# The kernel of a matrix product depends on its shape, and the last bits on the kernel. With the number of
# models filled up to a multiple of four, a model's bits were the same in all tries on a CPU, whatever was
# trained with it. On a GPU they were not.
FILLED_UP_TO = 4


@dataclass(frozen=True)
class Plan:
    """How modules are trained."""

    maker: Maker
    optimizer: Callable[..., Any] | None
    schedule: Callable[..., Any] | None
    steps: int
    batch_size: int | None
    device: torch.device
    dtype: torch.dtype  # of the module's numbers

    @property
    def task(self) -> Task:
        """What the modules must output, and their loss; its tensors are on the CPU."""
        return self.maker.task


@dataclass(frozen=True)
class Data:
    """The training rows on the device: inputs (n, D), codes (n,), and mini-batches (steps, b) or None."""

    inputs: Tensor
    codes: Tensor
    rows: Tensor | None
    steps: int

    @property
    def n_bytes(self) -> int:
        """The memory that they take together."""
        return sum(t.nbytes for t in (self.inputs, self.codes, self.rows) if t is not None)

    def batches(self, weights: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Inputs (b, D), codes (b,) and weights (K, b) of each step, the weights with sum one.

        Where all weights of a mini-batch are zero they stay zero, and it adds no gradient.
        """
        for step in range(self.steps):
            chosen = slice(None) if self.rows is None else self.rows[step]
            w = weights[:, chosen]
            total = w.sum(dim=1, keepdim=True)
            yield self.inputs[chosen], self.codes[chosen], w / mini_batch_divisor(total, torch.where)


def load_data(plan: Plan, inputs: Tensor, codes: Tensor) -> Data:
    """The rows on the device, in the module's dtype, with the order of the mini-batches."""
    if codes.is_floating_point():
        codes = codes.to(plan.dtype)
    drawn = batch_rows(len(inputs), plan.batch_size, plan.steps, BATCH_SEED)
    rows = None if drawn is None else torch.from_numpy(drawn.astype(np.int64)).to(plan.device)
    return Data(inputs.to(plan.device, plan.dtype), codes.to(plan.device), rows, plan.steps)


def load_weights(plan: Plan, weights: FloatArray) -> Tensor:
    """Weights (K, n) on the device, divided by the largest: only ratios count, and none can overflow."""
    ratios = weights / weights.max(axis=1, keepdims=True)
    return torch.from_numpy(ratios).to(plan.device, plan.dtype)


def train_one(plan: Plan, module: nn.Module, data: Data, weights: Tensor) -> None:
    """Train one module in place, in plain PyTorch, with weights (1, n); afterwards it is on the CPU."""
    module.to(plan.device).train()
    task = plan.task.on(plan.device)
    with seeded(BATCH_SEED, plan.device):
        optimizer = make_optimizer(plan.optimizer, module)
        schedule = make_schedule(plan.schedule, optimizer)
        for x, codes, w in data.batches(weights):

            def closure(x: Tensor = x, codes: Tensor = codes, w: Tensor = w) -> Tensor:
                optimizer.zero_grad()
                loss = (w[0] * task.row_losses(module(x), codes)).sum()
                torch.autograd.backward((loss,))
                return loss

            update(optimizer, schedule, closure)
    _finish(module)


def train_at_once(plan: Plan, modules: Sequence[nn.Module], data: Data, weights: Tensor, most: int) -> None:
    """Train K modules in place with weights (K, n), as one model with stacked parameters (K, …)."""
    K = len(modules)
    size = min(-(-K // FILLED_UP_TO) * FILLED_UP_TO, most) if plan.device.type == "cpu" else K
    members = [min(k, K - 1) for k in range(max(size, K))]  # copies of the last one fill up, and are dropped
    base = modules[0].to(plan.device).train()
    for module in modules:
        module.to(plan.device)
    with seeded(BATCH_SEED, plan.device):
        params, buffers = stack_module_state([modules[k] for k in members])
        losses_of = stacked_losses(plan.task.on(plan.device), base)
        optimizer = stacked_optimizer(make_optimizer(plan.optimizer, base), base, params)
        schedule = make_schedule(plan.schedule, optimizer)
        for x, codes, w in data.batches(weights[members]):

            def closure(x: Tensor = x, codes: Tensor = codes, w: Tensor = w) -> Tensor:
                optimizer.zero_grad()
                # The models share nothing, so the gradient of the sum contains that of each.
                loss = losses_of(params, buffers, x, codes, w).sum()
                torch.autograd.backward((loss,))
                return loss

            update(optimizer, schedule, closure)
    with torch.no_grad():
        for k, module in enumerate(modules):
            for name, parameter in module.named_parameters():
                parameter.copy_(params[name][k])
    for module in modules:
        _finish(module)


def stacked_losses(task: Task, base: nn.Module) -> Callable[..., Tensor]:
    """(params (K, …), buffers (K, …), inputs (b, D), codes (b,), weights (K, b)) → losses (K,).

    Random draws (dropout) are the same for all K, and the same as for one model alone.
    """

    def loss(params: Any, buffers: Any, x: Tensor, codes: Tensor, w: Tensor) -> Tensor:
        outputs = functional_call(base, (params, buffers), (x,))
        return (w * task.row_losses(outputs, codes)).sum()

    stacked: Callable[..., Tensor] = vmap(loss, in_dims=(0, 0, None, None, 0), randomness="same")
    return stacked


def _finish(module: nn.Module) -> None:
    module.to("cpu").eval()
    module.zero_grad(set_to_none=True)


def is_finite(module: nn.Module) -> bool:
    """Whether every number of the trained module is finite."""
    numbers = (*module.parameters(), *module.buffers())
    return all(bool(torch.isfinite(t).all()) for t in numbers if t.is_floating_point())
