"""Many weightings of the same rows, a fixed number at a time.

XLA picks its kernels by shape, and with them the order in which a sum is added up: the same network trained
in company of 4 others or of 19 differs in the last bits. So every compiled program here trains the same
number of networks (fewer, where so many do not fit into the device's memory), the last group filled up with
copies that are thrown away. Whatever K is, a network then depends on its own weights and seed only, bit for
bit, and nothing is compiled anew for another K. On a CPU the groups run side by side in threads (XLA lets go
of Python's lock), which uses the cores better than one larger program does. Several devices take turns.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache

import joblib
import numpy as np

from moew.models._shared import BATCH_SEED
from moew.models.networks._batches import initial_layers
from moew.models.networks._devices import NETWORKS_AT_ONCE as NETWORKS_AT_ONCE
from moew.models.networks._devices import choose_devices, groups_at_once, networks_at_once
from moew.models.networks._engine import pick, prepare_rows, refuse_after_fork, stack, train_on
from moew.models.networks._spec import Layers, NetworkSpec
from moew.types import FloatArray


def train_weightings(
    spec: NetworkSpec,
    X: FloatArray,
    Y: FloatArray,
    weights: FloatArray,
    seeds: Sequence[int],
    device: str | None = None,
    start: Layers | None = None,
    at_once: int | None = None,
) -> Iterator[Layers]:
    """Yield the layers of one trained network for each of the K weightings, in order.

    X (n, D), Y (n, C), weights (K, n), each row with something positive, seeds K ints. `start` are the first
    parameters of all, in place of those that the seeds give; `at_once` is the size of the groups, where the
    program is not to choose it.
    """
    refuse_after_fork()
    devices = choose_devices(device)
    K, n = len(seeds), len(X)
    size = at_once or networks_at_once(spec, n, devices[0])
    starts = range(0, K, size)
    on_device = [prepare_rows(spec, X[None], Y[None], BATCH_SEED, d) for d in devices[: len(starts)]]

    def train(group: int) -> list[Layers]:
        first = starts[group]
        members = [min(first + i, K - 1) for i in range(size)]
        W = np.empty((1, size, n), dtype=np.float32)
        for i, k in enumerate(members):
            # Only ratios count; with one as the largest, float32 holds weights of any size.
            np.divide(weights[k], weights[k].max(), out=W[0, i], casting="same_kind")
        begin = stack([[initial_layers(spec, int(seeds[k])) if start is None else start for k in members]])
        params = train_on(spec, on_device[group % len(on_device)], W, begin)
        host = tuple((np.asarray(W), np.asarray(b)) for W, b in params)
        return [pick(host, 0, i) for i in range(min(size, K - first))]

    workers = 1
    if devices[0].platform == "cpu":
        workers = min(joblib.cpu_count() // len(on_device), groups_at_once(spec, n, devices[0], size))
    try:
        for layers in _in_turns(train, len(starts), len(on_device), max(1, workers)):
            yield from layers
    finally:
        on_device.clear()  # a thread may hold on to `train` a moment longer, but not to the rows


def let_go_of_rows() -> None:
    """Free rows that nobody refers to any more.

    JAX uses a NumPy array as it is, and lets go of one it no longer needs at its next call or at a garbage
    collection. The rows of the next batch are encoded before that, and would lie in memory beside them.
    """
    gc.collect(0)


def _in_turns(
    train: Callable[[int], list[Layers]], n_groups: int, n_devices: int, workers: int
) -> Iterator[list[Layers]]:
    """The groups in order; each device has its own `workers` threads, and every n-th group is its."""
    if n_groups == 1 or n_devices * workers == 1:
        yield from map(train, range(n_groups))
        return
    running = [_threads(group % n_devices, workers).submit(train, group) for group in range(n_groups)]
    try:
        for future in running:
            yield future.result()
    finally:
        for future in running:
            future.cancel()
        wait(running)


@cache
def _threads(device: int, workers: int) -> ThreadPoolExecutor:
    """Threads that stay: the C library gives each new one memory of its own, and keeps that when it ends."""
    return ThreadPoolExecutor(workers, f"moew-networks-{device}")
