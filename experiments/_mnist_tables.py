"""The tables and the figure of the MNIST experiment, and the names of their lines."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments._experiment import PAPER_ARM, PERCENT, Run, chosen
from experiments._searches import Seen
from moew._util.beside_paper import Line, difference, table
from moew.types import FloatArray

ARMS = ("uniform", "random weights", "moew, random alphas", PAPER_ARM, "moew")
SOFTMAX_UNIFORM, SOFTMAX_MOEW, SOFTMAX_OURS = "uniform, softmax", f"{PAPER_ARM}, softmax", "moew, softmax"
FITTED = f"{PAPER_ARM}, fitted GP"
NARROW, WIDE = "moew, digit alone", "moew, digit alone, R = 1"
DIGIT_ALONE = {NARROW: 0.5, WIDE: 1.0}  # with their radius

Found = dict[tuple[int, str], Seen]  # by size of the network and arm
Picks = dict[tuple[int, str], dict[str, FloatArray]]


def report(this: Run, found: Found) -> str:
    """The table; raw numbers and figures go to the folder."""
    picks = {key: chosen(seen, False, unit=PERCENT) for key, seen in found.items()}
    this.write_values([(f"h={h} {name}", values) for (h, name), values in picks.items()])
    sizes = list(dict.fromkeys(h for h, _ in found))
    parts = []
    for h in sizes:
        tests = {name: picks[size, name]["test"] for size, name in found if size == h}
        lines = [Line(name, values, greater_is_better=False) for name, values in tests.items()]
        parts.append(table(f"784-{h}-10, worst digit's test error in percent", lines))
        pairs = [(name, "uniform") for name in ARMS[2:]] + [("moew", PAPER_ARM)]
        if SOFTMAX_UNIFORM in tests:
            pairs += [
                (SOFTMAX_MOEW, SOFTMAX_UNIFORM),
                (SOFTMAX_OURS, SOFTMAX_UNIFORM),
                (SOFTMAX_OURS, SOFTMAX_MOEW),
            ]
        pairs += [("moew", name) for name in DIGIT_ALONE if name in tests]
        parts += [difference(f"{a} − {b}", tests[a], tests[b], greater_is_better=False) for a, b in pairs]
        difficulty = found[h, "moew"].winners(greater_is_better=False)[:, -1]
        parts.append(f"moew weights hard rows up in {(difficulty > 0).sum()} of {len(difficulty)}\n")
    draw(this, found, picks, sizes)
    return "\n".join(parts)


def draw(this: Run, found: Found, picks: Picks, sizes: list[int]) -> None:
    """Draw Figure 3a, test error by size and its difference to uniform, and 3b, alpha and error by digit."""
    from experiments._figures import COLOURS, band, new_figure, save

    figure, (left, middle, right) = new_figure(1, 3, (15, 5))
    for name, colour in zip(ARMS, COLOURS, strict=False):
        tests = [picks[h, name]["test"] for h in sizes]
        band(left, sizes, tests, name, color=colour)
        gaps = [test - picks[h, "uniform"]["test"] for h, test in zip(sizes, tests, strict=True)]
        band(middle, sizes, gaps, name, color=colour)
    left.set(xlabel="hidden nodes h", ylabel="worst digit's test error, %", title="Figure 3a")
    middle.set(xlabel="hidden nodes h", ylabel="less uniform's, points", title="Figure 3a, differences")
    left.legend()
    largest = sizes[-1]
    winners = found[largest, PAPER_ARM].winners(greater_is_better=False)
    errors = [picks[largest, "uniform"][f"digit {d}"] for d in range(10)]
    other = right.twinx()
    right.axhline(0, color="grey", linewidth=0.8)
    of_alpha, of_error = COLOURS[ARMS.index(PAPER_ARM)], COLOURS[0]
    digits(right, -0.1, list(winners.T), "mean α of the paper's settings", of_alpha)
    digits(other, 0.1, errors, "uniform's validation error, %", of_error)
    right.set(xlabel="digit", title=f"Figure 3b, h = {largest}", xticks=range(10))
    save(figure, this.folder / "mnist.png")


def digits(axis: Any, shift: float, values: list[FloatArray], label: str, colour: str) -> None:
    """Draw means and margins of ten digits, and colour the axis like them."""
    from experiments._figures import means_and_margins

    means, margins = means_and_margins(values)
    axis.errorbar(np.arange(10) + shift, means, margins, fmt="o", capsize=3, color=colour)
    axis.set_ylabel(label, color=colour)
    axis.tick_params(axis="y", colors=colour)
