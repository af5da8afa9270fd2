"""How long one training step of 20 networks takes: moew, JAX one by one, PyTorch one by one.

All sides do the same work: the same rows, the same mini-batches (gathered inside the step), Adam 0.001,
sigmoid networks and the weighted squared loss with the weights of each mini-batch brought to mean one.

    python benchmarks/networks.py [--repetitions 5] [--steps 200]

"moew, K = 1" is moew's own engine compiled for one network and run 20 times; "JAX one by one" is the network
as one would write it down in JAX, compiled for one network and run 20 times. PyTorch runs with one thread and
with all, because small networks are often faster with one; take the faster as its figure.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import joblib
import numpy as np

from experiments.networks import train_networks
from moew.models._shared import batch_rows
from moew.models.networks import NetworkSpec
from moew.models.networks._engine import initial_layers
from moew.models.networks._groups import train_weightings
from moew.models.networks._layers import Parameters
from moew.models.networks._spec import Layers
from moew.types import IntArray

try:
    import torch
except ImportError:
    sys.exit("this benchmark compares with PyTorch, which is not installed: pip install 'moew[benchmark]'.")

K, N_ROWS = 20, 20_000
CASES = {  # name: layer sizes, batch size
    "40-20-10-1, batch 1000": ((40, 20, 10, 1), 1000),
    "2-20-10-1, batch 100": ((2, 20, 10, 1), 100),
    "linear 95-1, batch 100": ((95, 1), 100),
}
Problem = tuple[NetworkSpec, np.ndarray, np.ndarray, np.ndarray]


def mini_batches(spec: NetworkSpec, n: int) -> IntArray:
    """The rows (steps, batch size) that the one-by-one sides take, the same as moew's."""
    rows = batch_rows(n, spec.batch_size, spec.steps, 0)
    if rows is None:
        raise ValueError(f"a mini-batch must be smaller than the {n} rows, got {spec.batch_size}.")
    return rows


def moew_together(spec: NetworkSpec, X: np.ndarray, Y: np.ndarray, weights: np.ndarray) -> list[Layers]:
    """What `fit_many` does."""
    return list(train_weightings(spec, X, Y, weights, list(range(K))))


def moew_one_by_one(spec: NetworkSpec, X: np.ndarray, Y: np.ndarray, weights: np.ndarray) -> list[Parameters]:
    """moew's engine, one network at a time."""
    return [
        jax.block_until_ready(train_networks(spec, X[None], Y[None], weights[None, k : k + 1], [[k]], 0))
        for k in range(K)
    ]


def jax_one_by_one(spec: NetworkSpec, X: np.ndarray, Y: np.ndarray, weights: np.ndarray) -> list[Any]:
    """The plain network in JAX, one at a time."""
    rows = jnp.asarray(mini_batches(spec, len(X)))
    x, y, w = jnp.asarray(X), jnp.asarray(Y), jnp.asarray(weights)
    return [jax.block_until_ready(_train_plain(initial_layers(spec, k), x, y, w[k], rows)) for k in range(K)]


@jax.jit
def _train_plain(params: Any, X: Any, Y: Any, w: Any, rows: Any) -> Any:
    def loss(params: Any, x: Any, y: Any, w: Any) -> Any:
        for depth, (W, b) in enumerate(params):
            x = (jax.nn.sigmoid(x) if depth else x) @ W.T + b
        return jnp.mean(w / w.mean() * (x[:, 0] - y[:, 0]) ** 2)

    def step(carry: Any, batch: Any) -> Any:
        params, m, v, t = carry
        g = jax.grad(loss)(params, X[batch], Y[batch], w[batch])
        t += 1
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)

        def adam(p: Any, m: Any, v: Any) -> Any:
            return p - 0.001 * (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8)

        return (jax.tree.map(adam, params, m, v), m, v, t), None

    zeros = jax.tree.map(jnp.zeros_like, params)
    return jax.lax.scan(step, (params, zeros, zeros, 0.0), rows)[0][0]


def torch_one_by_one(
    spec: NetworkSpec, X: np.ndarray, Y: np.ndarray, weights: np.ndarray, *, threads: int
) -> list[Any]:
    """PyTorch as one would write it: nn.Sequential and torch.optim.Adam, one network at a time."""
    torch.set_num_threads(threads)
    rows = torch.from_numpy(mini_batches(spec, len(X)).astype(np.int64))
    X, Y, weights = torch.from_numpy(X), torch.from_numpy(Y), torch.from_numpy(weights)
    done = []
    for k in range(K):
        parts: list[torch.nn.Module] = []
        for W, b in initial_layers(spec, k):
            layer = torch.nn.Linear(*W.shape[::-1])
            layer.load_state_dict({"weight": torch.from_numpy(W), "bias": torch.from_numpy(b)})
            parts += [torch.nn.Sigmoid(), layer] if parts else [layer]
        network = torch.nn.Sequential(*parts)
        adam = torch.optim.Adam(network.parameters(), lr=spec.learning_rate)
        for batch in rows:
            w = weights[k, batch]
            loss = (w / w.mean() * (network(X[batch]) - Y[batch])[:, 0] ** 2).mean()
            adam.zero_grad()
            loss.backward()
            adam.step()
        done.append(network)
    return done


SIDES: dict[str, Callable[..., list[Any]]] = {
    "moew, 20 together": moew_together,
    "moew, K = 1": moew_one_by_one,
    "JAX one by one": jax_one_by_one,
    "PyTorch, 1 thread": partial(torch_one_by_one, threads=1),
    "PyTorch, all threads": partial(torch_one_by_one, threads=joblib.cpu_count()),
}


def make_problem(sizes: tuple[int, ...], batch_size: int, steps: int) -> Problem:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N_ROWS, sizes[0])).astype(np.float32)
    Y = np.tanh(X @ rng.standard_normal((sizes[0], 1))).astype(np.float32)
    weights = rng.uniform(0.1, 1.9, (K, N_ROWS)).astype(np.float32)
    return NetworkSpec(sizes, "sigmoid", "squared", steps, batch_size), X, Y, weights


def same_networks(problem: Problem) -> float:
    """Largest difference between moew's and PyTorch's parameters: shows that both do the same work."""
    ours, theirs = moew_together(*problem), torch_one_by_one(*problem, threads=1)
    return max(
        float(np.abs(mine - parameter.detach().numpy()).max())
        for layers, network in zip(ours, theirs, strict=True)
        for mine, parameter in zip((a for layer in layers for a in layer), network.parameters(), strict=True)
    )


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    options = argparse.ArgumentParser(description="Training time of 20 networks")
    options.add_argument("--repetitions", type=int, default=5)
    options.add_argument("--steps", type=int, default=200)
    given = options.parse_args()
    print(f"jax {jax.__version__} on {jax.default_backend()}, torch {torch.__version__}")
    print(f"{joblib.cpu_count()} cores (load {os.getloadavg()[0]:.1f} before the start)")
    print(
        f"{K} networks, {N_ROWS} rows, {given.steps} steps, median of {given.repetitions} interleaved runs\n"
    )
    for name, (sizes, batch_size) in CASES.items():
        problem = make_problem(sizes, batch_size, given.steps)
        works = {side: partial(run, *problem) for side, run in SIDES.items()}
        first = {side: seconds(work) for side, work in works.items()}  # compiles
        times: dict[str, list[float]] = {side: [] for side in SIDES}
        for _ in range(given.repetitions):
            for side, work in works.items():
                times[side].append(seconds(work))
        median = {side: statistics.median(values) for side, values in times.items()}
        ours = median["moew, 20 together"]
        print(f"{name}  (largest difference to PyTorch's parameters: {same_networks(problem):.1e})")
        print(f"  {'':20s} {'ms a step':>10s} {'first run − median, s':>22s} {'moew is faster by':>18s}")
        for side in SIDES:
            step, compiling = 1e3 * median[side] / given.steps, max(0.0, first[side] - median[side])
            print(f"  {side:20s} {step:10.3f} {compiling:22.2f} {median[side] / ours:17.1f}x")
        for rival in ("JAX", "PyTorch"):
            best = min(value for side, value in median.items() if side.startswith(rival))
            print(f"  moew is {best / ours:.1f} times as fast as {rival} one by one (the faster, if several)")
        print(f"  and {median['moew, K = 1'] / ours:.1f} times as fast as its own engine one by one\n")


if __name__ == "__main__":
    main()
