"""Figures 3a and 3b: the worst digit's error on MNIST, for networks 784 → h → 10 of growing size.

The embedding is the digit itself (one-hot, 10 dimensions). Settings that the paper leaves open are the
authors': mini-batches of 100 in the order of the file, sigmoid cross-entropy for each class, radius 1, no π,
and the first 5,000 training rows for validation. So repeats differ in first parameters and candidates alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np

from moew.datasets import TrainTest, load_mnist
from moew.nets import NetworkSpec, RepeatedNetworks
from moew.paper._experiment import Line, Options, Prepared, Run, chosen, difference, table
from moew.paper._scaling import standardized
from moew.paper._searches import Arm, Evaluate, Moew, Plain, RandomRows, Seen, paper_search
from moew.protocols import FloatArray, IntArray
from moew.search import GpBucb
from moew.seeds import integer_seed

HIDDEN = (10, 20, 30, 40, 50)
N_VALIDATION, N_BATCHES, BATCH_SIZE = 5_000, 10, 20
# Ours is of the standardised embedding. Wider balls starve some digit in nearly every candidate: at h = 10
# and 2,000 steps the best validation error was 18.9 with 0.5, 28.1 with 1 and 98.5 with 3 (8 repeats).
PAPER_RADIUS, OUR_RADIUS = 1.0, 0.5
ARMS = ("uniform", "random weights", "moew, random alphas", "moew, GP-BUCB as in the paper", "moew")


def worst_digit(predicted: IntArray, truth: IntArray) -> dict[str, FloatArray]:
    """Error in percent (R, K) of each digit, and of the worst, for predictions (R, K, m)."""
    wrong = predicted != truth.astype(predicted.dtype)
    errors = [100.0 * wrong[..., truth == digit].mean(axis=2) for digit in range(10)]
    return {"worst": np.max(errors, axis=0), **{f"digit {d}": errors[d] for d in range(10)}}


def in_order(n_rows: int, batch: int, steps: int) -> IntArray:
    """Mini-batches (steps, 1, b) as they lie in the file, again and again."""
    return (np.arange(steps * batch, dtype=np.int32) % n_rows).reshape(steps, 1, batch)


class Mnist:
    """The rows, and what is trained and measured on them."""

    def __init__(self, options: Options, data: TrainTest, n_validation: int = N_VALIDATION) -> None:
        self.options = options
        self.X, self.y = data.train.X[n_validation:], data.train.y[n_validation:]
        self.X_val, self.y_val = data.train.X[:n_validation], data.train.y[:n_validation]
        self.X_test, self.y_test = data.test.X, data.test.y

    def networks(self, hidden: int) -> RepeatedNetworks:
        o = self.options
        spec = NetworkSpec(
            (784, hidden, 10), "sigmoid", "sigmoid_cross_entropy", o.steps, 100, precision=o.precision
        )
        one_hot = np.eye(10, dtype=np.float32)[self.y][None]
        batches = in_order(len(self.y), 100, o.steps)
        seed = integer_seed(o.seed, "mnist", hidden)
        return RepeatedNetworks(
            spec, self.X[None], one_hot, o.repeats, seed, batches=batches, device=o.device
        )

    def evaluation(self, networks: RepeatedNetworks, by_digit: bool) -> Evaluate:
        """Validation and test error of networks, and the validation error of each digit where wanted."""
        X_val, X_test = (networks.place(X[None]) for X in (self.X_val, self.X_test))

        def evaluate(params: Any) -> dict[str, FloatArray]:
            validation = worst_digit(networks.classes(params, X_val), self.y_val)
            test = worst_digit(networks.classes(params, X_test), self.y_test)["worst"]
            return {"validation": validation.pop("worst"), "test": test, **(validation if by_digit else {})}

        return evaluate

    def prepared(
        self, networks: Callable[[], RepeatedNetworks], name: str, hidden: int, uniform: Seen | None
    ) -> Prepared:
        made = networks()
        evaluate = self.evaluation(made, by_digit=name == "uniform")
        return Prepared(made, self.arm(name, hidden, uniform), evaluate)

    def arm(self, name: str, hidden: int, uniform: Seen | None) -> Arm:
        """One of ARMS; the noise of the paper's GP is that of the uniform models, which come first."""
        Z = np.eye(10)[self.y][None]
        seed = integer_seed(self.options.seed, name, hidden)
        shared: dict[str, Any] = {"greater_is_better": False, "seed": seed, "n_jobs": self.options.n_jobs}
        if name == "uniform":
            return Plain()
        if name == "random weights":
            return RandomRows()
        if name == "moew, random alphas":
            return Moew(Z, PAPER_RADIUS, None, **shared)
        if name == "moew":
            return Moew(standardized(Z), OUR_RADIUS, GpBucb(), **shared)
        return Moew(Z, PAPER_RADIUS, paper_search(uniform), **shared)


def search_all(
    this: Run, data: Mnist, hidden: tuple[int, ...] = HIDDEN, n_batches: int = N_BATCHES
) -> dict[tuple[int, str], Seen]:
    """Every arm for every size of the network; what was done before is taken from the folder."""
    found: dict[tuple[int, str], Seen] = {}
    for arms, h in product((ARMS[:-1], ARMS[-1:]), hidden):  # the paper's arms first
        networks = cache(partial(data.networks, h))  # made when first needed
        for name in arms:
            prepare = partial(data.prepared, networks, name, h, found.get((h, "uniform")))
            found[h, name] = this.search(f"h={h} {name}", prepare, n_batches=n_batches, batch_size=BATCH_SIZE)
    return found


def report(this: Run, found: dict[tuple[int, str], Seen]) -> str:
    """The table; raw numbers and figures go to the folder."""
    picks = {key: chosen(seen, greater_is_better=False) for key, seen in found.items()}
    this.write_values([(f"h={h} {name}", values) for (h, name), values in picks.items()])
    sizes = list(dict.fromkeys(h for h, _ in found))
    parts = []
    for h in sizes:
        lines = [Line(name, picks[h, name]["test"], greater_is_better=False) for name in ARMS]
        parts.append(table(f"784-{h}-10, worst digit's test error in percent", lines))
        uniform = picks[h, "uniform"]["test"]
        parts += [
            difference(f"{name} − uniform", picks[h, name]["test"], uniform, False) for name in ARMS[2:]
        ]
        parts.append("")
    draw(this, found, picks, sizes)
    return "\n".join(parts)


def draw(this: Run, found: Any, picks: Any, sizes: list[int]) -> None:
    """Figure 3a: test error by size; 3b: mean alpha by digit beside the uniform model's error."""
    from moew.paper._figures import band, new_figure, save

    figure, (left, right) = new_figure(1, 2, (11, 4.6))
    for name in ARMS:
        band(left, sizes, [picks[h, name]["test"] for h in sizes], name)
    left.set(xlabel="hidden nodes h", ylabel="worst digit's test error, %", title="Figure 3a")
    left.legend()
    largest = sizes[-1]
    alphas = found[largest, ARMS[3]]
    best = alphas.best(greater_is_better=False)
    winners = alphas.alphas[np.arange(len(best)), best]
    band(right, range(10), list(winners.T), "mean α of the winners (left axis)")
    errors = [picks[largest, "uniform"][f"digit {d}"] for d in range(10)]
    other = right.twinx()
    band(other, range(10), errors, "validation error of uniform, % (right axis)", color="#D55E00")
    right.set(xlabel="digit", title=f"Figure 3b, h = {largest}", xticks=range(10))
    right.legend(loc="upper left")
    other.legend(loc="lower right")
    save(figure, this.folder / "mnist.png")


def main(options: Options) -> str:
    """Run or go on, and return the tables; figures and raw numbers go to the folder."""
    this = Run("mnist", options)
    return this.conclude(report(this, search_all(this, Mnist(options, load_mnist()))))
