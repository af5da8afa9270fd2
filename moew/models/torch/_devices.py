"""The device that PyTorch computes on, its random generators and its number of threads."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from moew.exceptions import InvalidInputError

_DEVICE_TYPES = ("cpu", "cuda")  # whose random generators `seeded` can set and restore


def module_device(device: Any) -> torch.device:
    """The device to compute on; None is PyTorch's current GPU where it finds one, else the CPU."""
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
        torch.empty(0, device=chosen)
        problem = None if chosen.type in _DEVICE_TYPES else f"it is of the type {chosen.type!r}"
    except (RuntimeError, AssertionError, TypeError, NotImplementedError) as error:
        problem = first_line(error)
    if problem is not None:
        raise InvalidInputError(
            f"device {device!r} cannot be used here; choose 'cpu', 'cuda' on a machine with a GPU (where "
            f"PyTorch is built for it), or None for what there is: {problem}.",
            argument="device",
        )
    return chosen


def first_line(error: Exception) -> str:
    """The first line of an error's message, without a full stop; PyTorch's messages can be very long."""
    return (str(error).splitlines() or [""])[0].rstrip(".")


@contextlib.contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Context in which PyTorch's generators of the CPU and of `device` start from `seed`, and afterwards are
    as before; torch.manual_seed would set those of other GPUs, too."""
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
