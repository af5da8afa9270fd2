"""Many weightings of the same rows, a fixed number at a time.

XLA picks its kernels by shape, and with them the order of summation: the same network trained with 4 others
or with 19 differs in the last bits. So every compiled program here trains the same number of networks (fewer
where they do not fit into the device's memory), and the last group is filled up with copies that are dropped.
Whatever K is, a network then depends on its own weights and seed only, bit for bit, and another K needs no
new compilation. On a CPU the groups run side by side in threads (XLA releases Python's lock), which uses the
cores better than one larger program does. Several devices take turns.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import Lock

import joblib
import numpy as np

from moew.models._shared import BATCH_SEED
from moew.models.networks._devices import choose_devices, groups_at_once, networks_at_once
from moew.models.networks._engine import (
    initial_layers,
    pick,
    prepare_rows,
    refuse_after_fork,
    stack,
    train_on,
)
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

    X (n, D), Y (n, C), weights (K, n), each row with a positive weight, seeds K ints. `start`: initial
    parameters of all networks, in place of those from the seeds. `at_once`: the size of the groups (None:
    chosen by the device and its memory).
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
            # Only ratios count; divided by the largest, weights of any size fit into float32.
            np.divide(weights[k], weights[k].max(), out=W[0, i], casting="same_kind")
        begin = stack([[initial_layers(spec, int(seeds[k])) if start is None else start for k in members]])
        params = train_on(spec, on_device[group % len(on_device)], W, begin)
        host = tuple((np.asarray(W), np.asarray(b)) for W, b in params)
        return [pick(host, 0, i) for i in range(min(size, K - first))]

    n_threads = 1
    if devices[0].platform == "cpu":
        workers = min(joblib.cpu_count() // len(on_device), groups_at_once(spec, n, devices[0], size))
        n_threads = max(1, workers)
    n_threads *= len(on_device)
    try:
        in_turns = map if len(starts) == 1 or n_threads == 1 else _threads(n_threads).map
        for layers in in_turns(train, range(len(starts))):
            yield from layers
    finally:
        on_device.clear()  # a thread may refer to `train` a moment longer, but not to the rows


@cache
def _threads(number: int) -> ThreadPoolExecutor:
    """Threads that are kept: the C library gives each new one its own memory, and never frees it."""
    return ThreadPoolExecutor(number, "moew-networks")


# Not the candidate's seed: the start must be the same whatever is trained with a candidate.
UNIFORM_SEED = 0
_KEPT = 32  # enough for the folds of a splitter; a network is small beside the rows it was trained on

_known: OrderedDict[tuple[NetworkSpec, str | None, bytes], Layers] = OrderedDict()
_lock = Lock()


def uniform_layers(spec: NetworkSpec, X: FloatArray, Y: FloatArray, device: str | None) -> Layers:
    """The network trained for `spec.steps` steps with all weights one on X (n, D) and Y (n, C), from a fixed
    seed. Every batch of a search needs the same one, so the last ones are kept, by a hash of the rows."""
    refuse_after_fork()
    key = (spec, device, _digest(X) + _digest(Y))
    with _lock:  # another thread that needs the same one waits for it
        if key not in _known:
            ones = np.ones((1, len(X)))
            # Always alone in its program, which is cheaper than a group filled up with copies.
            (_known[key],) = train_weightings(spec, X, Y, ones, [UNIFORM_SEED], device, at_once=1)
        _known.move_to_end(key)
        while len(_known) > _KEPT:
            _known.popitem(last=False)
        return _known[key]


def _digest(values: FloatArray) -> bytes:
    shape = repr((values.shape, values.dtype.str)).encode()
    return hashlib.blake2b(np.ascontiguousarray(values).data, digest_size=16, person=b"moew").digest() + shape
