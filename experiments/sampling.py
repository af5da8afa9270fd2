"""Figure 2: where GP-BUCB samples in each batch, and how well the validation metric predicts the test metric.

The paper's example is web page quality with 40 % selected, so this shows that search of `pages`, and runs it
first if its folder does not have it.
"""

from __future__ import annotations

import csv

import numpy as np

from experiments._beside_paper import Line, table
from experiments._experiment import Options, Run
from experiments._searches import Seen
from experiments._stand_ins import BATCH_SIZE, PAPER_RADIUS
from experiments.datasets import load_blog
from experiments.pages import ARMS, SHARES, STATED, Pages, search_all
from moew.types import FloatArray

SHOWN = (0, 1, 3, 5, 7, 9)
PAPER_CORRELATION = 0.97


def correlations(seen: Seen, first: int | None = None) -> FloatArray:
    """Correlation (R,) of validation and test metric over the candidates, or over the `first` ones."""
    validation, test = (seen.scores[name][:, :first] for name in ("validation", "test"))
    return np.array([np.corrcoef(v, t)[0, 1] for v, t in zip(validation, test, strict=True)])


def distances(seen: Seen, batch: int, batch_size: int) -> FloatArray:
    """Mean distance (R,) of a batch's alphas from the winner; it is largest for a random batch."""
    winners = seen.winners(greater_is_better=True)[:, None]
    alphas = seen.alphas[:, batch * batch_size : (batch + 1) * batch_size]
    return np.asarray(np.linalg.norm(alphas - winners, axis=2).mean(axis=1))


def report(this: Run, seen: Seen, batch_size: int = BATCH_SIZE, radius: float = PAPER_RADIUS) -> str:
    """The tables; raw numbers and the figure go to the folder. `seen` is any search with d of 2 or more."""
    n_batches = seen.n // batch_size
    shown = [batch for batch in SHOWN if batch < n_batches]
    everything, random = correlations(seen), correlations(seen, batch_size)
    values = {"correlation": everything, "correlation of batch 0": random}
    values |= {f"distance of batch {b}": distances(seen, b, batch_size) / radius for b in shown}
    this.write_values([("GP-BUCB", values)])
    lines = [Line(f"all {seen.n} candidates", everything, True, PAPER_CORRELATION)]
    lines.append(Line(f"the {batch_size} random ones of batch 0", random, True))
    apart = [Line(f"batch {b}", values[f"distance of batch {b}"], False) for b in shown]
    write_candidates(this, seen, batch_size)
    draw(this, seen, shown, batch_size, radius)
    return "\n\n".join(
        [
            table("Correlation of validation and test metric", lines),
            table("Distance from the winner, as a share of the radius", apart),
        ]
    )


def write_candidates(this: Run, seen: Seen, batch_size: int) -> None:
    """Write the candidates of the first repeat, which the figure shows, to figure-2.csv."""
    names = [f"alpha {i + 1}" for i in range(seen.alphas.shape[2])]
    with (this.folder / "figure-2.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["candidate", "batch", *names, "validation", "test"])
        for number, alpha in enumerate(seen.alphas[0]):
            values = (*alpha, *(seen.scores[name][0, number] for name in ("validation", "test")))
            writer.writerow([number, number // batch_size, *(f"{value:.6g}" for value in values)])


def draw(this: Run, seen: Seen, shown: list[int], batch_size: int, radius: float) -> None:
    """Draw the first repeat: its batches, both metrics over all candidates, and one against the other."""
    from experiments._figures import COLOURS, new_figure, save

    figure, axes = new_figure(3, 3, (10.5, 10.2))
    alphas = seen.alphas[0]
    length = np.linalg.norm(alphas, axis=1) / radius
    circle = np.linspace(0, 2 * np.pi, 200)
    maps = axes.flat[:8]
    for axis in maps:
        axis.plot(radius * np.cos(circle), radius * np.sin(circle), color="grey", linewidth=0.8)
        axis.set(aspect="equal", xlabel="$α_1$", ylabel="$α_2$")
    for axis, batch in zip(maps, shown, strict=False):
        part = slice(batch * batch_size, (batch + 1) * batch_size)
        dots = axis.scatter(*alphas[part, :2].T, c=length[part], cmap="Reds", vmin=-0.3, vmax=1, s=28)
        dots.set(edgecolor="black", linewidth=0.4)
        axis.set_title(f"Batch {batch}")
    for axis, name in zip(maps[6:], ("validation", "test"), strict=True):
        dots = axis.scatter(*alphas[:, :2].T, c=seen.scores[name][0], s=16)
        axis.set_title(f"{name.capitalize()} metric")
        figure.colorbar(dots, ax=axis, shrink=0.7)
    last = axes.flat[8]
    last.scatter(seen.scores["validation"][0], seen.scores["test"][0], s=12, color=COLOURS[0])
    title = f"Correlation {correlations(seen)[0]:.2f} (paper: {PAPER_CORRELATION})"
    last.set(xlabel="validation metric", ylabel="test metric", title=title)
    save(figure, this.folder / f"{this.name}.png")


def main(options: Options) -> str:
    """Run or continue, and return the tables; the figure and raw numbers go to the folder."""
    rows, share, arms = Pages(options, load_blog()), SHARES[0], ARMS[:2]
    found = search_all(Run("pages", options), rows, STATED, arms, shares=(share,))
    this = Run("sampling", options)
    return this.conclude(report(this, found[share, arms[1]]))
