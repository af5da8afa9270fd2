"""The tables and the figure of the MNIST experiment, and the names of their lines."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from experiments._beside_paper import Line, difference, table
from experiments._experiment import PAPER_ARM, PERCENT, PI_ALONE, WITH_PI, Run, Scores, chosen
from experiments._posterior_choice import ARGMAX, BEST_TRIAL, BY_VALIDATION
from experiments._searches import Seen
from moew.types import FloatArray

ARMS = ("uniform", "random weights", "moew, random alphas", PAPER_ARM, "moew")
SOFTMAX_UNIFORM, SOFTMAX_MOEW, SOFTMAX_OURS = "uniform, softmax", f"{PAPER_ARM}, softmax", "moew, softmax"
FITTED = f"{PAPER_ARM}, fitted GP"
NARROW, WIDE = "moew, digit alone", "moew, digit alone, R = 1"
DIGIT_ALONE = {NARROW: 0.5, WIDE: 1.0}  # with their radius
PAPER_WITH_PI = f"{PAPER_ARM}, {WITH_PI}"
SECOND = (SOFTMAX_UNIFORM, SOFTMAX_MOEW, SOFTMAX_OURS, FITTED, *DIGIT_ALONE, PI_ALONE, PAPER_WITH_PI)
# What a search chooses by the posterior mean of its Gaussian process: the name of the search, and how.
BY_MEAN = {f"{arm}, {how}": (arm, how) for arm in (PAPER_ARM, "moew") for how in (BEST_TRIAL, ARGMAX)}
FEW = {*SECOND} - {WIDE}  # the settings with fewer repeats

PAIRS = (
    *((name, "uniform") for name in ARMS[2:]),
    ("moew", PAPER_ARM),
    (SOFTMAX_MOEW, SOFTMAX_UNIFORM),
    (SOFTMAX_OURS, SOFTMAX_UNIFORM),
    (SOFTMAX_OURS, SOFTMAX_MOEW),
    *(("moew", name) for name in DIGIT_ALONE),
    (PI_ALONE, "uniform"),
    (PAPER_WITH_PI, PI_ALONE),
    (PAPER_WITH_PI, PAPER_ARM),
)

Found = dict[tuple[int, str], Seen]  # by size of the network and arm
Picks = Mapping[str, Scores]  # by setting
Digits = dict[str, FloatArray]  # means and margins (10,) of Figure 3b


def setting(h: int, name: str) -> str:
    """The name of an arm's search for one size of the network."""
    return f"h={h} {name}"


def report(this: Run, found: Found, sizes: tuple[int, ...]) -> str:
    """The table; raw numbers and figures go to the folder."""
    picks = this.write_values(
        [
            (setting(h, name), chosen(seen, False, unit=PERCENT))
            for (h, name), seen in found.items()
            if this.wants(setting(h, name))
        ]
    )
    shown = [part for h in sizes for part in table_of_size(h, picks)]
    draw(this, found, picks, sizes)
    return "\n".join([*shown, this.remarks(lambda: hard_rows(found, sizes))])


def table_of_size(h: int, picks: Picks) -> list[str]:
    """The table of one size of the network and the differences within repeats; none without any setting."""
    of_size = {
        name: picks[setting(h, name)] for name in (*ARMS, *SECOND, *BY_MEAN) if setting(h, name) in picks
    }
    if not of_size:
        return []
    tests = {name: values["test"] for name, values in of_size.items()}
    lines = [Line(name, values, greater_is_better=False) for name, values in tests.items()]
    parts = [table(f"784-{h}-10, worst digit's test error in percent", lines)]
    parts += [
        difference(f"{a} − {b}", tests[a], tests[b], greater_is_better=False)
        for a, b in PAIRS
        if a in tests and b in tests
    ]
    parts += [
        difference(f"{name} − the choice{BY_VALIDATION}", tests[name], values[f"test{BY_VALIDATION}"], False)
        for name, values in of_size.items()
        if name in BY_MEAN
    ]
    return [*parts, ""]


def hard_rows(found: Found, sizes: tuple[int, ...]) -> str:
    """How often the winner of ours gives hard rows larger weights."""
    shown = []
    for h in sizes:
        difficulty = found[h, "moew"].winners(greater_is_better=False)[:, -1]
        shown.append(f"h = {h}: moew weights hard rows up in {(difficulty > 0).sum()} of {len(difficulty)}")
    return "\n".join(shown)


def alpha_and_error(this: Run, found: Found, picks: Picks, h: int) -> Digits | None:
    """Figure 3b: mean α of the paper's settings and the error of uniform weights, by digit.

    They are written to figure-3b.csv, and read from there if this search is not among those run; None if
    there is no such file.
    """
    path = this.folder / "figure-3b.csv"
    uniform = picks.get(setting(h, "uniform"))
    if uniform is not None and (h, PAPER_ARM) in found and this.wants(setting(h, PAPER_ARM)):
        from experiments._figures import means_and_margins

        winners = found[h, PAPER_ARM].winners(greater_is_better=False)
        errors = [uniform[f"digit {d}"] for d in range(10)]
        names = ("alpha", "alpha margin", "error", "error margin")
        values = (*means_and_margins(list(winners.T)), *means_and_margins(errors))
        write_digits(path, dict(zip(names, values, strict=True)))
    return read_digits(path) if path.exists() else None


def write_digits(path: Path, values: Digits) -> None:
    """Write values (10,) of the digits as CSV."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["digit", *values])
        writer.writerows([d, *(f"{column[d]:.6g}" for column in values.values())] for d in range(10))


def read_digits(path: Path) -> Digits:
    """Read what `write_digits` wrote."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: np.array([float(row[name]) for row in rows]) for name in rows[0] if name != "digit"}


def draw(this: Run, found: Found, picks: Picks, sizes: tuple[int, ...]) -> None:
    """Draw Figure 3a, test error by size and its difference to uniform, and 3b, alpha and error by digit;
    nothing if the numbers of a panel are missing."""
    from experiments._figures import COLOURS, band, new_figure, save

    largest = sizes[-1]
    of_digits = alpha_and_error(this, found, picks, largest)
    if of_digits is None or not all(setting(h, name) in picks for h in sizes for name in ARMS):
        return
    figure, (left, middle, right) = new_figure(1, 3, (15, 5))
    for name, colour in zip(ARMS, COLOURS, strict=False):
        tests = [picks[setting(h, name)]["test"] for h in sizes]
        uniform = [picks[setting(h, "uniform")]["test"] for h in sizes]
        band(left, sizes, tests, name, color=colour)
        band(middle, sizes, [a - b for a, b in zip(tests, uniform, strict=True)], name, color=colour)
    left.set(xlabel="hidden nodes h", ylabel="worst digit's test error, %", title="Figure 3a")
    middle.set(xlabel="hidden nodes h", ylabel="less uniform's, points", title="Figure 3a, differences")
    left.legend()
    other = right.twinx()
    right.axhline(0, color="grey", linewidth=0.8)
    of_alpha, of_error = COLOURS[ARMS.index(PAPER_ARM)], COLOURS[0]
    digits(right, -0.1, of_digits, "alpha", "mean α of the paper's settings", of_alpha)
    digits(other, 0.1, of_digits, "error", "uniform's validation error, %", of_error)
    right.set(xlabel="digit", title=f"Figure 3b, h = {largest}", xticks=range(10))
    save(figure, this.folder / "mnist.png")


def digits(axis: Any, shift: float, values: Digits, name: str, label: str, colour: str) -> None:
    """Draw means and margins of ten digits, and colour the axis like them."""
    means, margins = values[name], values[f"{name} margin"]
    axis.errorbar(np.arange(10) + shift, means, margins, fmt="o", capsize=3, color=colour)
    axis.set_ylabel(label, color=colour)
    axis.tick_params(axis="y", colors=colour)
