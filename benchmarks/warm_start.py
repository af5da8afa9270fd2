"""Whether candidates that begin at the uniform model reach, with a fifth of the steps, what cold ones reach.

For each repeat (its own split and alphas) the same weightings are trained three times: cold with all steps,
warm from the model of uniform weights with a fifth of them, and cold with a fifth, to see what the warm start
brings. What is compared is the metric on the validation rows: the mean over the candidates, and the best of
them, which is what a search would pick. Margins are 95 % t-intervals of the mean over the repeats; that of a
difference is of the differences within each repeat. A wide margin proves nothing, so the upper end is shown.

    python benchmarks/warm_start.py [--repeats 5] [--candidates 20] [--steps 10000] [--case wine|digits]

The rows are those of the paper's wine and MNIST where the folder named by MOEW_DATA holds them
(wine/wine.csv.gz, mnist/*.gz), and drawn ones of a similar shape where not; the table says which.
"""

from __future__ import annotations

import argparse
import gzip
import os
import time
from pathlib import Path

import numpy as np
from scipy.special import expit
from scipy.stats import t as student

from moew.models.networks import NetworkClassifier, NetworkRegressor

Rows = tuple[str, np.ndarray, np.ndarray]


def data_file(name: str) -> Path | None:
    path = Path(os.environ.get("MOEW_DATA", "")) / name
    return path if os.environ.get("MOEW_DATA") and path.exists() else None


def wine() -> Rows:
    """Log price from points and word flags."""
    path = data_file("wine/wine.csv.gz")
    if path is not None:
        with gzip.open(path, "rt") as lines:
            names = next(lines).strip().split(",")
            table = np.loadtxt(lines, delimiter=",")
        price = names.index("price")
        features = [i for i, name in enumerate(names) if name not in ("id", "price")]
        return "wine", table[:, features], np.log(table[:, price])
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(88, 3, 9000), rng.random((9000, 39)) < 0.1]).astype(float)
    signal = 0.12 * (X[:, 0] - 88) + X[:, 1:] @ rng.normal(0, 0.15, 39) + 0.3 * X[:, 1] * X[:, 2]
    return "drawn, like wine", X, 3.3 + signal + 0.4 * rng.standard_normal(9000)


def digits() -> Rows:
    """Which digit, from pixels in 0…1."""
    images, labels = (
        data_file(f"mnist/train-{kind}.gz") for kind in ("images-idx3-ubyte", "labels-idx1-ubyte")
    )
    if images is not None and labels is not None:
        X = np.frombuffer(gzip.decompress(images.read_bytes()), np.uint8, offset=16).reshape(-1, 784)
        y: np.ndarray = np.frombuffer(gzip.decompress(labels.read_bytes()), np.uint8, offset=8)
        return "MNIST", (X / np.float32(255)).astype(np.float32), y
    rng = np.random.default_rng(0)
    y = rng.integers(0, 10, 20_000)
    centres = rng.random((10, 784)) < 0.2
    X = np.clip(centres[y] * 0.35 + rng.normal(0, 0.45, (len(y), 784)), 0, 1)
    return "drawn, like MNIST", X.astype(np.float32), y


def worst_quarter_error(truth: np.ndarray, predicted: np.ndarray) -> float:
    """The paper's metric on wine: the largest mean error in percent of the price in four ranges of it."""
    price = np.exp(truth)
    error = 100 * np.abs(np.exp(predicted) - price) / price
    ranges = np.digitize(price, (17, 25, 42), right=True)
    return max(float(error[ranges == r].mean()) for r in np.unique(ranges))


def worst_class_error(truth: np.ndarray, predicted: np.ndarray) -> float:
    """The paper's metric on MNIST: the error, in percent, of the digit that is recognised worst."""
    return max(float(100 * np.mean(predicted[truth == c] != c)) for c in np.unique(truth))


def embed(y: np.ndarray, regression: bool) -> np.ndarray:
    """Coordinates of the label: its range of prices, or its class, as one-hot."""
    codes = np.digitize(np.exp(y), (17, 25, 42), right=True) if regression else y
    return np.asarray(np.eye(int(codes.max()) + 1)[codes] - 0.5)


def one_repeat(rows: Rows, seed: int, given: argparse.Namespace) -> np.ndarray:
    """The metric (3, K) of the candidates cold, warm and cold with a fifth, then a column of seconds."""
    name, X, y = rows
    regression = "wine" in name
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    n_val = min(5000, len(y) // 5)
    val, train = order[:n_val], order[n_val:]
    z = embed(y[train], regression)
    alphas = rng.standard_normal((given.candidates, z.shape[1]))
    alphas *= (5 if regression else 1) / np.linalg.norm(alphas, axis=1, keepdims=True)  # the paper's radii
    weights = expit(alphas @ z.T)
    common = {"steps": given.steps, "activation": "sigmoid"}
    if regression:
        model = NetworkRegressor((20, 10), batch_size=1000, **common)
        metric = worst_quarter_error
    else:
        model = NetworkClassifier((50,), loss="sigmoid_cross_entropy", batch_size=100, scale=False, **common)
        metric = worst_class_error
    table = []
    fifth = -(-given.steps // 5)
    for steps, warm_start in ((given.steps, False), (given.steps, "uniform"), (fifth, False)):
        model.set_params(steps=steps, warm_start=warm_start)
        begin = time.perf_counter()
        seeds = [1000 * seed + k for k in range(given.candidates)]
        models = [fitted for _, fitted in model.fit_many(X[train], y[train], weights, seeds)]
        seconds = time.perf_counter() - begin
        table.append([*(metric(y[val], fitted.predict(X[val])) for fitted in models), seconds])
    return np.array(table)


def mean_and_margin(values: np.ndarray) -> tuple[float, float]:
    margin = student.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return float(values.mean()), float(margin)


def compare(cold: np.ndarray, other: np.ndarray) -> str:
    """One line on the difference to cold: lower is better."""
    mean, margin = mean_and_margin(other - cold)
    verdict = "worse" if mean > margin else "better" if mean < -margin else "no difference beyond the margin"
    upper = 100 * (mean + margin) / cold.mean()
    return f"{mean:+8.3f} ± {margin:.3f}  {verdict}; at most {upper:+.1f} % of cold's error (95 %)"


def show(rows: Rows, given: argparse.Namespace) -> None:
    results = np.array([one_repeat(rows, seed, given) for seed in range(given.repeats)])
    scores, seconds = results[:, :, :-1], results[:, :, -1].mean(axis=0)
    print(f"{rows[0]} ({len(rows[2])} rows), error in percent on the validation rows, lower is better")
    for name, summary in (("mean candidate", scores.mean(axis=2)), ("best candidate", scores.min(axis=2))):
        cold, warm, short = summary.T
        print(f"  {name}: cold, all steps  {mean_and_margin(cold)[0]:8.3f} ± {mean_and_margin(cold)[1]:.3f}")
        print(f"    warm, a fifth, minus that  {compare(cold, warm)}")
        print(f"    cold, a fifth, minus that  {compare(cold, short)}")
    print(
        f"  seconds of a batch: cold {seconds[0]:.1f}, warm {seconds[1]:.1f} (its uniform model, trained "
        f"once in a search, included), cold with a fifth {seconds[2]:.1f}\n"
    )


def main() -> None:
    options = argparse.ArgumentParser(description="Warm starts against cold ones")
    options.add_argument("--repeats", type=int, default=5)
    options.add_argument("--candidates", type=int, default=20)
    options.add_argument("--steps", type=int, default=10_000)
    options.add_argument("--case", choices=tuple(CASES), action="append")
    given = options.parse_args()
    if given.repeats < 2:
        options.error("--repeats must be 2 or more: one repeat has no margin.")
    fifth = -(-given.steps // 5)
    print(f"{given.repeats} repeats, K = {given.candidates}, {given.steps} steps, a fifth of them {fifth}\n")
    for case in given.case or CASES:
        show(CASES[case](), given)


CASES = {"wine": wine, "digits": digits}

if __name__ == "__main__":
    main()
