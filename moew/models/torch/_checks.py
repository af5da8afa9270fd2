"""Checks of the PyTorch estimators' settings, before training."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import torch

from moew.exceptions import InvalidInputError

_DEVICE_TYPES = ("cpu", "cuda")  # whose random generators `seeded` can set and restore


def check_settings(estimator: Any) -> None:
    """Raise on settings that cannot be used, whatever the data."""
    for name, may_be_none in (
        ("steps", False),
        ("batch_size", True),
        ("models_at_once", True),
        ("n_threads", False),
    ):
        value = getattr(estimator, name)
        whole = isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1
        if not (whole or (value is None and may_be_none)):
            raise InvalidInputError(
                f"{name} must be a whole number of 1 or more, got {value!r}.", argument=name
            )
    for name in ("loss", "optimizer", "schedule"):
        value = getattr(estimator, name)
        if value is not None and not callable(value):
            raise InvalidInputError(
                f"{name} must be None or something to call, got {value!r}.", argument=name
            )
    module_device(estimator.device)


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
