"""The GPU kernel: one program trains one network, for all steps in one launch.

The network's layers stay in the nearest cache, its mini-batches are shared with the other networks of the
repeat. Networks are independent, so no program ever waits for another, and a network's bits do not depend on
what is trained with it.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu

from experiments.networks.gpu._blocks import Layer as Layer
from experiments.networks.gpu._blocks import Network as Network
from experiments.networks.gpu._blocks import columns_in_memory as columns_in_memory
from experiments.networks.gpu._blocks import joined, parted
from experiments.networks.gpu._blocks import side as side
from experiments.networks.gpu._blocks import with_ones as with_ones
from moew.models.networks import _adam
from moew.models.networks._layers import Parameters
from moew.weighting import mini_batch_divisor


class Tiles(NamedTuple):
    """Rows of a mini-batch that are processed together, number of warps, and how far ahead loads are made."""

    rows: int
    warps: int
    stages: int


def tiles_for(precision: str) -> Tiles:
    """The fastest tiles measured (benchmarks/gpu_networks.py); 32-bit numbers take twice the space."""
    return Tiles(64, 2, 2) if precision == "bfloat16" else Tiles(32, 1, 2)


@partial(jax.jit, static_argnums=(0, 1))
def train_whole(network: Network, tiles: Tiles, params: Parameters, data: Any, rates: Any) -> Parameters:
    """Train R × K networks on all mini-batches `data.rows` (steps, R or 1, b).

    data.X (R or 1, n, columns) are rows `with_ones`, data.Y (R or 1, n, C), data.W (R, K, n).
    """
    R, K = data.W.shape[:2]
    zeros = jax.tree.map(jnp.zeros_like, params)
    arrays = [joined(*layer) for tree in (params, zeros, zeros) for layer in tree]
    fixed = (data.X, data.Y, data.W, data.rows, jnp.stack(rates))
    trained = pl.pallas_call(
        partial(_program, network, tiles.rows),
        grid=(R * K,),
        out_shape=[jax.eval_shape(lambda a: a, array) for array in arrays],
        input_output_aliases={len(fixed) + i: i for i in range(len(arrays))},
        compiler_params=plgpu.CompilerParams(num_warps=tiles.warps, num_stages=tiles.stages),
        interpret=network.interpreted,
        name="train_small_network",
    )(*fixed, *arrays)
    return tuple(parted(V, W) for V, (W, _) in zip(trained, params, strict=False))


def _program(network: Network, tile: int, X: Any, Y: Any, W: Any, rows: Any, rates: Any, *refs: Any) -> None:
    number = pl.program_id(0)
    repeat, member = number // W.shape[1], number % W.shape[1]
    sizes, depth, (n_steps, _, batch) = network.sizes, len(network.sizes) - 1, rows.shape
    arrays = refs[len(refs) // 2 :]  # changed in place: the same memory as the first half
    first_layer, *deeper_layers = (
        Layer(arrays[i::depth], number, sizes[i], sizes[i + 1]) for i in range(depth)
    )
    columns = _powers_of_two(X.shape[2])
    penalty = rates[1] if network.recipe.penalised else None

    def of_repeat(length: int) -> Any:
        return repeat if length > 1 else 0

    def load_rows(s: Any, t: Any) -> tuple[Any, Any, Any]:
        """Tile t of mini-batch s: x in pieces of columns, y (tile, C), w (tile,), zero beyond the last."""
        i = t * tile + jnp.arange(tile)
        chosen = plgpu.load(rows.at[s, of_repeat(rows.shape[1]), i], mask=i < batch, other=0)
        w = plgpu.load(W.at[repeat, member, chosen], mask=i < batch, other=0.0)
        c = jnp.arange(side(sizes[-1]))[None, :]
        y = plgpu.load(Y.at[of_repeat(Y.shape[0]), chosen[:, None], c], mask=c < sizes[-1], other=0.0)
        x = [
            plgpu.load(X.at[of_repeat(X.shape[0]), chosen[:, None], start + jnp.arange(n)[None, :]])
            for start, n in columns
        ]
        return x, y, w

    def step(s: Any, count: Any) -> Any:
        first = [first_layer.load(first_layer.refs[0], start, n) for start, n in columns]
        deeper = [layer.weights() for layer in deeper_layers]

        def add_rows(t: Any, sums: Any) -> Any:
            total, of_first, of_deeper = sums
            x, y, w = load_rows(s, t)
            z = sum(network.dot(part, V.T) for part, V in zip(x, first, strict=True))
            g, found = network.backpropagate(z, w, y, deeper)
            of_first = [sum_ + network.dot(g.T, part) for sum_, part in zip(of_first, x, strict=True)]
            of_deeper = [sum_ + one for sum_, one in zip(of_deeper, found, strict=True)]
            return total + jnp.sum(w), of_first, of_deeper

        none = (jnp.float32(0.0), *jax.tree.map(jnp.zeros_like, (first, deeper)))
        total, of_first, of_deeper = lax.fori_loop(0, -(-batch // tile), add_rows, none)
        active = total != 0.0
        scale = 1.0 / mini_batch_divisor(total, jnp.where)
        count = count + active.astype(jnp.float32)
        pace = _adam.pace(count, rates[0], active)
        for (start, _), gradient in zip(columns, of_first, strict=True):
            first_layer.update(pace, penalty, start, scale * gradient)
        for layer, gradient in zip(deeper_layers, of_deeper, strict=True):
            layer.update(pace, penalty, 0, scale * gradient)
        if not network.interpreted:
            plgpu.debug_barrier()  # what one thread of this program wrote, another reads in the next step
        return count

    lax.fori_loop(0, n_steps, step, jnp.float32(0.0))


def _powers_of_two(n: int) -> list[tuple[int, int]]:
    """n as a sum of powers of two: where each begins, and how long it is."""
    lengths = [1 << bit for bit in reversed(range(n.bit_length())) if n >> bit & 1]
    return [(sum(lengths[:i]), length) for i, length in enumerate(lengths)]
