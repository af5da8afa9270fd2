"""Tests on a few rows, before any training, whether modules can be trained all at once."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import stack_module_state

from moew.models._shared import BATCH_SEED
from moew.models.torch._checks import first_line
from moew.models.torch._modules import Task, make_module
from moew.models.torch._optimizers import make_optimizer, why_not_stacked
from moew.models.torch._seeding import seeded
from moew.models.torch._train import Data, Plan, stacked_losses

_ROWS = 8


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
        part.register_forward_pre_hook(lambda part, _, name=name: entered.append(_called(name, part)))
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


def _called(name: str, part: nn.Module) -> str:
    return f"{type(part).__name__} ({name!r})" if name else type(part).__name__


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
        alone = _gradients(_plain_loss(task, module, x, codes), dict(module.named_parameters()))
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


def _plain_loss(task: Task, module: nn.Module, x: Tensor, codes: Tensor) -> Tensor:
    return task.row_losses(module(x), codes).mean()


def _gradients(loss: Tensor, params: dict[str, Any]) -> tuple[Tensor, ...]:
    trained = [p for p in params.values() if p.requires_grad]
    return tuple(torch.autograd.grad(loss.sum(), trained, materialize_grads=True))


def _drawn(plan: Plan, base: nn.Module, stack: Any, x: Tensor, codes: Tensor, w: Tensor) -> Tensor:
    """Losses (K,) in training mode, with random draws from a fixed seed."""
    with seeded(BATCH_SEED, plan.device):
        losses = stacked_losses(plan.task.on(plan.device), base)(*stack, x, codes, w)
        _gradients(losses, stack[0])
    return losses.detach()
