"""Bytes that leave a process for each candidate: rows sent with every candidate, or once.

    python benchmarks/traffic.py [--backends loky dask ray] [--rows 50000] [--batches 5] [--batch-size 10]
                                 [--folds 1 3]

Two ways train the same models on the same rows in the same run: `every` hands rows, weights and
estimator to joblib with each training, as `Parallel(delayed(fit)(X, y, w))` does; `once` is moew's. With 3
folds each candidate is trained three times, on two thirds of the rows. Counted is what is pickled or written
for other processes: for loky the messages to the workers and the files of the rows, for Dask what client,
scheduler and workers write to sockets, for Ray what the driver puts in the object store and in its tasks.
What comes back, the models, is the same in both ways; on Dask it is part of the count."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import platform
import tempfile
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import parallel_config
from sklearn.naive_bayes import GaussianNB
from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import Parallel, delayed

from moew.training import EstimatorTrainer
from moew.types import Training

N_COLUMNS = 20
Counter = Callable[[], int]


def make_rows(kind: str, n: int) -> tuple[Any, Any, Any]:
    """Rows, as an array or a frame with a column of categories and one of texts; labels; the estimator."""
    rng = np.random.default_rng(0)
    numbers = rng.standard_normal((n, N_COLUMNS))
    y = (numbers[:, 0] + rng.standard_normal(n) > 0).astype(int)
    if kind == "array":
        return numbers, y, GaussianNB()
    frame = pd.DataFrame(numbers, columns=[f"x{i}" for i in range(N_COLUMNS)])
    frame["kind"] = pd.Categorical(rng.choice(["a", "b", "c"], n))
    frame["text"] = rng.choice(["a few words", "some others", "and more of them"], n)
    return frame, y, OfTheNumbers()


class OfTheNumbers(GaussianNB):
    """Learns from a frame's first columns; the others only travel along."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> OfTheNumbers:
        super().fit(X.iloc[:, :N_COLUMNS].to_numpy(), y, sample_weight)
        return self

    def predict_proba(self, X: Any) -> Any:
        return super().predict_proba(X.iloc[:, :N_COLUMNS].to_numpy())


def send_with_every(X: Any, y: Any, estimator: Any, weights: Any, backend: str) -> list[Any]:
    as_list = {"return_as": "list"} if backend == "ray" else {"return_as": "generator_unordered"}
    jobs = (delayed(_fit)(estimator, X, y, weight) for weight in weights)
    return list(Parallel(n_jobs=2, **as_list)(jobs))


def _fit(estimator: Any, X: Any, y: Any, weight: Any) -> Any:
    return estimator.fit(X, y, sample_weight=weight)


@contextlib.contextmanager
def loky() -> Iterator[Counter]:
    """The messages are counted where the parent writes them to its pipes, the rows' files by their size."""
    folder = Path(tempfile.mkdtemp())
    os.environ["JOBLIB_TEMP_FOLDER"] = str(folder)  # joblib's own memory-mapped arrays go there too
    from multiprocessing.connection import Connection

    pipe_end: Any = Connection  # its private methods are in no stub
    written = [0]
    send = pipe_end._send_bytes

    def counted(self: Any, data: Any) -> None:
        written[0] += len(data)
        send(self, data)

    pipe_end._send_bytes = counted
    seen: dict[Path, int] = {}

    def count() -> int:
        for path in folder.rglob("*"):
            with contextlib.suppress(FileNotFoundError):
                if path.is_file():
                    seen[path] = path.stat().st_size
        return written[0] + sum(seen.values())

    yield count
    pipe_end._send_bytes = send


def _count_sockets() -> None:
    """In every process of the cluster: what is written to Dask's sockets."""
    from distributed.comm import tcp

    tcp.moew_written = 0
    write = tcp.TCP.write

    async def counted(self: Any, *args: Any, **kwargs: Any) -> int:
        n_bytes: int = await write(self, *args, **kwargs)
        tcp.moew_written += n_bytes
        return n_bytes

    tcp.TCP.write = counted


def _sockets() -> int:
    from distributed.comm import tcp

    return int(tcp.moew_written)


@contextlib.contextmanager
def dask() -> Iterator[Counter]:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        _count_sockets()
        client.run(_count_sockets)
        yield lambda: _sockets() + sum(client.run(_sockets).values())


@contextlib.contextmanager
def ray() -> Iterator[Counter]:
    import ray
    from ray._private.serialization import SerializationContext
    from ray.util.joblib import register_ray

    register_ray()
    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    written = [0]
    serialize = SerializationContext.serialize

    def counted(self: Any, value: Any) -> Any:
        packed = serialize(self, value)
        written[0] += packed.total_bytes
        return packed

    SerializationContext.serialize = counted
    yield lambda: written[0]
    SerializationContext.serialize = serialize
    ray.shutdown()


def make_folds(n_folds: int, n: int) -> list[Any]:
    """The numbers of the rows that each fold trains on; None is all."""
    if n_folds == 1:
        return [None]
    return [np.flatnonzero(np.arange(n) % n_folds != fold) for fold in range(n_folds)]


def train_batch(
    strategy: str, trainer: EstimatorTrainer, X: Any, y: Any, batch: Any, fold: Any, backend: str
) -> None:
    weights = batch if fold is None else batch[:, fold]
    if strategy == "once":
        for _ in trainer.train(X, y, Training.each(weights, range(len(batch))), fold):
            pass
        return
    part = (X, y) if fold is None else (_safe_indexing(X, fold), y[fold])
    send_with_every(*part, trainer.estimator, weights, backend)


def measure(backend: str, count: Counter, options: argparse.Namespace) -> None:
    """Print both ways for arrays and frames, without and with folds."""
    n, k = options.rows, options.batch_size
    weights = np.random.default_rng(1).uniform(0.5, 1.5, (options.batches, k, n))
    total = options.batches * k
    for kind, n_folds, strategy in product(("array", "frame"), options.folds, ("every", "once")):
        X, y, estimator = make_rows(kind, n)
        size = X.nbytes if kind == "array" else X.memory_usage(deep=True).sum()
        trainer, folds = EstimatorTrainer(estimator, n_jobs=2), make_folds(n_folds, n)
        before = count()
        with parallel_config(backend=backend, n_jobs=2):
            for batch, fold in product(weights, folds):
                train_batch(strategy, trainer, X, y, batch, fold, backend)
                count()  # files of the batch, before they are removed
        n_bytes = count() - before
        print(
            f"{backend:5s}{kind:>6s}{size / 1e6:7.1f} MB, {n_folds} folds, rows sent {strategy:5s}"
            f"{n_bytes / total / 1e3:10.0f} kB a candidate{n_bytes / 1e6:9.1f} MB in all",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--backends", nargs="+", default=["loky", "dask", "ray"])
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--batches", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=10)
    parser.add_argument("--folds", type=int, nargs="+", default=[1, 3])
    options = parser.parse_args()
    print(
        f"Python {platform.python_version()}, 2 workers, {options.batches} batches of {options.batch_size} "
        f"candidates, {options.rows} rows: {8 * options.rows / 1e3:.0f} kB of weights a candidate"
    )
    for backend in options.backends:
        with {"loky": loky, "dask": dask, "ray": ray}[backend]() as count:
            measure(backend, count, options)


if __name__ == "__main__":
    main()
