"""A training step of 2,000 networks on one GPU: 100 repeats × K = 20, each repeat with its own mini-batches.

    python benchmarks/gpu_networks.py [--steps 500] [--repetitions 5] [--precisions bfloat16 tf32 float32]

"plain" is the program one would write first: a network, its gradient and Adam, vmapped over repeats and
networks, in a scan over the mini-batches. moew's side is that of `experiments.networks`. Both get the same
rows, weights, first parameters and mini-batches, all on the device already; the times are whole trainings
divided by the steps. "off" is the distance of moew's parameters from those of the plain program in full
float32, as a share of the way they went (after 20 steps).

The limits are counted, not measured: what must be read and written in a step over the bandwidth of a large
copy in this run, and the multiplications and additions over the rate of a large product in bfloat16.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import checkout  # noqa: F401  # finds experiments/, beside this folder
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from experiments.networks import gpu
from moew.models.networks import NetworkSpec, _adam
from moew.models.networks._engine import prepare_rows

R, K = 100, 20


class Case(NamedTuple):
    sizes: tuple[int, ...]
    loss: str
    batch: int
    n_rows: int
    shared_rows: bool  # MNIST's training rows are the same in all repeats
    asked_ms: float


CASES = {
    "mnist": Case((784, 50, 10), "sigmoid_cross_entropy", 100, 55_000, True, 0.6),
    "wine": Case((40, 20, 10, 1), "squared", 1000, 6_520, False, 0.5),
}


def problem(case: Case, steps: int) -> tuple[Any, ...]:
    """First parameters, X, Y, W and the rows of the mini-batches (steps, R, b)."""
    keys = jax.random.split(jax.random.key(0), 5)
    repeats = 1 if case.shared_rows else R
    X = jax.random.uniform(keys[0], (repeats, case.n_rows, case.sizes[0]))
    Y = (jax.random.uniform(keys[1], (repeats, case.n_rows, case.sizes[-1])) < 0.5).astype(jnp.float32)
    W = jax.random.uniform(keys[2], (R, K, case.n_rows))
    rows = jax.random.randint(keys[3], (steps, R, case.batch), 0, case.n_rows)
    params = []
    for i, (n_in, n_out) in enumerate(zip(case.sizes[:-1], case.sizes[1:], strict=True)):
        limit = (6 / (n_in + n_out)) ** 0.5
        shape = (R, K, n_out, n_in)
        weights = jax.random.uniform(jax.random.fold_in(keys[4], i), shape, minval=-limit, maxval=limit)
        params.append((weights, jnp.zeros((R, K, n_out))))
    return tuple(params), X, Y, W, rows


@partial(jax.jit, static_argnums=0)
def plain(loss: str, params: Any, X: Any, Y: Any, W: Any, rows: Any) -> Any:
    """vmap and scan."""

    def mean_loss(params: Any, x: Any, y: Any, w: Any) -> Any:
        *hidden, (V, b) = params
        for V_h, b_h in hidden:
            x = jax.nn.sigmoid(x @ V_h.T + b_h)
        out = x @ V.T + b
        if loss == "squared":
            losses = (out - y) ** 2
        else:
            losses = jax.nn.relu(out) - y * out + jnp.log1p(jnp.exp(-jnp.abs(out)))
        return jnp.sum(w * losses.sum(axis=1)) / jnp.sum(w)

    def take(array: Any, chosen: Any) -> Any:
        return array[0][chosen] if len(array) == 1 else jax.vmap(lambda a, c: a[c])(array, chosen)

    every = jax.vmap(jax.vmap(jax.grad(mean_loss), (0, None, None, 0)))

    def step(carry: Any, chosen: Any) -> Any:
        params, state = carry
        w = jax.vmap(lambda a, c: a[:, c])(W, chosen)
        gradients = every(params, take(X, chosen), take(Y, chosen), w)
        return _adam.update(params, gradients, state, 1e-3, jnp.ones((R, K), bool)), None

    return lax.scan(step, (params, _adam.start(params, R, K)), rows)[0][0]


def milliseconds(train: Callable[[], Any], steps: int, repetitions: int) -> tuple[str, float]:
    """The median of a step, as text with the compilation, and as a number."""
    start = time.perf_counter()
    jax.block_until_ready(train())
    first = time.perf_counter() - start
    times = []
    for _ in range(repetitions):
        start = time.perf_counter()
        jax.block_until_ready(train())
        times.append(1e3 * (time.perf_counter() - start) / steps)
    median = statistics.median(times)
    compiling = max(0.0, first - median * steps / 1e3)
    return f"{median:.3f} ({min(times):.3f} to {max(times):.3f}; compiling {compiling:.1f} s)", median


def moew_side(case: Case, precision: str, data: tuple[Any, ...]) -> tuple[NetworkSpec, Callable[[], Any]]:
    params, X, Y, W, rows = data
    spec = NetworkSpec(
        case.sizes, "sigmoid", case.loss, steps=len(rows), batch_size=case.batch, precision=precision
    )
    on_device, train_on = gpu.best_program(spec, prepare_rows(spec, X, Y, rows, jax.devices()[0]))
    return spec, partial(train_on, spec, on_device, W, params)


def distance(case: Case, precision: str) -> float:
    """How far moew's parameters are off after 20 steps, as a share of the way."""
    data = problem(case, 20)
    with jax.default_matmul_precision("float32"):
        exact = jax.tree.leaves(plain(case.loss, *data))
    ours = jax.tree.leaves(moew_side(case, precision, data)[1]())

    def norm(first: list[Any], second: list[Any]) -> float:
        return float(np.sqrt(sum(float(jnp.sum((a - b) ** 2)) for a, b in zip(first, second, strict=True))))

    return norm(ours, exact) / norm(jax.tree.leaves(data[0]), exact)


def ceilings() -> tuple[float, float]:
    """Bytes a second of a copy, operations a second of a product in bfloat16."""
    big = jax.random.uniform(jax.random.key(1), (2**29,))
    copy = jax.jit(lambda a: a + 1.0)
    square = jax.random.normal(jax.random.key(2), (8192, 8192), jnp.bfloat16)
    multiply = jax.jit(lambda a: a @ a)
    seconds = []
    for one, argument in ((copy, big), (multiply, square)):
        jax.block_until_ready(one(argument))
        start = time.perf_counter()
        for _ in range(10):
            result = one(argument)
        jax.block_until_ready(result)
        seconds.append((time.perf_counter() - start) / 10)
    return 2 * big.nbytes / seconds[0], 2 * 8192**3 / seconds[1]


def counted(case: Case, in_kernel: bool) -> tuple[float, float]:
    """Bytes that a step must move, and its operations: forward, and both derivatives of every product."""
    parameters = sum((i + 1) * o for i, o in zip(case.sizes[:-1], case.sizes[1:], strict=True))
    products = sum(i * o for i, o in zip(case.sizes[:-1], case.sizes[1:], strict=True))
    operations = 2 * case.batch * (3 * products - case.sizes[0] * case.sizes[1])
    rows = 4 * R * case.batch * sum(case.sizes[:1] + case.sizes[-1:]) + 4 * R * K * case.batch
    # Weights and moments both ways, and weights once more forward; the kernel keeps all of them near.
    return rows + (0 if in_kernel else 7 * 4 * R * K * parameters), R * K * operations


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cases", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--precisions", nargs="+", default=["bfloat16", "tf32", "float32"])
    given = parser.parse_args()
    device = jax.devices()[0]
    if device.platform != "gpu":
        sys.exit("JAX finds no GPU here, and this benchmark is about one.")
    bandwidth, rate = ceilings()
    print(f"jax {jax.__version__}, {device.device_kind}; {R} repeats × {K} networks, {given.steps} steps")
    print(f"copy {bandwidth / 1e12:.2f} TB/s, product in bfloat16 {rate / 1e12:.0f} TFLOP/s", flush=True)
    for name in given.cases:
        case = CASES[name]
        data = problem(case, given.steps)
        print(f"\n{name}: {'-'.join(map(str, case.sizes))}, batch {case.batch}; ms a step")
        text, plain_ms = milliseconds(partial(plain, case.loss, *data), given.steps, given.repetitions)
        print(f"  plain vmap and scan   {text}", flush=True)
        for precision in given.precisions:
            spec, train = moew_side(case, precision, data)
            in_kernel = gpu.fits(spec, case.n_rows, device.platform)
            text, ms = milliseconds(train, given.steps, given.repetitions)
            moved, operations = counted(case, in_kernel)
            limit = 1e3 * max(moved / bandwidth, operations / rate)
            verdict = "reached" if ms <= case.asked_ms else "missed"
            print(
                f"  moew, {precision:<8} {'kernel' if in_kernel else 'XLA':<6} {text}\n"
                f"    {plain_ms / ms:.1f} times as fast as plain; {case.asked_ms} asked for: {verdict}; "
                f"off by {distance(case, precision):.1e}\n"
                f"    limit {limit:.3f}: {moved / 1e9:.2f} GB, {operations / 1e9:.1f} GFLOP",
                flush=True,
            )


if __name__ == "__main__":
    main()
