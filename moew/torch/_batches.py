"""The order of the mini-batches, and where PyTorch's chance comes from."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray

BATCH_SEED = 0  # not the candidate's: all candidates see the same mini-batches and the same dropout masks


def batch_rows(n: int, batch_size: int | None, steps: int) -> NDArray[np.int32] | None:
    """The rows (steps, batch_size) of every mini-batch, or None where each step takes all n rows.

    The order in which moew's own networks take them: the rows are shuffled, cut into mini-batches without
    replacement and shuffled again when fewer than `batch_size` are left.
    """
    if batch_size is None or batch_size >= n:
        return None
    rng = np.random.default_rng([BATCH_SEED, n, batch_size])
    per_epoch = n // batch_size
    rows = np.empty((-(-steps // per_epoch), per_epoch * batch_size), dtype=np.int32)
    order = np.arange(n, dtype=np.int32)
    for epoch in rows:
        rng.shuffle(order)
        epoch[:] = order[: epoch.size]
    return rows.reshape(-1, batch_size)[:steps]


@contextlib.contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Context in which PyTorch's own generators start from `seed`; afterwards they are as they were."""
    on_gpu = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=on_gpu):
        torch.manual_seed(seed)
        yield


@contextlib.contextmanager
def threads(number: int) -> Iterator[None]:
    """Context in which PyTorch computes with `number` threads on the CPU."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
