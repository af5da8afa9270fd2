"""Many weightings of the same rows, a fixed number at a time.

XLA picks its kernels by shape, and with them the order in which a sum is added up: the same network trained
in company of 4 others or of 19 differs in the last bits. So every compiled program here trains the same
number of networks, the last group filled up with copies that are thrown away. Whatever K is, a network
then depends on its own weights and seed only, bit for bit, and nothing is compiled anew for another K. On
a CPU the groups run side by side in threads (XLA lets go of Python's lock), which uses the cores better
than one larger program does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import joblib
import numpy as np

from moew.nets._batches import batch_rows
from moew.nets._engine import pick, refuse_after_fork, train_on
from moew.nets._spec import Layers, NetworkSpec
from moew.protocols import FloatArray

# 20 candidates are four groups; one network alone costs three to four times what it could.
NETWORKS_AT_ONCE = {"cpu": 5}
NETWORKS_AT_ONCE_ELSEWHERE = 32  # a GPU is not filled by a few small networks
BATCH_SEED = 0  # not the candidate's: all candidates see the same mini-batches, as in the paper's programs


def train_weightings(
    spec: NetworkSpec, X: FloatArray, Y: FloatArray, weights: FloatArray, seeds: Sequence[int]
) -> Iterator[Layers]:
    """Yield the layers of one trained network for each of the K weightings, in order.

    X (n, D), Y (n, C), weights (K, n), each row with something positive, seeds K ints.
    """
    refuse_after_fork()
    size = NETWORKS_AT_ONCE.get(jax.default_backend(), NETWORKS_AT_ONCE_ELSEWHERE)
    K = len(seeds)
    inputs, targets = jnp.asarray(X[None], jnp.float32), jnp.asarray(Y[None], jnp.float32)
    drawn = batch_rows(len(X), spec.batch_size, spec.steps, BATCH_SEED)
    rows = None if drawn is None else jnp.asarray(drawn)

    def train(start: int) -> list[Layers]:
        members = [min(start + i, K - 1) for i in range(size)]
        chosen = weights[members]
        # Only ratios count; with one as the largest, float32 holds weights of any size.
        W = jnp.asarray((chosen / chosen.max(axis=1, keepdims=True))[None], jnp.float32)
        params = train_on(spec, inputs, targets, W, [[seeds[k] for k in members]], rows)
        host = tuple((np.asarray(W), np.asarray(b)) for W, b in params)
        return [pick(host, 0, i) for i in range(min(size, K - start))]

    starts = range(0, K, size)
    workers = min(len(starts), joblib.cpu_count()) if jax.default_backend() == "cpu" else 1
    if workers <= 1:
        for start in starts:
            yield from train(start)
        return
    with ThreadPoolExecutor(workers) as pool:
        for group in pool.map(train, starts):
            yield from group
