"""The tables and the figures of the wine experiment."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from experiments._beside_paper import Line, difference, table
from experiments._experiment import PERCENT, PI_ALONE
from experiments._posterior_choice import BY_VALIDATION
from experiments._searches import Seen
from experiments._wine_plan import (
    BATCH_SIZE,
    LONG_DIMS,
    MOEW,
    OUR_DIMS,
    PAPER_CONFIDENCE,
    PAPER_D8,
    PAPER_UNIFORM,
    PAPER_WITH_PI,
    SCALED_MOEW,
    SCALED_UNIFORM,
    UNIFORM,
    Picks,
    Plan,
    as_paper,
    with_p,
)
from moew._util.margins import margin


def report(name: str, plan: Plan, picks: Picks) -> str:
    """The tables of one dataset, of the settings that `picks` has."""
    B = plan.n_batches
    known = {UNIFORM: PAPER_UNIFORM[0], as_paper(8): PAPER_D8, MOEW: PAPER_D8}

    def lines(wanted: Sequence[tuple[str, int, str, tuple[float, float] | None]]) -> list[Line]:
        return [
            Line(
                shown,
                picks[setting, batches]["test"],
                False,
                *(paper if plan.like_paper and paper is not None else (None, 0.0)),
            )
            for setting, batches, shown, paper in wanted
            if (setting, batches) in picks
        ]

    def less(setting: str, other: str) -> list[str]:
        if not {(setting, B), (other, B)} <= picks.keys():
            return []
        values, rivals = (picks[one, B]["test"] for one in (setting, other))
        return [difference(f"{setting} − {other}", values, rivals, greater_is_better=False)]

    settings = [setting for setting in plan.settings() if not setting.name.startswith("p=q")]
    title = f"{name}, worst price range's test error in percent, best of {B * BATCH_SIZE}"
    main = lines([(one.name, B, one.name, known.get(one.name)) for one in settings])
    parts = [table(title, main)] if main else []
    for setting in settings:
        if setting.choice is not None and (setting.name, B) in picks:
            of_both = picks[setting.name, B]
            against = of_both[f"test{BY_VALIDATION}"]
            shown = f"{setting.name} − the choice{BY_VALIDATION}"
            parts.append(difference(shown, of_both["test"], against, greater_is_better=False))
        elif setting.choice is None and not setting.name.startswith(UNIFORM):
            parts += less(setting.name, SCALED_UNIFORM if setting.name == SCALED_MOEW else UNIFORM)
    parts += less(PAPER_WITH_PI, PI_ALONE) + less(PAPER_WITH_PI, as_paper(8))
    if all((as_paper(d), B) in picks for d in plan.dims):
        best = min(plan.dims, key=lambda d: float(picks[as_paper(d), B]["validation"].mean()))
        parts += less(MOEW, as_paper(best))  # the best of the paper's settings, by validation
    if some := lines([(with_p(p), B, f"p=q={p:g}", PAPER_CONFIDENCE.get(p)) for p in plan.confidences]):
        parts += ["", table(f"{name}, d={LONG_DIMS}, B={B}", some)]
    if plan.long_batches > B:
        marks, last = plan.batches(UNIFORM), plan.long_batches
        wanted = [(as_paper(LONG_DIMS), b, f"B={b}", None) for b in marks]
        if some := lines([*wanted, (UNIFORM, last, f"uniform, B={last}", PAPER_UNIFORM[1])]):
            parts += ["", table(f"{name}, d={LONG_DIMS} as in the paper", some)]
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
    """Draw Figure 4a, by d, and, if the plan has more batches, Figure 4b, by B; validation and test. Nothing
    is drawn if `picks` lacks a setting that is shown."""
    from experiments._figures import COLOURS, band, new_figure, save

    B, marks = plan.n_batches, plan.batches(UNIFORM)
    shown = {UNIFORM, MOEW, *map(as_paper, (*plan.dims, LONG_DIMS))}
    if not all((setting, b) in picks for setting in shown for b in plan.batches(setting)):
        return
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
