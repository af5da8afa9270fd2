"""The tables and the figure of the crime experiment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from experiments._beside_paper import Line, difference, table
from experiments._crime_measures import ONE_THRESHOLD
from experiments._crime_settings import PAPER, known_arms, settings
from experiments._crime_study import FILE_ORDERS, Searches, Setting
from experiments._experiment import PAPER_ARM, PERCENT, Scores
from experiments._posterior_choice import BY_VALIDATION

Results = dict[tuple[str, str], dict[str, Scores]]
"""The scores of each arm, by study and approach."""


def main_tables(results: Results) -> str:
    """Tables 1 and 2, and differences within the repeats, of the arms that the results have."""
    parts = []
    for (study, approach), arms in results.items():
        fixed, _ = known_arms(study)
        paper = dict(zip(known_arms(study), PAPER[study, approach], strict=True))
        paper["moew"] = paper[PAPER_ARM]
        by_mean = [name for name in arms if settings(study, approach)[name].choice != "validation"]
        pairs = [
            (name, other)
            for other in dict.fromkeys((fixed, "uniform"))
            for name in arms
            if name.startswith("moew") and name not in by_mean
        ]
        for column, (kind, greater) in enumerate((("accuracy", True), ("violation", False))):
            lines = []
            for name, values in arms.items():
                known = paper.get(name, (None,) * 4)[2 * column : 2 * column + 2]
                lines.append(Line(name, values[kind], greater, known[0], known[1] or 0.0))
            if not lines:
                continue
            parts.append(table(f"{study}, {approach}: test {kind}, %", lines))
            parts += [
                difference(f"{name} − {other}", arms[name][kind], arms[other][kind], greater)
                for name, other in (*pairs, ("moew", PAPER_ARM))
                if name in arms and other in arms
            ]
            for name in by_mean:
                ours, usual = arms[name][kind], arms[name][f"{kind}{BY_VALIDATION}"]
                parts.append(difference(f"{name} − the choice{BY_VALIDATION}", ours, usual, greater))
            parts.append("")
    return "\n".join(parts)


def variant_table(results: dict[str, tuple[Setting, Scores, Scores]]) -> str:
    """All readings beside the paper's figures; the nearest has the smallest sum of the four differences."""
    if not results:
        return ""
    width, kinds = max(map(len, results)), ("accuracy", "violation")
    heads = [f"{arm} {kind}" for arm in ("fixed", "moew") for kind in kinds]
    heads = [f"{head:>17}" for head in (*heads, *(f"diff. {kind}" for kind in kinds))]
    repeats = min(len(arm["accuracy"]) for _, *arms in results.values() for arm in arms)
    shown = [f"other readings, {repeats} repeats: what fixed weights give, MOEW, and their difference"]
    shown += [" " * width + "".join(heads) + "  off by"]
    for key, known in PAPER.items():
        values = [figure for arm in known for figure in arm[::2]]
        cells = [f"{arm[i]:.2f} ±{arm[i + 1]:5.2f}" for arm in known for i in (0, 2)]
        cells += [f"{values[i + 2] - values[i]:+.2f}" for i in (0, 1)]
        shown.append(f"{f'paper, {key[0]}, {key[1]}':{width}}" + "".join(f"{cell:>17}" for cell in cells))
        off = {}
        for name, (setting, fixed, moew) in results.items():
            if _reading(setting) != key:
                continue
            lines = [Line(kind, arm[kind], kind == "accuracy") for arm in (fixed, moew) for kind in kinds]
            gains = [Line(kind, moew[kind] - fixed[kind], kind == "accuracy") for kind in kinds]
            off[name] = sum(abs(line.mean - value) for line, value in zip(lines, values, strict=True))
            cells = [f"{line.mean:.2f} ±{line.margin:5.2f}" for line in lines]
            cells += [f"{gain.mean:+.2f} ±{gain.margin:5.2f}" for gain in gains]
            shown.append(f"{name:{width}}" + "".join(f"{cell:>17}" for cell in cells) + f"{off[name]:8.1f}")
        nearest = min(off, key=lambda name: off[name], default="none was tried")
        shown += [f"nearest to the paper, of {len(off)}: {nearest}", ""]
    return "\n".join(shown)


def _reading(setting: Setting) -> tuple[str, str]:
    return setting.study, "post-shift" if setting.rule == "post-shift" else "vanilla"


def spread_table(searches: Searches, repeats: int) -> str:
    """The spread of uniform models' test figures between splits, and between the models of one split."""
    seen = searches.of(settings("iid", "vanilla")["uniform"], repeats)
    shown = [
        "iid, uniform weights, all models: mean; standard deviation between splits, within one, within that",
        "where it is largest; share of splits whose mean is at least the paper's violation of 79.23.",
        "The paper's margins are standard deviations of 12.0 (uniform) and 23.7 (MOEW) within its one split.",
    ]
    for rule in ONE_THRESHOLD:
        for kind in ("accuracy", "FPR violation", "FDR violation", "coverage violation"):
            values = PERCENT * seen.scores[f"{rule}: test {kind}"]
            means, within = values.mean(axis=1), values.std(axis=1, ddof=1)
            figures = (means.mean(), means.std(ddof=1), np.sqrt((within**2).mean()), within.max())
            share = "" if kind == "accuracy" else f" {(means >= 79.23).mean():6.0%}"
            shown.append(f"{rule:20} {kind:19}" + "".join(f" {figure:6.2f}" for figure in figures) + share)
    return "\n".join(shown)


def file_order_table(searches: Searches, repeats: int) -> str:
    """Uniform models on splits in the order of the file: mean and standard deviation of the test figures
    within each split."""
    kinds = ("accuracy", "FPR violation", "FDR violation")
    shown = [
        "iid, uniform weights, one split in the order of the file: mean and standard deviation within it"
    ]
    shown += [f"{'':32}{'':20}" + "".join(f"{kind:>16}" for kind in kinds)]
    for order in FILE_ORDERS:
        seen = searches.of(Setting(search="none", splits=order), repeats)
        for rule in ("training accuracy", "zero"):
            values = [PERCENT * seen.scores[f"{rule}: test {kind}"] for kind in kinds]
            cells = [f"{v.mean():9.2f} ({v.std(ddof=1):4.1f})" for v in values]
            shown.append(f"{order:32}{rule:20}" + "".join(f"{cell:>16}" for cell in cells))
    return "\n".join(shown)


def draw(path: Path, results: Results) -> None:
    """Violation against accuracy with margins, a panel for each table and approach, of all arms but choices
    by posterior mean. Nothing is drawn if an arm is missing."""
    from experiments._figures import COLOURS, new_figure, save

    results = {
        key: {n: arms[n] for n, s in settings(*key).items() if s.choice == "validation" and n in arms}
        for key, arms in results.items()
    }
    every = [s for key in PAPER for s in settings(*key).values() if s.choice == "validation"]
    if sum(map(len, results.values())) < len(every):
        return
    figure, axes = new_figure(2, 2, (9, 8))
    colours = dict(zip(settings("shifted", "vanilla"), COLOURS, strict=False))
    marks: dict[str, Any] = {}
    for axis, (key, arms) in zip(axes.flat, results.items(), strict=True):
        for name, values in arms.items():
            x, y = (Line(kind, values[kind], True) for kind in ("accuracy", "violation"))
            style = {"marker": "o", "capsize": 3, "color": colours[name]}
            marks[name] = axis.errorbar(x.mean, y.mean, y.margin, x.margin, **style)
        for name, (accuracy, dx, violation, dy) in zip(known_arms(key[0]), PAPER[key], strict=True):
            style = {"marker": "s", "mfc": "none", "capsize": 3, "color": colours[name]}
            short = "moew" if name.startswith("moew") else name
            marks[f"the paper's {short}"] = axis.errorbar(accuracy, violation, dy, dx, **style)
        axis.set(xlabel="test accuracy, %", ylabel="fairness violation, %", title=", ".join(key))
    figure.legend(list(marks.values()), list(marks), loc="outside lower center", ncols=4, fontsize=8)
    save(figure, path)
