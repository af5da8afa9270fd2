"""A kernel for a GPU (Pallas, Triton) that trains small networks whole, each in one program.

XLA writes every activation of every network to the GPU's memory and reads it again, and the gradients
besides. Here a mini-batch is worked on in registers, and a launch is a whole training.
"""

from __future__ import annotations

import importlib.util
import warnings
from typing import Any

from moew.models.networks._spec import NetworkSpec

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
    from moew.models.networks.gpu._small import columns_in_memory, side, tiles_for

    columns, sides = columns_in_memory(spec.sizes[0]), [side(size) for size in spec.sizes[1:]]
    weights = sum(n_in * n_out for n_in, n_out in zip([columns, *sides], sides, strict=False))
    return 2 * weights + tiles_for(spec.precision).rows * (columns + 2 * sum(sides))


def train(spec: NetworkSpec, recipe: Any, params: Any, data: Any, rates: Any) -> Any:
    """The parameters after all mini-batches; as `train_all_steps`, but data.X comes from `rows_for`."""
    from moew.models.networks.gpu._small import Network, tiles_for, train_whole

    network = Network(recipe, spec.sizes, interpreted=False)
    with warnings.catch_warnings():
        # JAX announces that the kernel language will leave it; `fits` looks whether it is there.
        warnings.filterwarnings("ignore", "The Pallas Triton backend", DeprecationWarning)
        return train_whole(network, tiles_for(spec.precision), params, data, rates)


def rows_for(spec: NetworkSpec, X: Any) -> Any:
    """Rows (R, n, D) on the device as the kernel reads them."""
    from moew.models.networks.gpu._small import with_ones

    return with_ones(X, "bfloat16" if spec.precision == "bfloat16" else "float32")


def _has_triton() -> bool:
    """Whether this JAX still has the kernel language (it is announced to leave JAX some day)."""
    return importlib.util.find_spec("jax.experimental.pallas.triton") is not None
