"""The devices that train networks, and how many networks fit there at once."""

from __future__ import annotations

from typing import Any

import jax

from moew.exceptions import InvalidInputError
from moew.models._shared import machine_bytes
from moew.models.networks._spec import NetworkSpec

DEVICES = ("cpu", "gpu")
# 20 candidates make four groups; a network alone costs three to four times what it costs in a group.
NETWORKS_AT_ONCE = {"cpu": 5}
NETWORKS_AT_ONCE_ELSEWHERE = 32  # a few small networks do not fill a GPU
_SHARE_OF_MEMORY = 0.5  # the rest is for the program itself and for what the estimate leaves out


def choose_devices(device: str | None) -> list[Any]:
    """All of this process's JAX devices of this kind; None takes those that JAX takes by default."""
    if device is None:
        preferred = getattr(jax.config, "jax_default_device", None)
        return [preferred] if isinstance(preferred, jax.Device) else list(jax.local_devices())
    if device not in DEVICES:
        raise InvalidInputError(
            f"device must be None or one of {DEVICES}, got {device!r}.", argument="device"
        )
    try:
        return list(jax.local_devices(backend=device))
    except RuntimeError as error:
        raise InvalidInputError(
            f"device={device!r}, but JAX finds none of this kind; it has {jax.default_backend()!r}. Install "
            "JAX for the GPU (such as pip install 'jax[cuda13]'; see JAX's installation page), or set "
            "device=None to train on what there is.",
            argument="device",
        ) from error


def networks_at_once(spec: NetworkSpec, n_rows: int, device: Any) -> int:
    """The number of networks that one program trains; it must not depend on K or on what else runs."""
    size = NETWORKS_AT_ONCE.get(device.platform, NETWORKS_AT_ONCE_ELSEWHERE)
    room = _room(spec, n_rows, device)
    while size > 1 and group_bytes(spec, n_rows, size) > room:
        size = (size + 1) // 2
    return size


def groups_at_once(spec: NetworkSpec, n_rows: int, device: Any, size: int) -> int:
    """The number of such programs that fit into memory side by side; at least 1."""
    return int(max(1, min(_room(spec, n_rows, device) // group_bytes(spec, n_rows, size), 2**20)))


def row_bytes(spec: NetworkSpec, n_rows: int) -> int:
    """Bytes that all groups share: rows, targets and mini-batches, in float32 and int32."""
    order = 0 if spec.batch_size is None else spec.steps * spec.batch_size
    return 4 * (n_rows * (spec.sizes[0] + spec.sizes[-1]) + order)


def group_bytes(spec: NetworkSpec, n_rows: int, size: int) -> int:
    """A cautious estimate of the bytes that training `size` networks takes, without the rows."""
    parameters = sum(n_out * (n_in + 1) for n_in, n_out in zip(spec.sizes[:-1], spec.sizes[1:], strict=True))
    batch = min(spec.batch_size or n_rows, n_rows)
    kept = 8  # parameters and two moments, before and after a step; gradients; the best so far
    activations = 4 * batch * sum(spec.sizes[1:])  # before and after activation, and both derivatives
    gathered = batch * (spec.sizes[0] + spec.sizes[-1])
    if spec.early_stopping is not None:
        activations += round(2 * spec.early_stopping.share * n_rows * sum(spec.sizes[1:]))
    weights = 3 * n_rows  # as given, and transposed; a mini-batch's are fewer
    return 4 * (size * (kept * parameters + activations + weights) + gathered)


def _room(spec: NetworkSpec, n_rows: int, device: Any) -> float:
    """Bytes for groups, by the total memory, because what is free now may differ at the next call."""
    return _SHARE_OF_MEMORY * memory_bytes(device) - row_bytes(spec, n_rows)


def memory_bytes(device: Any) -> float:
    """The device's total memory in bytes; infinite where unknown."""
    if device.platform == "cpu":
        return machine_bytes()
    return float((device.memory_stats() or {}).get("bytes_limit", float("inf")))
