"""The search that `benchmarks/kills.py` kills.

    python benchmarks/killed_search.py search STORAGE JOBS RESULT [BATCHES [--join]]
    python benchmarks/killed_search.py digest RUN RESULT
    python benchmarks/killed_search.py forks

`search` runs a small search and writes digests of all that came out to RESULT; `digest` does so for a run
folder of `moew fit`. `forks` loads what both need, and then forks a process for each order that it reads,
so that a case need not wait for imports. Each is the leader of a session of its own, with the signals of a
new process.

Each training is written down in the file that MOEW_KILLS_LOG names: the process, the time, what it is. With a
number of batches, so is what else tells whose training a candidate's was: see `watch`.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

LOG = "MOEW_KILLS_LOG"
SEARCH: dict[str, Any] = {"n_candidates": 12, "batch_size": 4, "random_state": 0}
_SECONDS = 0.02  # of each training


class Sleepy(LogisticRegression):
    """A logistic regression that takes a while to train, and writes down when it was trained with what."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Sleepy:
        what = f"{self.random_state}-{digest(np.asarray(sample_weight, dtype=np.float64))}"
        write_down("begin", what)
        time.sleep(_SECONDS)
        super().fit(X, y, sample_weight)
        write_down("end", what)
        return self


def write_down(event: str, what: str) -> None:
    """Append a line to the log in one write, which other processes' lines cannot get into."""
    if path := os.environ.get(LOG):
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, f"{os.getpid()} {time.monotonic():.6f} {event} {what}\n".encode())
        finally:
            os.close(file)


def rows() -> tuple[dict[str, Any], Any]:
    """Training and validation rows for `fit`, and rows to predict."""
    rng = np.random.default_rng(0)

    def draw(n: int, share: float) -> tuple[Any, Any]:
        y = (rng.random(n) < share).astype(int)
        return 1.5 * y[:, None] + rng.standard_normal((n, 2)), y

    (X, y), (X_val, y_val), (X_new, _) = draw(120, 0.25), draw(120, 0.5), draw(50, 0.5)
    return {"X": X, "y": y, "validation": (X_val, y_val)}, X_new


def write_tables(folder: Path) -> None:
    """The same rows as files for the command line."""
    import pandas as pd

    given, new = rows()
    for name, X, y in (("train", given["X"], given["y"]), ("valid", *given["validation"])):
        pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y}).to_csv(folder / f"{name}.csv", index=False)
    pd.DataFrame({"a": new[:, 0], "b": new[:, 1]}).to_csv(folder / "new.csv", index=False)


def command(n_jobs: int) -> list[str]:
    """The arguments of `moew`, for the first start and for all others."""
    options = {
        "validation": "valid.csv",
        "label": "y",
        "metric": "neg_brier_score",
        "model": "killed_search:Sleepy",
        "candidates": SEARCH["n_candidates"],
        "set": f"batch_size={SEARCH['batch_size']}",
        "seed": SEARCH["random_state"],
        "jobs": n_jobs,
        "out": "run",
    }
    return ["fit", "train.csv", *(f"--{name}={value}" for name, value in options.items()), "--resume"]


def watch() -> None:
    """Also write down which candidates a study was told, by their models' seeds; which trainings are no
    candidate's, but show whether the model heeds its weights or which rows may be trusted; and when the last
    candidate is done."""
    from moew._util.seeds import integer_seed
    from moew.search import _estimator
    from moew.search._study import WeightStudy
    from moew.training import _trainers

    estimator: Any = _estimator
    trainers: Any = _trainers
    studies: Any = WeightStudy
    tell_all, conclude = studies.tell_all, estimator.conclude
    opposite_weights = trainers._opposite_weights

    def tell_and_write(study: Any, told: Any, **more: Any) -> Any:
        found = tell_all(study, told, **more)
        for one in told:
            write_down("told", str(integer_seed(study.seed, "model", one.number)))
        return found

    def write_and_conclude(*arguments: Any) -> Any:
        write_down("concluding", "")
        return conclude(*arguments)

    look = estimator.look_at_unweighted

    def write_and_look(prepared: Any) -> Any:
        write_down("look", str(integer_seed(prepared.seed, "first look")))
        return look(prepared)

    def opposite_and_write(*arguments: Any) -> Any:
        weights = opposite_weights(*arguments)
        write_down("probe", digest(np.asarray(weights, dtype=np.float64)))
        return weights

    studies.tell_all = tell_and_write
    estimator.conclude = write_and_conclude
    estimator.look_at_unweighted = write_and_look
    trainers._opposite_weights = opposite_and_write


def search(storage: str, n_jobs: int, result: Path, **changes: Any) -> None:
    """Run the search, with these settings changed, and write digests of what came out."""
    from moew import MetricSearch

    given, new = rows()
    settings = {"metric": "neg_brier_score", "storage": storage, "n_jobs": n_jobs, **SEARCH, **changes}
    found = MetricSearch.from_settings(Sleepy(), **settings).fit(**given)
    trials = found.result_.trials
    write_result(
        result,
        alphas=digest(*(trial.alpha for trial in trials), *found.best_alpha_),
        values=digest(*((trial.number, trial.seed, trial.value, trial.error) for trial in trials)),
        strategies=digest(found.selected_, *found.result_.strategies),
        weights=digest(found.sample_weight_),
        predictions=digest(found.predict(new), found.predict_proba(new)),
        scores=digest(found.honest_score_, found.best_score_, found.unweighted_score_),
    )


def digest_run(run: Path, result: Path) -> None:
    """Write digests of what `moew fit` left in a run folder."""
    import pandas as pd

    from moew.cli.runs import load_run

    content = json.loads((run / "result.json").read_text(encoding="utf-8"))
    report = json.loads((run / "report.json").read_text(encoding="utf-8"))
    del report["settings"]  # with the number of jobs
    found = load_run(run, trusted=True)
    predictions = found.predict(found.rows_to_predict(run.parent / "new.csv"))
    write_result(
        result,
        result=digest(json.dumps(content, sort_keys=True)),
        report=digest(json.dumps(report, sort_keys=True)),
        weights=digest(pd.read_parquet(run / "weights.parquet").to_csv()),
        predictions=digest(*(np.asarray(values).tolist() for values in predictions.values())),
    )


def digest(*parts: Any) -> str:
    """A digest of numbers, to the last bit, of texts and of records."""
    content = hashlib.sha256()
    for part in parts:
        is_array = isinstance(part, np.ndarray)
        content.update(np.ascontiguousarray(part).tobytes() if is_array else repr(part).encode())
        content.update(b"\0")
    return content.hexdigest()[:16]


def write_result(path: Path, **digests: str) -> None:
    """Write the digests as a whole file."""
    new = path.with_suffix(".new")
    new.write_text(json.dumps(digests), encoding="utf-8")
    new.replace(path)


def main(arguments: Sequence[str]) -> None:
    """Run the command that the arguments name."""
    if arguments[0] == "moew":
        from moew.cli import main as moew

        sys.argv = list(arguments)
        moew()
    elif arguments[0] == "search":
        storage, n_jobs, result, *more = arguments[1:]
        changes: dict[str, Any] = {}
        if more:
            watch()
            n_candidates = int(more[0]) * SEARCH["batch_size"]
            changes = {"n_candidates": n_candidates} | ({"join": True} if "--join" in more else {})
        search(storage, int(n_jobs), Path(result), **changes)
    elif arguments[0] == "digest":
        digest_run(Path(arguments[1]), Path(arguments[2]))
    else:
        sys.exit(f"no command {arguments[0]!r}")


def next_order() -> list[str]:
    """Fork a process for each order that is read; in these processes this returns what they shall do.

    An order is a line of JSON; the answer is the number of the process. A first line says that it is ready.
    """
    print("ready", flush=True)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # whoever gave the order waits for the process
    for line in sys.stdin:
        order = json.loads(line)
        ready, is_ready = os.pipe()
        process = os.fork()
        if process == 0:
            os.setsid()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.write(is_ready, b"!")
            os.close(ready)
            os.close(is_ready)
            _become(order)
            return list(order["arguments"])
        os.read(ready, 1)  # from here on its session is its own
        os.close(ready)
        os.close(is_ready)
        print(process, flush=True)
    sys.exit()


def _become(order: dict[str, Any]) -> None:
    """Make this process what it would be if it had been started for the order."""
    os.chdir(order["folder"])
    os.environ.update(order["environment"])
    tempfile.tempdir = None  # looked up in the environment again
    said = os.open(order["said"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(said, 1)
    os.dup2(said, 2)
    os.close(said)
    os.close(nothing)


def load() -> None:
    """Load what searches need, as far as it is known beforehand."""
    import importlib

    for name in (
        "moew.search._estimator",
        "moew.cli._prepare",
        "moew.cli.fit",
        "moew.cli.runs._folder",
        "moew.report",
        "pandas",
        "pyarrow.parquet",
        "scipy.optimize",
        "scipy.stats",
        "skops.io",
        "sklearn.model_selection",
    ):
        importlib.import_module(name)
    if importlib.util.find_spec("psycopg") is not None:
        importlib.import_module("psycopg")


if __name__ == "__main__":
    # The model is one of the module's, which worker processes can load, not of `__main__`.
    import killed_search

    if sys.argv[1:] == ["forks"]:
        killed_search.load()
        killed_search.main(killed_search.next_order())
    else:
        killed_search.main(sys.argv[1:])
