"""How many modules fit into memory together; what one of them takes is measured on one mini-batch."""

from __future__ import annotations

import torch
from torch import nn

from moew.models._shared import machine_bytes
from moew.models.torch._seeding import seeded
from moew.models.torch._train import FILLED_UP_TO, Data, Plan

_SHARE_OF_MEMORY = 0.5  # the rest is for the program itself and for what the estimate leaves out
# Of the parameters: as made, stacked, their gradients, three in the optimiser, and two during an update.
_COPIES = 8


def models_that_fit(plan: Plan, module: nn.Module, data: Data) -> int:
    """The number of models like this one that fit into the device's memory at once; at least 1.

    The device's total memory counts, not what is free now, so that the number is the same at the next call.
    """
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
