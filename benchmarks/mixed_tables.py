"""The tables of benchmarks/mixed.py.

Statistics are those of benchmarks/compared_methods.py. Gains are over the unweighted model with tuned
decisions. The achievable gain of a problem is that of its best method, of all that were run: the one with the
best mean on one half of the test rows, with its gain on the other half, both ways; so it is not larger for
having been chosen among many. moew is better than every other method where it is better than each by a test
of its own; the p-value of the problem is the largest of these, and Holm's correction is over the problems.

Honest − test is in standard errors that the search itself gives its honest score.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from compared_methods import (
    LEVEL,
    MARKS,
    Results,
    against_best,
    against_each,
    all_gains,
    costs,
    draw,
    holm,
    markdown,
    mean_bias,
    selected,
    shares,
)
from mixed_libraries import LIBRARIES
from mixed_methods import ASKED, BASELINE, REFERENCE, SIMPLE, VARIANTS
from problem_runs import Key, Line

from moew._util.numbers import DASH, number, signed

ALIKE = "-alike"  # ends the names of problems whose origins are all alike
RIVALS = (*SIMPLE, *LIBRARIES)


def tables(lines: dict[Key, Line], names: Sequence[str], correction: str, picture: Path | None = None) -> str:
    """All tables as Markdown; the figure is drawn to `picture`."""
    known = Results(lines, correction, BASELINE, SIMPLE)
    problems = [name for name in names if known.lines(name, BASELINE) and known.lines(name, "moew")]
    if not problems:
        return "No problem has results of moew and of the unweighted model yet."
    methods = [
        method
        for method in (*VARIANTS, *ASKED, *RIVALS, *REFERENCE)
        if any(known.lines(problem, method) for problem in problems)
    ]
    gained = {
        (line.problem, line.split, line.method): line
        for problem in problems
        for line in achievable(known, problem, methods)
    }
    results = Results({**lines, **gained}, correction, BASELINE, SIMPLE)
    clear = [problem for problem in problems if not math.isnan(results.share(problem, "moew"))]
    head = f"{len(clear)} of {len(problems)} problems where something clearly is achievable"
    parts = [
        "### Values on the test rows\n",
        _values(results, problems, methods),
        "\n### moew and the best simple strategy\n",
        against_best(results, problems),
        "\n### moew less each other method\n",
        _against_every(results, problems, methods),
        "\n### Shares of the achievable gain\n",
        shares(results, methods, clear, {head: clear}),
        "\n### Mean gains over the unweighted model with tuned decisions\n",
        all_gains(results, problems, methods),
        "\n### What moew selected\n",
        selected(results, problems),
        "\n### How often moew is better\n",
        against_each(results, problems, methods),
        "\n### Honest scores\n",
        _honest(results, problems),
        "\n### Cost\n",
        costs(results, problems, methods),
        "\n### Left out\n",
        _left_out(lines, problems),
        "\n### Summary\n",
        _summary(results, problems, methods),
    ]
    if picture is not None:
        strategies = [m for m in RIVALS if m in methods and m != BASELINE]
        draw(results, problems, strategies, picture, over="the tuned unweighted model")
    return "\n".join(parts)


def achievable(results: Results, problem: str, methods: Sequence[str]) -> list[Line]:
    """The gain of the best method, for each split that all of them have."""
    common = set.intersection(*(set(results.lines(problem, m)) for m in methods if results.lines(problem, m)))
    splits = sorted(common)
    if not splits:
        return []
    halves: dict[str, np.ndarray] = {}
    for method in methods:
        if results.lines(problem, method):
            both = results.gains(problem, method)[1]
            at = sorted(results.lines(problem, method).keys() & results.lines(problem, BASELINE).keys())
            halves[method] = both[[at.index(split) for split in splits]]
    means = {method: np.nan_to_num(each.mean(axis=0), nan=-np.inf) for method, each in halves.items()}
    best = [max(halves, key=lambda method: means[method][half]) for half in (0, 1)]
    found = np.column_stack([halves[best[1]][:, 0], halves[best[0]][:, 1]])
    return [
        Line(problem, split, "achievable", float(gains.mean()), 0, 0.0, 0.0, {"halves": gains.tolist()})
        for split, gains in zip(splits, found, strict=True)
    ]


def _values(results: Results, problems: Sequence[str], methods: Sequence[str]) -> str:
    rows = []
    for method in methods:
        cells = []
        for problem in problems:
            value = results.value(problem, method)
            cells.append(DASH if value is None else f"{number(value.mean, 4)} ± {number(value.margin, 2)}")
        rows.append([method, *cells])
    heads = [
        f"{problem}, {facts['metric']} {'↑' if facts['greater_is_better'] else '↓'}"
        for problem in problems
        for facts in [results.facts(problem)]
    ]
    return markdown(["method", *heads], rows)


def _against_every(results: Results, problems: Sequence[str], methods: Sequence[str]) -> str:
    """Differences within splits, positive where moew is better; Holm's correction is over the problems."""
    rows = []
    for method in methods:
        if method == "moew":
            continue
        verdicts = results.verdicts(problems, "moew", lambda _, method=method: method)  # type: ignore[misc]
        cells = []
        for problem in problems:
            difference = results.difference(problem, "moew", method)
            cells.append(DASH if difference is None else f"{difference}{MARKS[verdicts[problem]]}")
        rows.append([method, *cells])
    return markdown(["moew −", *problems], rows)


def honest_errors(results: Results, problem: str) -> np.ndarray:
    """Honest − test (J,), positive where it promises too much, in standard errors of the honest score."""
    found = [
        results.sign(problem) * (line.extra["honest"] - line.value) / line.extra["honest_error"]
        for line in results.lines(problem, "moew").values()
        if line.extra.get("honest_error", 0.0) > 0 and math.isfinite(line.extra["honest"])
    ]
    return np.array(found)


def _honest(results: Results, problems: Sequence[str]) -> str:
    rows = []
    for problem in problems:
        lines, errors = results.lines(problem, "moew").values(), honest_errors(results, problem)
        means = [
            float(np.mean(values))
            for values in (
                [line.extra["honest"] for line in lines],
                [line.value for line in lines],
                [line.extra["honest_error"] for line in lines],
            )
        ]
        off = signed(float(errors.mean()), 2) if len(errors) else DASH
        rows.append([problem, *(number(mean, 3) for mean in means), off])
    heads = ["problem", "honest score", "test", "its standard error", "honest − test, in standard errors"]
    return markdown(heads, rows)


def _left_out(lines: dict[Key, Line], problems: Sequence[str]) -> str:
    reasons: dict[tuple[str, str], list[str]] = {}
    for line in lines.values():
        why = line.extra.get("left out") or line.extra.get("error")
        if why and line.problem in problems:
            at = reasons.setdefault((line.method, why), [])
            at.extend([line.problem] if line.problem not in at else [])
    rows = [[method, why, ", ".join(at)] for (method, why), at in sorted(reasons.items())]
    return markdown(["method", "why", "problems"], rows) if rows else "Nothing."


def better_than_all(results: Results, problems: Sequence[str], rivals: Sequence[str]) -> list[str]:
    """The problems on which moew is significantly better than each of the rivals."""
    p_values = []
    for problem in problems:
        differences = [results.difference(problem, "moew", rival) for rival in rivals]
        found = [d.p if d.mean > 0 else 1.0 for d in differences if d is not None]
        p_values.append(max(found, default=1.0))
    adjusted = holm(p_values)
    return [problem for problem, p in zip(problems, adjusted, strict=True) if p < LEVEL]


def _summary(results: Results, problems: Sequence[str], methods: Sequence[str]) -> str:
    verdicts = results.verdicts(problems, "moew", results.best_simple)
    rivals = [method for method in methods if method in RIVALS]
    better = better_than_all(results, problems, rivals)
    errors = [
        float(found.mean()) if len(found) else math.nan
        for found in (honest_errors(results, problem) for problem in problems)
    ]
    lines = [
        "- Against the best simple strategy of each problem, chosen on the test rows (which favours the "
        f"rivals), moew is significantly better on {sum(v > 0 for v in verdicts.values())} and worse on "
        f"{sum(v < 0 for v in verdicts.values())} of {len(verdicts)} problems.",
        f"- It is significantly better than every simple strategy and library on {len(better)} of "
        f"{len(problems)}{': ' + ', '.join(better) if better else ''}.",
        f"- Honest − test: {mean_bias(errors)} standard errors on average.",
    ]
    lines += [
        f"- Nothing to gain, {problem}: moew less the unweighted model with tuned decisions is "
        f"{results.difference(problem, 'moew')}, less the unweighted model as it is "
        f"{results.difference(problem, 'moew', 'unweighted')}."
        for problem in problems
        if problem.endswith(ALIKE)
    ]
    if results.failed:
        lines.append(
            f"- {len(results.failed)} runs failed and are left out: "
            + ", ".join(f"{line.problem} {line.split} {line.method}" for line in results.failed[:10])
        )
    return "\n".join(lines)
