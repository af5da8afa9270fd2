"""Where networks are trained, and how many at once fit there."""

from __future__ import annotations

from typing import Any

import jax

from moew.exceptions import InvalidInputError
from moew.models._shared import machine_bytes
from moew.models.networks._spec import NetworkSpec

DEVICES = ("cpu", "gpu")
# 20 candidates are four groups; one network alone costs three to four times what it could.
NETWORKS_AT_ONCE = {"cpu": 5}
NETWORKS_AT_ONCE_ELSEWHERE = 32  # a GPU is not filled by a few small networks
_SHARE_OF_MEMORY = 0.5  # the rest is for the program around, and for what the estimate does not know


def choose_devices(device: str | None) -> list[Any]:
    """JAX's devices of this kind, all that this process has; None takes those that JAX would."""
    if device is None:
        preferred = getattr(jax.config, "jax_default_device", None)
        return [preferred] if isinstance(preferred, jax.Device) else list(jax.local_devices())
    if device not in DEVICES:
        raise InvalidInputError(f"device must be None or one of {DEVICES}, got {device!r}.")
    try:
        return list(jax.local_devices(backend=device))
    except RuntimeError as error:
        raise InvalidInputError(
            f"device={device!r}, but JAX finds none of this kind; it has {jax.default_backend()!r}. Install "
            "JAX for the GPU (such as pip install 'jax[cuda13]'; see JAX's installation page), or set "
            "device=None to train on what there is."
        ) from error


def networks_at_once(spec: NetworkSpec, n_rows: int, device: Any) -> int:
    """How many networks one compiled program trains, which must not depend on K or on what else runs."""
    size = NETWORKS_AT_ONCE.get(device.platform, NETWORKS_AT_ONCE_ELSEWHERE)
    room = _room(spec, n_rows, device)
    while size > 1 and group_bytes(spec, n_rows, size) > room:
        size = (size + 1) // 2
    return size


def groups_at_once(spec: NetworkSpec, n_rows: int, device: Any, size: int) -> int:
    """How many such programs fit side by side; 1 or more."""
    return int(max(1, min(_room(spec, n_rows, device) // group_bytes(spec, n_rows, size), 2**20)))


def row_bytes(spec: NetworkSpec, n_rows: int) -> int:
    """What all groups share: rows, targets and the order of the mini-batches, in float32 and int32."""
    order = 0 if spec.batch_size is None else spec.steps * spec.batch_size
    return 4 * (n_rows * (spec.sizes[0] + spec.sizes[-1]) + order)


def group_bytes(spec: NetworkSpec, n_rows: int, size: int) -> int:
    """An estimate of what the training of `size` networks takes beside the rows, on the safe side."""
    parameters = sum(n_out * (n_in + 1) for n_in, n_out in zip(spec.sizes[:-1], spec.sizes[1:], strict=True))
    batch = min(spec.batch_size or n_rows, n_rows)
    kept = 8  # parameters and two moments, before and after a step; gradients; the best so far
    activations = 4 * batch * sum(spec.sizes[1:])  # before, after, and both derivatives
    gathered = batch * (spec.sizes[0] + spec.sizes[-1])
    if spec.early_stopping is not None:
        activations += round(2 * spec.early_stopping.share * n_rows * sum(spec.sizes[1:]))
    weights = 3 * n_rows  # as given, and turned; a mini-batch's are fewer
    return 4 * (size * (kept * parameters + activations + weights) + gathered)


def _room(spec: NetworkSpec, n_rows: int, device: Any) -> float:
    """Bytes for groups; of the machine's whole memory, as what is free now may differ at the next call."""
    return _SHARE_OF_MEMORY * memory_bytes(device) - row_bytes(spec, n_rows)


def memory_bytes(device: Any) -> float:
    """Bytes that the device has; infinitely many where it does not tell."""
    if device.platform == "cpu":
        return machine_bytes()
    return float((device.memory_stats() or {}).get("bytes_limit", float("inf")))


def name_of_device(device: str | None) -> str:
    """What the chosen device calls itself, such as "cpu" or "NVIDIA H200"."""
    return str(choose_devices(device)[0].device_kind)
