"""Contexts that set PyTorch's random generators and its number of threads."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch


@contextlib.contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Context in which PyTorch's generators of the CPU and of `device` start from `seed`.

    Afterwards they are as before. Other GPUs are left alone, which torch.manual_seed would not do.
    """
    on_gpu = device.type == "cuda"
    with torch.random.fork_rng(devices=[device] if on_gpu else []):
        torch.default_generator.manual_seed(seed)
        if on_gpu:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
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
