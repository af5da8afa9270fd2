"""Where PyTorch's chance comes from, and how many threads it takes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch


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
