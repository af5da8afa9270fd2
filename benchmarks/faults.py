"""What a model may do to a search, and what becomes of it: every fault, wherever models are trained.

    python benchmarks/faults.py [--backends one,two,dask,ray] [--faults raises,hangs,…]

A search of 2 batches of 5 candidates, in which the third model that is begun has the fault. The search must
end by itself, with a result, and with the fault in the record of that candidate alone; where a process died,
the candidate may also have been trained again by another. "one" and "two" are one and two jobs on this
machine. What ends the whole process (a crash) needs processes: with one job these faults are tried with
`candidate_timeout`, which has them. A KeyboardInterrupt in the search's own process is the user's and ends
it; Dask and Ray end what hangs by limits of their own: these are left out. So are Dask and Ray where they are
not installed. The exit status is 1 if a fault is not survived.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from joblib import parallel_config
from sklearn.linear_model import LogisticRegression

from moew import MetricSearch

TIMEOUT = 2.0  # seconds that a model may take, for one that hangs


def _raise(error: BaseException) -> Callable[[], Any]:
    def fault() -> Any:
        raise error

    return fault


def _recursion() -> Any:
    return _recursion()


FAULTS: dict[str, Callable[[], Any]] = {
    "raises": _raise(ValueError("no")),
    "raises without words": _raise(ValueError()),
    "sys.exit": _raise(SystemExit(3)),
    "KeyboardInterrupt": _raise(KeyboardInterrupt()),
    "GeneratorExit": _raise(GeneratorExit()),
    "MemoryError": _raise(MemoryError()),
    "too deep a recursion": _recursion,
    "an error that cannot be sent": _raise(type("Local", (Exception,), {})("no")),
    "a model that cannot be sent": threading.Lock,
    "os._exit": lambda: os._exit(3),
    "is killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "segmentation fault": lambda: ctypes.string_at(0),
    "hangs": lambda: time.sleep(1000),
}
CRASHES = ("os._exit", "is killed", "segmentation fault")  # of the process
LIMITED = ("hangs",)  # needs a timeout
NOT_TRIED = {"one": ("KeyboardInterrupt",), "dask": LIMITED, "ray": LIMITED}


class Faulty(LogisticRegression):
    """A model of which the third that is begun has a fault; `folder` counts them, for all processes."""

    def __init__(self, fault: str = "raises", folder: str = "") -> None:
        super().__init__()
        self.fault = fault
        self.folder = folder

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Faulty:
        """Fit, or do what the fault is."""
        super().fit(X, y, sample_weight=sample_weight)
        Path(self.folder, f"{os.getpid()}-{time.monotonic_ns()}").touch()
        if len(list(Path(self.folder).iterdir())) >= 3:
            with contextlib.suppress(FileExistsError):  # another process may be the third at the same time
                Path(self.folder, "the third").touch(exist_ok=False)
                self.left_ = FAULTS[self.fault]()
        return self


@contextlib.contextmanager
def backend(name: str) -> Iterator[dict[str, Any]]:
    """Context in which models are trained there; gives settings of the search."""
    if name == "dask":
        from dask.distributed import Client, LocalCluster

        with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:  # noqa: SIM117
            with Client(cluster), parallel_config(backend="dask"):
                yield {}
    elif name == "ray":
        import ray
        from ray.util.joblib import register_ray

        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
        register_ray()
        with parallel_config(backend="ray"):
            yield {}
        ray.shutdown()
    else:
        yield {"n_jobs": {"one": 1, "two": 2}[name]}


def tried(fault: str, settings: dict[str, Any]) -> tuple[str, float]:
    """What became of a search with the fault, and its seconds."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search = MetricSearch.from_settings(
            Faulty(fault, folder),
            embedding="label",
            strategies="example weights",
            base_weights="uniform",
            n_candidates=10,
            batch_size=5,
            evaluate_on=0.4,
            honest=None,
            final="best",
            random_state=0,
            **settings,
        )
        try:
            search.fit(X, y)
        except BaseException as error:
            return f"NOT SURVIVED: {type(error).__name__}: {str(error)[:80]}", time.monotonic() - begun
    failed = [trial.error for trial in search.result_.trials if trial.error]
    harmless = fault == "a model that cannot be sent" and settings.get("n_jobs") == 1  # it is not sent
    trained_again = fault in CRASHES and not failed
    if len(failed) != 1 and not trained_again and not harmless:
        return f"NOT SURVIVED: {len(failed)} failures are recorded", time.monotonic() - begun
    if failed:
        return failed[0].split("\n")[0][:90], time.monotonic() - begun
    said = "trained again by another process" if trained_again else "no fault here"
    return said, time.monotonic() - begun


def main() -> None:
    """Try all faults, and print what became of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--backends", default="one,two,dask,ray")
    parser.add_argument("--faults", default=",".join(FAULTS))
    given = parser.parse_args()
    counts: dict[str, list[int]] = {}
    for place in given.backends.split(","):
        try:
            with backend(place) as settings:
                counts[place] = [0, 0]
                for fault in given.faults.split(","):
                    if fault in NOT_TRIED.get(place, ()):
                        continue
                    limit = fault in LIMITED or (fault in CRASHES and place == "one")
                    more = {"candidate_timeout": TIMEOUT if fault in LIMITED else 60.0} if limit else {}
                    said, seconds = tried(fault, {**settings, **more})
                    counts[place][0] += 1
                    counts[place][1] += not said.startswith("NOT")
                    print(f"{place:6}{fault:30}{seconds:6.1f} s  {said}", flush=True)
        except ModuleNotFoundError as missing:
            print(f"{place:6}left out: {missing.name} is not installed")
    print()
    for place, (n_tried, n_survived) in counts.items():
        print(f"{place}: {n_survived} of {n_tried} faults survived")
    sys.exit(any(n_tried != n_survived for n_tried, n_survived in counts.values()))


if __name__ == "__main__":
    main()
