"""K modules of one kind, trained on the same rows with K weightings: all at once, or one after the other.

Before training it is tried on a few rows whether all at once gives the same, and measured on one mini-batch
how many fit into memory.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from moew.models._shared import BATCH_SEED, batch_rows, machine_bytes
from moew.models.torch._devices import first_line, seeded
from moew.models.torch._modules import (
    Maker,
    Task,
    make_module,
    make_optimizer,
    make_schedule,
    stacked_optimizer,
    why_not_stacked,
)
from moew.types import FloatArray
from moew.weighting import mini_batch_divisor

# The kernel of a matrix product depends on its shape, and the last bits on the kernel. With the number of
# models filled up to a multiple of four, a model's bits were the same in all tries on a CPU, whatever was
# trained with it. On a GPU they were not.
FILLED_UP_TO = 4
_ROWS = 8  # on which it is tried whether all at once gives the same
_SHARE_OF_MEMORY = 0.5  # the rest is for the program itself and for what the estimate leaves out
# Of the parameters: as made, stacked, their gradients, three in the optimiser, and two during an update.
_COPIES = 8


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
        """Inputs (b, D), codes (b,) and weights (K, b) of each step, the weights with sum one, or all
        zero."""
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
        _optimize(plan, optimizer, lambda x, y, w: w[0] * task.row_losses(module(x), y), data, weights)
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
        _optimize(plan, optimizer, partial(losses_of, params, buffers), data, weights[members])
    with torch.no_grad():
        for k, module in enumerate(modules):
            for name, parameter in module.named_parameters():
                parameter.copy_(params[name][k])
    for module in modules:
        _finish(module)


def _optimize(
    plan: Plan, optimizer: Any, losses_of: Callable[..., Tensor], data: Data, weights: Tensor
) -> None:
    """Do all steps of the optimiser and of the schedule on the sum of the losses of (inputs, codes, weights).

    Models that are trained at once share nothing, so the gradient of the sum contains that of each. An
    optimiser that needs a closure (LBFGS) computes the loss itself; for all others the gradients are computed
    before the step, so that step hooks such as gradient clipping see them.
    """
    schedule = make_schedule(plan.schedule, optimizer)
    wanted = inspect.signature(type(optimizer).step).parameters.get("closure")
    needs_closure = wanted is not None and wanted.default is inspect.Parameter.empty
    for batch in data.batches(weights):

        def closure(batch: Any = batch) -> Tensor:
            optimizer.zero_grad()
            loss = losses_of(*batch).sum()
            torch.autograd.backward((loss,))
            return loss

        if needs_closure:
            optimizer.step(closure)
        else:
            closure()
            optimizer.step()
        if schedule is not None:
            schedule.step()


def stacked_losses(task: Task, base: nn.Module) -> Callable[..., Tensor]:
    """(params (K, …), buffers (K, …), inputs (b, D), codes (b,), weights (K, b)) → losses (K,); random draws
    (dropout) are the same for all K, and for one model alone."""

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


def why_one_by_one(plan: Plan, modules: Sequence[nn.Module], data: Data) -> str | None:
    """Why the modules must be trained one after the other, or None where all at once gives the same."""
    fresh = make_module(plan.maker, 0)  # a copy would lose its hooks, and the optimiser may add some
    reason = why_not_stacked(make_optimizer(plan.optimizer, fresh), fresh)
    if reason is not None:
        return reason
    first, last = (copy.deepcopy(module).to(plan.device) for module in (modules[0], modules[-1]))
    x, codes = data.inputs[:_ROWS], data.codes[:_ROWS]
    with seeded(BATCH_SEED, plan.device):
        changed = _changed_buffer(first, x)
    if changed is not None:
        return f"it updates its buffer {changed!r} in training, as BatchNorm does"
    entered: list[str] = []  # the submodules in the order of their calls: an error comes from the last
    for name, part in first.named_modules():
        called = f"{type(part).__name__} ({name!r})" if name else type(part).__name__
        part.register_forward_pre_hook(lambda *_, called=called: entered.append(called))
    # PyTorch's fast path for attention in evaluation mode has no gradient; training does not use it.
    short_cut = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        return _difference(plan, first, last, x, codes)
    except Exception as error:  # whatever stops vmap: plain training works, or raises the real error
        where = f" in {entered[-1]}" if entered else ""
        return f"torch.func.vmap cannot take it: {type(error).__name__}{where}: {first_line(error)}"
    finally:
        torch.backends.mha.set_fastpath_enabled(short_cut)


def _changed_buffer(module: nn.Module, x: Tensor) -> str | None:
    tried = copy.deepcopy(module).train()
    before = {name: buffer.clone() for name, buffer in tried.named_buffers()}
    with torch.no_grad():
        tried(x)
    after = dict(tried.named_buffers())
    return next((name for name in before if not torch.equal(before[name], after[name])), None)


def _difference(plan: Plan, first: nn.Module, last: nn.Module, x: Tensor, codes: Tensor) -> str | None:
    """What differs between two models trained at once and each trained alone, or None."""
    task = plan.task.on(plan.device)
    w = torch.full((2, len(x)), 1.0 / len(x), dtype=x.dtype, device=x.device)
    pair = stack_module_state([first, last])
    # In evaluation mode nothing is random, so losses and gradients must be those of plain PyTorch.
    first.eval(), last.eval()
    together = _gradients(stacked_losses(task, first)(*pair, x, codes, w), pair[0])
    for k, module in enumerate((first, last)):
        alone = _gradients(task.row_losses(module(x), codes).mean(), dict(module.named_parameters()))
        if not all(_close(t[k], a) for t, a in zip(together, alone, strict=True)):
            return "torch.func.vmap gives other gradients than the module itself"
    first.train()
    company = _drawn(plan, first, pair, x, codes, w)
    single = stack_module_state([last])
    if not _close(company[1:], _drawn(plan, first, single, x, codes, w[:1])):
        return "what it draws at random depends on how many models are trained at once"
    return None


def _close(a: Tensor, b: Tensor) -> bool:
    eps = torch.finfo(a.dtype).eps  # large for half precision
    return bool(torch.allclose(a, b, rtol=max(1e-3, 4 * eps), atol=max(1e-5, eps)))


def _gradients(loss: Tensor, params: dict[str, Any]) -> tuple[Tensor, ...]:
    trained = [p for p in params.values() if p.requires_grad]
    return tuple(torch.autograd.grad(loss.sum(), trained, materialize_grads=True))


def _drawn(plan: Plan, base: nn.Module, stack: Any, x: Tensor, codes: Tensor, w: Tensor) -> Tensor:
    """Losses (K,) in training mode, with random draws from a fixed seed."""
    with seeded(BATCH_SEED, plan.device):
        losses = stacked_losses(plan.task.on(plan.device), base)(*stack, x, codes, w)
        _gradients(losses, stack[0])
    return losses.detach()


def models_that_fit(plan: Plan, module: nn.Module, data: Data) -> int:
    """The number of models like this one that fit into the device's total memory at once, at least 1; what is
    free now does not count, so that the number is the same at the next call."""
    room = _SHARE_OF_MEMORY * device_bytes(plan.device) - data.n_bytes
    most = int(max(1, min(room // model_bytes(plan, module, data), 2**20)))
    return most if most < FILLED_UP_TO else most // FILLED_UP_TO * FILLED_UP_TO


def model_bytes(plan: Plan, module: nn.Module, data: Data) -> int:
    """A cautious estimate of the bytes that training one model takes, without the rows."""
    own: int = sum(t.nbytes for t in (*module.parameters(), *module.buffers()))
    weights: int = data.inputs.element_size() * 3 * len(data.inputs)
    in_numpy = 8 * len(data.inputs)
    # What the forward pass keeps, its gradients, and intermediate values.
    return _COPIES * own + weights + in_numpy + 3 * saved_bytes(plan, module, data)


def saved_bytes(plan: Plan, module: nn.Module, data: Data) -> int:
    """Bytes that one mini-batch's forward pass keeps for the backward pass, parameters left out."""
    module.to(plan.device).train()
    own = {t.untyped_storage().data_ptr() for t in (*module.parameters(), *module.buffers())}
    kept: dict[int, int] = {}  # by address: what several operations keep counts once

    def note(saved: torch.Tensor) -> torch.Tensor:
        storage = saved.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return saved

    chosen = slice(None) if data.rows is None else data.rows[0]
    with seeded(0, plan.device), torch.autograd.graph.saved_tensors_hooks(note, lambda saved: saved):
        losses = plan.task.on(plan.device).row_losses(module(data.inputs[chosen]), data.codes[chosen])
    total = sum(size for place, size in kept.items() if place not in own)
    del losses  # until here its graph held what was kept, so that no address was reused
    return total


def device_bytes(device: torch.device) -> float:
    """The device's total memory in bytes."""
    if device.type == "cpu":
        return machine_bytes()
    return float(torch.cuda.get_device_properties(device).total_memory)
