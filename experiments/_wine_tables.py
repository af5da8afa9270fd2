"""The tables and the figures of the wine experiment."""

from __future__ import annotations

from pathlib import Path

from experiments._experiment import PERCENT
from experiments._searches import Seen
from experiments._wine_plan import (
    BATCH_SIZE,
    LONG_DIMS,
    MOEW,
    OUR_DIMS,
    PAPER_CONFIDENCE,
    PAPER_D8,
    PAPER_UNIFORM,
    SCALED_MOEW,
    SCALED_UNIFORM,
    UNIFORM,
    Picks,
    Plan,
    as_paper,
    with_p,
)
from moew._util.beside_paper import Line, difference, table
from moew._util.margins import margin


def report(name: str, plan: Plan, picks: Picks) -> str:
    """The tables of one dataset."""
    B = plan.n_batches

    def line(setting: str, batches: int, shown: str, paper: tuple[float, float] | None = None) -> Line:
        known = paper if plan.like_paper and paper is not None else (None, 0.0)
        return Line(shown, picks[setting, batches]["test"], False, *known)

    shown = [setting.name for setting in plan.settings() if not setting.name.startswith("p=q")]
    known = {UNIFORM: PAPER_UNIFORM[0], as_paper(8): PAPER_D8, MOEW: PAPER_D8}
    lines = [line(setting, B, setting, known.get(setting)) for setting in shown]
    parts = [table(f"{name}, worst price range's test error in percent, best of {B * BATCH_SIZE}", lines)]
    for setting in shown:
        if not setting.startswith(UNIFORM):
            other = SCALED_UNIFORM if setting == SCALED_MOEW else UNIFORM
            values, rivals = (picks[one, B]["test"] for one in (setting, other))
            parts.append(difference(f"{setting} − {other}", values, rivals, greater_is_better=False))
    best = min(plan.dims, key=lambda d: float(picks[as_paper(d), B]["validation"].mean()))
    rival = as_paper(best)  # the best of the paper's settings, by validation
    ours, theirs = (picks[setting, B]["test"] for setting in (MOEW, rival))
    parts.append(difference(f"{MOEW} − {rival}", ours, theirs, greater_is_better=False))
    if plan.confidences:
        lines = [line(with_p(p), B, f"p=q={p:g}", PAPER_CONFIDENCE.get(p)) for p in plan.confidences]
        parts += ["", table(f"{name}, d={LONG_DIMS}, B={B}", lines)]
    if plan.long_batches > B:
        marks, last = plan.batches(UNIFORM), plan.long_batches
        lines = [line(as_paper(LONG_DIMS), b, f"B={b}") for b in marks]
        lines.append(line(UNIFORM, last, f"uniform, B={last}", PAPER_UNIFORM[1]))
        parts += ["", table(f"{name}, d={LONG_DIMS} as in the paper", lines)]
    return "\n".join([*parts, ""])


def spread(name: str, seen: Seen, n_models: int) -> str:
    """The standard deviation of models by chance, in percent: within a batch, and between batches."""
    tests = PERCENT * seen.scores["test"][:, :n_models].reshape(len(seen.alphas), -1, BATCH_SIZE)
    between, within = tests.mean(axis=2).std(axis=1, ddof=1), tests.std(axis=2, ddof=1)
    return (
        f"{name}, all models: mean {tests.mean():.2f}, standard deviation {within.mean():.2f} in a batch of "
        f"{BATCH_SIZE}, which share mini-batches, {between.mean():.2f} between the means of batches"
    )


def draw(path: Path, name: str, plan: Plan, picks: Picks) -> None:
    """Draw Figure 4a, by d, and, if the plan has more batches, Figure 4b, by B; validation and test."""
    from experiments._figures import COLOURS, band, new_figure, save

    B, marks = plan.n_batches, plan.batches(UNIFORM)
    panels = [(list(plan.dims), [(as_paper(d), B) for d in plan.dims], [(UNIFORM, B)] * len(plan.dims))]
    if plan.long_batches > B:
        panels.append((marks, [(as_paper(LONG_DIMS), b) for b in marks], [(UNIFORM, b) for b in marks]))
    figure, axes = new_figure(1, len(panels), (5.5 * len(panels), 4.8), sharey=True, squeeze=False)
    left, *others = axes[0]
    for axis, (x, ours, uniform) in zip(axes[0], panels, strict=True):
        band(axis, x, [picks[one]["test"] for one in uniform], "uniform, test", color="grey")
        band(
            axis,
            x,
            [picks[one]["validation"] for one in ours],
            "as in the paper, validation",
            color=COLOURS[1],
        )
        band(axis, x, [picks[one]["test"] for one in ours], "as in the paper, test", color=COLOURS[0])
        axis.set_xticks(x)
    moew = picks[MOEW, B]["test"]
    square = {"fmt": "s", "markersize": 4, "capsize": 4, "color": COLOURS[2], "label": "moew, test"}
    left.errorbar([OUR_DIMS], [moew.mean()], [margin(moew)], **square)
    title = f"{name}: Figure 4a, B = {B}"
    left.set(xlabel="dimensions d", ylabel="worst price range's error, %", title=title)
    for right in others:
        right.set(xlabel="batches B", title=f"{name}: Figure 4b, d = {LONG_DIMS}")
    if plan.like_paper:
        cross = {"marker": "x", "linestyle": "none"}
        left.plot([8], [PAPER_D8[0]], **cross, color=COLOURS[0], label="the paper's MOEW, test")
        left.plot([8], [PAPER_UNIFORM[0][0]], **cross, color="grey", label="the paper's uniform, test")
        for right in others:
            right.plot([B, plan.long_batches], [u[0] for u in PAPER_UNIFORM], **cross, color="grey")
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=1 + len(panels))
    save(figure, path)
