"""Theorem 2 compared with an exhaustive search over an ε-cover, on a problem that is solved exactly.

Four groups of rows, (label, half), each normal around its own centre; a linear classifier by weighted least
squares; the metric is the worst group's error. So the error of a classifier is known exactly (a normal
tail), every point of the cover is trained exactly (only the groups' sums are needed), and L_φ is the largest
of exact gradients. Training rows are drawn once, with other shares of the groups than validation; a repeat is
a new validation set. The embedding is the first d of (label, half, label · half), with α in the unit ball, as
in the theorem.

The bound holds, and is loose: tens of times the largest regret of all repeats. The reasons: √K, although a
maximum moves no more than its largest argument; σ = ½ for losses that are rarely 1; a union bound over points
whose errors are nearly the same; and twice the largest deviation, although the choice is among good points.

No network is trained: `device`, `precision` and `steps` change nothing.
"""

from __future__ import annotations

import csv
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from experiments._bound_problem import (
    N_GROUPS,
    Sums,
    mean_losses,
    steepness,
    train,
    training_sums,
    validated,
    worst_group,
)
from experiments._experiment import Options, Run
from experiments._searches import Seen
from experiments.samplers import CoverSampler
from experiments.theory import Theorem2
from moew._util.margins import margin
from moew.samplers import Ball
from moew.types import FloatArray

DIMS = (1, 2, 3)
SIZES = (50, 100, 200, 500, 1000, 2000, 5000, 10_000)
DELTA = 0.05
_LARGEST_COVER = 2_000_000


def measure(options: Options, theorem: Theorem2, sums: Sums, n_rows: int) -> Seen:
    """Each repeat's choice, its validation and its exact metric, and the largest gap over the whole cover."""
    alphas = CoverSampler(theorem.epsilon(n_rows), _LARGEST_COVER).points(Ball(theorem.n_dims, 1.0))
    classifiers = train(sums, alphas)
    exact = worst_group(mean_losses(classifiers))

    def one(number: int) -> tuple[int, float, float]:
        found = validated(classifiers, n_rows, options.seed, number)
        best = int(found.argmax())
        return best, float(found[best]), float(np.abs(found - exact).max())

    jobs = (delayed(one)(number) for number in range(options.repeats))
    best, validation, largest = zip(*Parallel(n_jobs=options.n_jobs)(jobs), strict=True)
    chosen = np.array(best)
    return Seen(
        alphas[chosen][:, None],
        {
            "validation": np.array(validation)[:, None],
            "test": exact[chosen][:, None],
            "largest gap": np.array(largest)[:, None],
            "best of the cover": np.full((options.repeats, 1), exact.max()),
            "points": np.full((options.repeats, 1), len(alphas)),
        },
    )


def theorem_for(sums: Sums, d: int, n_rows: int) -> Theorem2:
    """Theorem 2 with L_φ as the largest gradient over the cover for `n_rows`."""
    epsilon = Theorem2(d, N_GROUPS, 0.5, float(N_GROUPS), 0.0, DELTA).epsilon(n_rows)
    points = CoverSampler(epsilon, _LARGEST_COVER).points(Ball(d, 1.0))
    return Theorem2(d, N_GROUPS, 0.5, float(N_GROUPS), steepness(sums, points), DELTA)


def measure_all(
    this: Run, dims: tuple[int, ...], sizes: tuple[int, ...]
) -> tuple[dict[int, Theorem2], dict[tuple[int, int], Seen]]:
    """Measure every d and N; finished ones are read from the folder."""
    sums = training_sums(this.options.seed)
    theorems = {d: theorem_for(sums, d, min(sizes[-1], 2000)) for d in dims}
    found: dict[tuple[int, int], Seen] = {}
    for d, n_rows in ((d, n) for d in dims for n in sizes):
        setting = f"d={d} n={n_rows}"
        path = this.state(setting)
        if not path.exists():
            measure(this.options, theorems[d], sums, n_rows).save(path)
            this.tick(setting, 1)(1)
        found[d, n_rows] = Seen.load(path)
    return theorems, found


def gaps(found: dict[tuple[int, int], Seen]) -> dict[tuple[int, int], dict[str, FloatArray]]:
    """|validation − test| of the choice, its largest value over the cover, and the regret (R,), in percent.

    The best point of the ball is taken to be the best of all its covers.
    """
    best = {
        d: max(seen.scores["best of the cover"][0, 0] for (e, _), seen in found.items() if e == d)
        for d, _ in found
    }
    return {
        (d, n): {
            "gap": 100 * np.abs(seen.scores["validation"] - seen.scores["test"])[:, 0],
            "largest gap": 100 * seen.scores["largest gap"][:, 0],
            "regret": 100 * (best[d] - seen.scores["test"][:, 0]),
        }
        for (d, n), seen in found.items()
    }


def report(this: Run, theorems: dict[int, Theorem2], found: dict[tuple[int, int], Seen]) -> str:
    """The table, in points of percent; raw numbers and the figure go to the folder."""
    measured = gaps(found)
    this.write_values([(f"d={d} n={n}", values) for (d, n), values in measured.items()])
    lines = [
        "Worst group's error, in points of percent; Theorem 2 and its proof hold with probability 0.95",
        f"{'':20}{'regret of the choice':^36}|{'largest |validation − test|':^28}",
        f"{'d':>2}{'N':>8}{'points':>9} {'bound':>8}{'mean':>16}{'most':>7}   | {'bound':>8}{'mean':>17}",
    ]
    for (d, n), values in measured.items():
        regret, largest = values["regret"], values["largest gap"]
        lines.append(
            f"{d:>2}{n:>8}{int(found[d, n].scores['points'][0, 0]):>9} {100 * theorems[d].bound(n):>8.1f}"
            f"{regret.mean():>9.2f} ± {margin(regret):4.2f}{regret.max():>7.2f}   | "
            f"{100 * theorems[d].deviation(n):>8.1f}{largest.mean():>10.2f} ± {margin(largest):4.2f}"
        )
    for d, theorem in theorems.items():
        rows = [f"{theorem.rows_for(gap):,}" for gap in (1.0, 0.05)]
        lines += [
            f"d = {d}: L_φ = {theorem.lipschitz_model:.3f}. The bound falls below 100 %, where it begins to",
            f"say anything, at N = {rows[0]}, and below 5 % at N = {rows[1]}; with the most rows here",
            f"it is {looseness(theorem, measured):.0f} times the largest regret seen.",
        ]
    write_bounds(this, theorems, list(measured))
    draw(this, theorems, measured)
    return "\n".join(lines)


def write_bounds(this: Run, theorems: dict[int, Theorem2], sizes: list[tuple[int, int]]) -> None:
    """Write the bounds that the figure shows, in points of percent, to theorem-2.csv."""
    with (this.folder / "theorem-2.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["d", "N", "bound of the regret", "bound of |validation − test|"])
        for d, n in sizes:
            bounds = (100 * theorems[d].bound(n), 100 * theorems[d].deviation(n))
            writer.writerow([d, n, *(f"{bound:.6g}" for bound in bounds)])


def looseness(theorem: Theorem2, measured: dict[tuple[int, int], dict[str, FloatArray]]) -> float:
    """The bound divided by the largest regret of all repeats, for the largest N."""
    n = max(n for d, n in measured if d == theorem.n_dims)
    largest = measured[theorem.n_dims, n]["regret"].max()
    return float(100 * theorem.bound(n) / largest) if largest > 0 else float("inf")


def draw(
    this: Run, theorems: dict[int, Theorem2], measured: dict[tuple[int, int], dict[str, FloatArray]]
) -> None:
    """Draw a panel for each d: the two bounds, and the measured values below them."""
    from experiments._figures import band, new_figure, save

    figure, axes = new_figure(1, len(theorems), (4.2 * len(theorems), 4.4))
    for axis, (d, theorem) in zip(np.atleast_1d(axes), theorems.items(), strict=True):
        sizes = [n for e, n in measured if e == d]
        shown: list[tuple[str, Any]] = [("largest |validation − test| of the cover", "largest gap")]
        shown += [("|validation − test| of the choice", "gap"), ("what the choice costs (regret)", "regret")]
        axis.plot(
            sizes,
            [100 * theorem.bound(n) for n in sizes],
            "--",
            color="black",
            label="Theorem 2, for the regret",
        )
        allowed = [100 * theorem.deviation(n) for n in sizes]
        axis.plot(sizes, allowed, ":", color="black", label="its proof, for |validation − test|")
        for label, name in shown:
            band(axis, sizes, [measured[d, n][name] for n in sizes], label)
        axis.axhline(100, color="grey", linewidth=0.8)
        axis.set(xscale="log", yscale="log", title=f"d = {d}", ylim=(0.05, 1000), xlabel="validation rows N")
    np.atleast_1d(axes)[0].set_ylabel("points of percent of the worst group's error")
    figure.legend(*np.atleast_1d(axes)[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    save(figure, this.folder / "bound.png")


def main(options: Options) -> str:
    """Run or continue, and return the table; the figure and raw numbers go to the folder."""
    this = Run("bound", options)
    return this.conclude(report(this, *measure_all(this, DIMS, SIZES)))
