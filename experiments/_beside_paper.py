"""Tables of means over repeats beside the paper's figures, and the raw numbers as CSV."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moew._util.margins import margin

FloatArray = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Line:
    """One row of a table: the paper's figure, our values (repeats,), and which direction is better."""

    name: str
    values: FloatArray
    greater_is_better: bool
    paper: float | None = None
    paper_margin: float = 0.0

    @property
    def mean(self) -> float:
        """The mean over the repeats."""
        return float(np.mean(self.values))

    @property
    def margin(self) -> float:
        """Half the width of the mean's 95 % interval; NaN for one repeat."""
        return margin(self.values) if len(self.values) > 1 else float("nan")

    @property
    def verdict(self) -> str:
        """Our mean against the paper's figure: inside both margins together, better or worse."""
        if self.paper is None:
            return ""
        sign = 1.0 if self.greater_is_better else -1.0
        gain = sign * (self.mean - self.paper)
        within = float(np.hypot(self.margin, self.paper_margin))
        return "inside the margin" if abs(gain) <= within else "better" if gain > 0 else "worse"


def table(title: str, lines: Sequence[Line], paper_is: str = "paper") -> str:
    """The lines as text; a row with fewer repeats than the others shows how many."""
    repeats = max(len(line.values) for line in lines)
    names = [
        line.name if len(line.values) == repeats else f"{line.name} ({len(line.values)} repeats)"
        for line in lines
    ]
    width = max(map(len, names))
    shown = [f"{title}, {repeats} repeats", f"{'':{width}}  {paper_is:>15}  {'ours':>17}  verdict"]
    for name, line in zip(names, lines, strict=True):
        paper = "–" if line.paper is None else f"{line.paper:.2f}"
        if line.paper is not None and line.paper_margin:
            paper += f" ± {line.paper_margin:.2f}"
        ours = f"{line.mean:8.2f} ± {line.margin:6.2f}"
        shown.append(f"{name:{width}}  {paper:>15}  {ours}  {line.verdict}".rstrip())
    return "\n".join(shown)


def difference(name: str, ours: FloatArray, other: FloatArray, greater_is_better: bool) -> str:
    """The mean of ours − other over the repeats that both have, its margin, and how often ours is better."""
    both = min(len(ours), len(other))  # second settings have fewer repeats
    gain = ours[:both] - other[:both]
    better = int((gain > 0 if greater_is_better else gain < 0).sum())
    return f"{name}: {gain.mean():+.2f} ± {margin(gain):.2f}, better in {better} of {len(gain)}"


def write_values(path: Path, lines: Sequence[tuple[str, Mapping[str, FloatArray]]]) -> None:
    """Write the scores of every repeat as CSV: setting, repeat, one column for each score."""
    names = list(dict.fromkeys(name for _, values in lines for name in values))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["setting", "repeat", *names])
        for setting, values in lines:
            for r in range(len(next(iter(values.values())))):
                writer.writerow([setting, r, *(f"{values[n][r]:.8g}" if n in values else "" for n in names)])


def read_values(path: Path) -> dict[str, dict[str, FloatArray]]:
    """Read what `write_values` wrote: the scores (repeats,) of each setting by name, without empty ones."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    found: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        scores = found.setdefault(row.pop("setting"), {})
        del row["repeat"]
        for name, text in row.items():
            if text:
                scores.setdefault(name, []).append(float(text))
    return {
        setting: {name: np.array(values) for name, values in scores.items()}
        for setting, scores in found.items()
    }
