"""The bits of many kinds of small fits, to compare before and after a change that must not change them.

    python benchmarks/golden.py write bits.json       before the change
    python benchmarks/golden.py compare bits.json     after it

For each fit there is a digest of the candidates, of the scores of all that was compared, of the weights, and
of what is predicted for new rows; `compare` names the digests that differ. Bits depend on the machine and on
the versions of libraries, so that the file is not kept.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from lightgbm import LGBMClassifier
from sklearn.datasets import make_classification, make_regression
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler

from moew import ExampleWeights, MetricSearch, Rows, compare
from moew.decision import Tuned
from moew.metrics import make_metric

N, N_VALIDATION = 240, 400  # rows up to which training and validation rows go; the rest is new


def main() -> None:
    """Write the digests of all fits, or compare them with those that were written."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["write", "compare"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", help="a part of the names of the fits")
    given = parser.parse_args()
    found = {}
    for name, fit in fits().items():
        if given.only is None or given.only in name:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found[name] = fit()
            print(".", end="", flush=True)
    print()
    if given.what == "write":
        given.file.write_text(json.dumps(found, indent=1))
        return
    before = json.loads(given.file.read_text())
    differ = {
        name: sorted(part for part in parts if parts[part] != before[name].get(part))
        for name, parts in found.items()
        if name in before and parts != before[name]
    }
    for name, parts in differ.items():
        print(f"{name}: other bits of {', '.join(parts)}")
    print(f"{len(found) - len(differ)} of {len(found)} fits have the same bits.")
    sys.exit(bool(differ))


def fits() -> dict[str, Callable[[], dict[str, str]]]:
    """The fits by name."""
    return {
        **{
            f"{kind}{', stored' if stored else ''}{'' if selects else ', weights alone'}": partial(
                _plain, kind, stored, selects
            )
            for kind in ("two classes", "several classes", "regression")
            for stored in (False, True)
            for selects in (True, False)
        },
        "no validation rows": lambda: _searched("two classes", validation=False),
        "shifted": lambda: _searched("shifted"),
        "holdout": lambda: _searched("two classes", honest="holdout"),
        "no honest score": lambda: _searched(
            "two classes", honest=None, strategies="example weights", final="best"
        ),
        "validation rows alone": lambda: _searched("two classes", evaluate_on="validation"),
        "smoothed": lambda: _searched("two classes", final="smoothed"),
        "rule": lambda: _searched("two classes", decision="select=0.2"),
        "tuned": lambda: _searched("two classes", decision="tuned"),
        "tuned by group": lambda: _searched("two classes", decision=Tuned(by="group"), columns=True),
        "two metrics with a bound": lambda: _searched(
            "two classes", metric=["accuracy", "recall"], constraints="recall >= 0.5"
        ),
        "calibrated": lambda: _searched("two classes", calibrate="sigmoid"),
        "groups": lambda: _searched("two classes", groups=True),
        "sample weights": lambda: _searched("two classes", weights=True),
        "own metric with columns": lambda: _searched("two classes", metric=_saved_money(), columns=True),
        "scores": lambda: _searched("two classes", metric="roc_auc"),
        "boosting, two jobs": lambda: _searched(
            "two classes", estimator=LGBMClassifier(n_estimators=10, verbose=-1, n_jobs=1), n_jobs=2
        ),
        "hyper-parameters": _with_parameters,
        "stopped": lambda: _searched("two classes", stop_when=0.5, batch_size=5, n_candidates=25),
        "as in the paper": _as_in_the_paper,
        "networks": _networks,
        "comparison": _comparison,
        "command line": _command_line,
    }


def _plain(kind: str, stored: bool, selects: bool) -> dict[str, str]:
    if not stored:
        return _searched(kind, strategies="auto" if selects else "example weights")
    with TemporaryDirectory() as folder:
        return _searched(
            kind, strategies="auto" if selects else "example weights", storage=f"sqlite:///{folder}/study.db"
        )


def _rows(kind: str) -> tuple[Any, Any]:
    if kind == "regression":
        X, y = make_regression(700, 6, n_informative=3, noise=20.0, random_state=0)
        return X, y - y.min() + 1.0
    n_classes = 3 if kind == "several classes" else 2
    X, y = make_classification(
        700,
        6,
        n_informative=4,
        n_classes=n_classes,
        weights=[0.75, 0.15][: n_classes - 1],
        flip_y=0.1,
        random_state=0,
    )
    if kind == "shifted":
        X[:N] += 0.8 * y[:N, None]
    return X, y


def _saved_money() -> Any:
    def saved(y_true: Any, decision: Any, amount: Any) -> float:
        return float(np.mean(np.where(decision == 1, np.where(y_true == 1, amount, -1.0), 0.0)))

    return make_metric(saved, response="decision")


def _searched(
    kind: str,
    *,
    estimator: Any = None,
    metric: Any = None,
    validation: bool = True,
    columns: bool = False,
    groups: bool = False,
    weights: bool = False,
    fit: dict[str, Any] | None = None,
    as_in_the_paper: bool = False,
    **parameters: Any,
) -> dict[str, str]:
    X, y = _rows(kind)
    rng = np.random.default_rng(1)
    known = {"amount": rng.gamma(2.0, size=len(y)), "group": rng.integers(0, 2, len(y))}
    if metric is None:
        metric = "neg_mean_absolute_error" if kind == "regression" else "worst_class_error"
    if estimator is None:
        estimator = Ridge() if kind == "regression" else LogisticRegression()
    settings = {"n_candidates": 10, "batch_size": 5, "random_state": 3, **parameters}
    if as_in_the_paper:
        search = MetricSearch.as_in_the_paper(estimator, metric, **settings)
    else:
        search = MetricSearch.from_settings(estimator, metric=metric, **settings)
    training, evaluated = slice(0, N), slice(N, N_VALIDATION)

    def of(rows: slice) -> dict[str, Any]:
        return {
            "sample_weight": known["amount"][rows] if weights else None,
            "columns": {key: values[rows] for key, values in known.items()} if columns else None,
            "groups": np.arange(len(y))[rows] // 4 if groups else None,
        }

    given = Rows(X[evaluated], y[evaluated], **of(evaluated)) if validation else None
    search.fit(X[training], y[training], **of(training), validation=given, **(fit or {}))
    new = slice(N_VALIDATION, None)
    more = {"columns": {key: values[new] for key, values in known.items()}} if columns else {}
    return _of_search(search, X[new], more)


def _of_search(search: Any, X: Any, more: dict[str, Any]) -> dict[str, str]:
    result = search.result_
    found = {
        "candidates": _digest([*(t.alpha for t in result.trials), [t.value for t in result.trials]]),
        "scores": _digest(
            [
                [s.apparent for s in result.strategies],
                [s.honest for s in result.strategies],
                [s.error for s in result.strategies],
                list(vars(result.honest).values())[:6],
                [result.gain, result.gain_error],
            ]
        ),
        "weights": _digest([search.sample_weight_]),
        "predictions": _digest([search.predict(X, **more)]),
        "selected": str([s.name for s in result.strategies].index(result.selected)),
    }
    if hasattr(search, "predict_proba"):
        found["probabilities"] = _digest([search.predict_proba(X)])
    return found


def _digest(arrays: list[Any]) -> str:
    found = hashlib.sha256()
    for array in arrays:
        found.update(np.ascontiguousarray(np.asarray(array, dtype=np.float64)).tobytes())
    return found.hexdigest()[:16]


def _with_parameters() -> dict[str, str]:
    from optuna.distributions import FloatDistribution

    space = {"C": FloatDistribution(1e-3, 10.0, log=True)}
    return _searched("two classes", search_space=space)


def _as_in_the_paper() -> dict[str, str]:
    from moew.embedding import AutoencoderEmbedding

    embedding = AutoencoderEmbedding(hidden=5, n_dims=2, steps=50, standardize=False)
    return _searched(
        "two classes",
        as_in_the_paper=True,
        embedding=embedding,
        n_candidates=8,
        batch_size=4,
        alpha_zero_repeats=3,
    )


def _networks() -> dict[str, str]:
    from moew.models.networks import NetworkClassifier

    return _searched("two classes", estimator=NetworkClassifier(hidden=(4,), steps=50))


def _comparison() -> dict[str, str]:
    X, y = _rows("two classes")
    search = MetricSearch(
        LogisticRegression(), metric="f1", strategies=["auto", ExampleWeights(batch_size=4)], n_candidates=4
    )
    table = compare(
        search,
        X[:N],
        y[:N],
        validation=(X[N:N_VALIDATION], y[N:N_VALIDATION]),
        test=(X[N_VALIDATION:], y[N_VALIDATION:]),
        repeats=2,
    )
    return {str(k): _digest([row.apparent, row.honest, row.test]) for k, row in enumerate(table.rows)}


def _command_line() -> dict[str, str]:
    X, y = _rows("two classes")
    X = StandardScaler().fit_transform(X)
    with TemporaryDirectory() as name:
        folder = Path(name)
        for part, rows in (
            ("train", slice(0, N)),
            ("valid", slice(N, N_VALIDATION)),
            ("new", slice(400, None)),
        ):
            table = np.column_stack([X[rows], y[rows]])
            heads = ",".join([*(f"x{k}" for k in range(X.shape[1])), "y"])
            np.savetxt(folder / f"{part}.csv", table, delimiter=",", header=heads, comments="", fmt="%.17g")
        run = folder / "run"
        fit = [
            "fit",
            "train.csv",
            "--validation",
            "valid.csv",
            "--label",
            "y",
            "--metric",
            "f1",
            "--seed",
            "1",
        ]
        _moew([*fit, "--candidates", "8", "--out", str(run)], folder)
        _moew(["predict", str(run), "new.csv", "--out", "out.csv"], folder)
        return {"predictions": hashlib.sha256((folder / "out.csv").read_bytes()).hexdigest()[:16]}


def _moew(arguments: list[str], folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "moew", *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.stderr)


if __name__ == "__main__":
    main()
