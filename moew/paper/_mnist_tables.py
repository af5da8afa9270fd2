"""The tables and the figure of the MNIST experiment, and the names of their lines."""

from __future__ import annotations

from moew.paper._experiment import PAPER_ARM, Line, Run, chosen, difference, table
from moew.paper._searches import Seen
from moew.protocols import FloatArray

ARMS = ("uniform", "random weights", "moew, random alphas", PAPER_ARM, "moew")
SOFTMAX_UNIFORM, SOFTMAX_MOEW, SOFTMAX_OURS = "uniform, softmax", f"{PAPER_ARM}, softmax", "moew, softmax"
FITTED, DIGIT_ALONE = f"{PAPER_ARM}, fitted GP", "moew, digit alone"

Found = dict[tuple[int, str], Seen]  # by size of the network and arm
Picks = dict[tuple[int, str], dict[str, FloatArray]]


def report(this: Run, found: Found) -> str:
    """The table; raw numbers and figures go to the folder."""
    picks = {key: chosen(seen, greater_is_better=False) for key, seen in found.items()}
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
        parts += [difference(f"{a} − {b}", tests[a], tests[b], greater_is_better=False) for a, b in pairs]
        difficulty = found[h, "moew"].winners(greater_is_better=False)[:, -1]
        parts.append(f"moew weights hard rows up in {(difficulty > 0).sum()} of {len(difficulty)}\n")
    draw(this, found, picks, sizes)
    return "\n".join(parts)


def draw(this: Run, found: Found, picks: Picks, sizes: list[int]) -> None:
    """Figure 3a: test error by size; 3b: mean alpha by digit beside the uniform model's error."""
    from moew.paper._figures import band, new_figure, save

    figure, (left, right) = new_figure(1, 2, (11, 4.6))
    for name in ARMS:
        band(left, sizes, [picks[h, name]["test"] for h in sizes], name)
    left.set(xlabel="hidden nodes h", ylabel="worst digit's test error, %", title="Figure 3a")
    left.legend()
    largest = sizes[-1]
    winners = found[largest, PAPER_ARM].winners(greater_is_better=False)
    band(right, range(10), list(winners.T), "mean α of the winners (left axis)")
    errors = [picks[largest, "uniform"][f"digit {d}"] for d in range(10)]
    other = right.twinx()
    band(other, range(10), errors, "validation error of uniform, % (right axis)", color="#D55E00")
    right.set(xlabel="digit", title=f"Figure 3b, h = {largest}", xticks=range(10))
    lines = [line for axis in (right, other) for line in axis.get_lines()]
    right.legend(handles=lines, loc="upper center", bbox_to_anchor=(0.5, -0.14))
    save(figure, this.folder / "mnist.png")
