"""A kernel for a GPU (Pallas, Triton) that trains small networks whole, each in one program.

XLA writes every activation of every network to the GPU's memory and reads it again, and the gradients
besides. Here a mini-batch is worked on in registers, and a launch is a whole training.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable
from typing import Any

import jax

from moew.models.networks._engine import TrainingRows, recipe_for, train_on
from moew.models.networks._layers import Parameters
from moew.models.networks._loop import Batches
from moew.models.networks._spec import NetworkSpec

TrainOn = Callable[[NetworkSpec, TrainingRows, Any, Parameters], Parameters]

_KERNEL_PRECISIONS = ("tf32", "bfloat16")  # the kernel's products are those of the tensor cores
_LARGEST = 16_384  # numbers of one program: more than that, and registers spill


def fits(spec: NetworkSpec, n_rows: int, platform: str) -> bool:
    """Whether the kernel takes these networks; if not, XLA's program does the same work."""
    return (
        platform == "gpu"
        and spec.precision in _KERNEL_PRECISIONS
        and isinstance(spec.loss, str)
        and spec.early_stopping is None
        and spec.batch_size is not None
        and spec.batch_size < n_rows
        and numbers_in_registers(spec) <= _LARGEST
        and _has_triton()
    )


def numbers_in_registers(spec: NetworkSpec) -> int:
    """Weights and their gradients, and a tile of rows with all its activations and their derivatives."""
    from experiments.networks.gpu._small import columns_in_memory, side, tiles_for

    columns, sides = columns_in_memory(spec.sizes[0]), [side(size) for size in spec.sizes[1:]]
    weights = sum(n_in * n_out for n_in, n_out in zip([columns, *sides], sides, strict=False))
    return 2 * weights + tiles_for(spec.precision).rows * (columns + 2 * sum(sides))


def best_program(spec: NetworkSpec, rows: TrainingRows) -> tuple[TrainingRows, TrainOn]:
    """The rows, and what trains on them: the kernel, with rows as it reads them, or `train_on`."""
    if not fits(spec, len(rows.kept), rows.device.platform):
        return rows, train_on
    from experiments.networks.gpu._small import with_ones

    return rows._replace(
        X=with_ones(rows.X, "bfloat16" if spec.precision == "bfloat16" else "float32")
    ), _train


def _train(spec: NetworkSpec, rows: TrainingRows, W: Any, start: Parameters) -> Parameters:
    """What `train_on` does, for rows of `best_program`."""
    from experiments.networks.gpu._small import Network, tiles_for, train_whole

    recipe, rates = recipe_for(spec, rows.device.platform)
    W, params = jax.device_put((W, start), rows.device)
    data = Batches(rows.X, rows.Y, W.astype("float32"), rows.batches)
    network = Network(recipe, spec.sizes, interpreted=rows.device.platform != "gpu")
    with warnings.catch_warnings():
        # JAX announces that the kernel language will leave it; `fits` looks whether it is there.
        warnings.filterwarnings("ignore", "The Pallas Triton backend", DeprecationWarning)
        trained: Parameters = train_whole(network, tiles_for(spec.precision), params, data, rates)
    return trained


def _has_triton() -> bool:
    """Whether this JAX still has the kernel language (it is announced to leave JAX some day)."""
    return importlib.util.find_spec("jax.experimental.pallas.triton") is not None
