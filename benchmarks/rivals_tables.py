"""The tables of benchmarks/rivals.py; the statistics in them are those of benchmarks/compared_methods.py."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from compared_methods import (
    Difference,
    Results,
    against_best,
    against_each,
    all_gains,
    costs,
    draw,
    markdown,
    mean_bias,
    selected,
    share_text,
    shares,
)
from problem_runs import Key, Line
from rivals_methods import ASKED, FEWER, SIMPLE, VARIANTS

from moew._util.numbers import DASH, number, signed


def tables(lines: dict[Key, Line], names: Sequence[str], correction: str, picture: Path | None = None) -> str:
    """All tables as Markdown; the figure is drawn to `picture`."""
    results = Results(lines, correction, simple=SIMPLE)
    problems = [name for name in names if results.lines(name, "unweighted") and results.lines(name, "moew")]
    if not problems:
        return "No problem has results of moew and of the unweighted model yet."
    methods = [m for m in (*VARIANTS, *SIMPLE) if any(results.lines(problem, m) for problem in problems)]
    clear = [problem for problem in problems if not math.isnan(results.share(problem, "moew"))]
    tunable = [problem for problem in clear if results.lines(problem, "threshold")]
    of_shares: dict[str, Sequence[str]] = {
        f"all {len(clear)} problems where there clearly is one": clear,
        f"the {len(tunable)} of them where decisions can be tuned": tunable,
    }
    parts = [
        "### moew and the best simple strategy\n",
        against_best(results, problems),
        "\n### Shares of the achievable gain\n",
        shares(results, methods, clear, of_shares),
        "\n### Mean gains over the unweighted model\n",
        all_gains(results, problems, methods),
        "\n### What moew selected\n",
        selected(results, problems),
        "\n### moew against each strategy\n",
        against_each(results, problems, methods),
        "\n### Honest scores and gain intervals\n",
        _honest(results, problems, methods),
        "\n### Honest gains and test gains\n",
        _gains_promised(results, problems),
        "\n### Fewer models\n",
        _fewer(results, problems),
        "\n### Cost\n",
        costs(results, problems, methods),
        "\n### Summary\n",
        _summary(results, problems),
    ]
    if picture is not None:
        strategies = [m for m in SIMPLE if m in methods and m != "unweighted"]
        draw(results, problems, strategies, picture, hollow=[m for m in ("moew 0.1",) if m in methods])
    return "\n".join(parts)


def _gains_promised(results: Results, problems: Sequence[str]) -> str:
    """What moew's honest gain promised, and what came out on the test rows."""
    rows = []
    for problem in problems:
        gains = results.honest_gains(problem, "moew")
        if len(gains.test) < 2:
            continue
        excess = gains.honest - gains.test
        error = float(excess.std(ddof=1)) / math.sqrt(len(excess))
        beyond = excess + gains.size_bias
        rows.append(
            [
                problem,
                signed(float(gains.honest.mean())),
                signed(float(gains.test.mean())),
                str(Difference(float(excess.mean()), error, len(excess))),
                signed(float(np.nanmean(beyond)), 2),
                f"{gains.held.sum()} of {len(gains.held)}",
                f"{gains.held[gains.has_width].sum()} of {gains.has_width.sum()}",
            ]
        )
    heads = [
        "problem",
        "honest gain",
        "test gain",
        "honest − test",
        "without the test rows' size bias",
        "intervals that hold",
        "those wider than zero",
    ]
    return markdown(heads, rows) + (
        "\n\nMeans over the splits; ± 95 % margins as of independent splits, which these are not: they share "
        "rows."
    )


def _honest(results: Results, problems: Sequence[str], methods: Sequence[str]) -> str:
    variants = [method for method in methods if method in VARIANTS]
    rows = []
    for problem in problems:
        cells = []
        for method in variants:
            held, width = results.intervals(problem, method)
            cells += [signed(results.honest_bias(problem, method), 2), share_text(held), number(width, 2)]
        rows.append([problem, *cells])
    heads = [f"{m}: {what}" for m in variants for what in ("bias, SE", "intervals that hold", "width")]
    return markdown(["problem", *heads], rows)


def _fewer(results: Results, problems: Sequence[str]) -> str:
    """The mean share of the achievable gain by the number of models, on splits that all of them have."""
    methods = ["moew 0.1", *FEWER, "moew"]
    common = {
        problem: set.intersection(*(set(results.lines(problem, m)) for m in methods)) for problem in problems
    }
    kept = {
        (problem, split, method): line
        for problem in problems
        for method in (*methods, "unweighted", "achievable")
        for split, line in results.lines(problem, method).items()
        if split in common[problem] or method == "achievable"
    }
    same = Results(kept, results.correction)
    rows = []
    for method in methods:
        shares = np.array([same.share(problem, method) for problem in problems if common[problem]])
        known = shares[~np.isnan(shares)]
        n_models = FEWER[method]["n_candidates"] if method in FEWER else 100
        if len(known):
            rows.append(
                [method, str(n_models), share_text(known.mean()), share_text(known.min()), str(len(known))]
            )
    if not rows:
        return "Not run yet."
    heads = ["settings", "models", "mean share of the achievable gain", "worst problem", "problems"]
    return markdown(heads, rows)


def _summary(results: Results, problems: Sequence[str]) -> str:
    lines = []
    for correction in ("rows", "overlap"):
        found = results.verdicts(problems, "moew", results.best_simple, correction).values()
        lines.append(
            "- Against the best simple strategy of each problem, chosen on the test rows (which favours the "
            f"rivals), moew is significantly better on {sum(v > 0 for v in found)} and worse on "
            f"{sum(v < 0 for v in found)} of {len(found)} problems, by the correction “{correction}”."
        )
    for method in (*VARIANTS, *ASKED):
        biases = [results.honest_bias(problem, method) for problem in problems]
        beyond = [results.honest_bias(problem, method, without_size_bias=True) for problem in problems]
        if np.isfinite(biases).any():
            lines.append(
                f"- Honest − test, {method}: {mean_bias(biases)} standard errors on average, "
                f"{signed(float(biases[int(np.nanargmax(np.abs(biases)))]), 2)} at most; "
                f"{mean_bias(beyond)} without the size bias of the test rows."
            )
            lines.append(_promises(results, problems, method))
    widths = [
        (results.intervals(problem, "moew")[1], results.intervals(problem, "moew 0.1")[1])
        for problem in problems
    ]
    ratios = [new / old for new, old in widths if math.isfinite(new + old) and old > 0]
    if ratios:
        lines.append(f"- Gain intervals are {np.mean(ratios):.2f} times as wide as moew 0.1's on average.")
    if results.failed:
        lines.append(
            f"- {len(results.failed)} runs failed and are left out: "
            + ", ".join(f"{line.problem} {line.split} {line.method}" for line in results.failed[:10])
        )
    return "\n".join(lines)


def _promises(results: Results, problems: Sequence[str], method: str) -> str:
    """A line on the honest gains of a method, and on their intervals."""
    gains = {problem: results.honest_gains(problem, method) for problem in problems}
    known = {problem: found for problem, found in gains.items() if len(found.test)}
    excess = {problem: float((found.honest - found.test).mean()) for problem, found in known.items()}
    clear = [problem for problem in known if not math.isnan(results.share(problem, method))]
    relative = [excess[problem] / abs(float(known[problem].test.mean())) for problem in clear]
    held = np.concatenate([found.held for found in known.values()])
    wide = np.concatenate([found.has_width for found in known.values()])
    more = (
        ""
        if not clear
        else (
            f" (median {signed(100 * float(np.median(relative)), 2)} % of it, of the {len(clear)} with a "
            "clear achievable gain)"
        )
    )
    return (
        f"- Gains, {method}: the honest gain is above the test gain on "
        f"{sum(value > 0 for value in excess.values())} of {len(known)} problems{more}. Of {len(held)} "
        f"intervals {share_text(float(held.mean()))} hold the test gain; without the "
        f"{np.count_nonzero(~wide)} of width zero "
        f"{share_text(float(held[wide].mean())) if wide.any() else DASH}."
    )
