"""Statistics of methods that were run on problems and splits, and the tables and the figure of them.

Gains are differences of test values within a split, in the metric's units, positive where better. Splits
share rows, so their gains d_1 … d_J (variance s²) are correlated, and their mean's variance is above s²/J.
It is taken in one of two ways:

"rows"
    s²·(1/J + n_test / n_train), as Nadeau and Bengio (2003) propose; n_train counts training and validation
    rows. It assumes that all of s² is due to the test rows. Most problems have many more test rows than
    training rows, whose ratio, not that of 1 to 9 of a cross-validation, then widens the margins many times.
"overlap"
    s²/J + c, where c is the covariance of two splits: σ_E²·(share of the test rows that two splits have in
    common) + σ_T²·(the same of training and validation rows). σ_E², the variance due to test rows, is a
    quarter of the mean squared difference of the gains on the two halves of a split's test rows; σ_T² is the
    rest of s². It is Nadeau and Bengio's argument with the variance's two sources told apart.

Margins are 95 % intervals by Student's t with J − 1 degrees of freedom. Tests are two-sided; Holm's
correction is over the problems, for each strategy that moew is compared with. The best simple strategy of a
problem is the one with the highest mean on the test rows themselves, which favours the rivals.

The share of the achievable gain is the mean gain over the mean achievable one, for problems where the latter
is more than two of its standard errors. The bias of the honest score is the mean over splits of honest − test
(positive: it promises too much) over the standard deviation of honest − test over splits: how far one such
score is typically off by chance. Margins of means over problems are 95 % intervals by Student's t with the
problems as draws. The honest gain is the middle of the gain's interval.

Test rows are few, too, and a metric that is the worst of several numbers is biased by that: the more equal
they are, the more. As the gain on new rows is promised, and not that on so many rows, a second test value is
without this size bias, which is the mean of the values on two halves of the test rows less that on all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from problem_runs import Key, Line
from scipy.stats import t as student_t

from moew._util.colours import COLOURS
from moew._util.numbers import DASH, number, percent, signed
from moew.search._strategies import AND_TUNED

LEVEL = 0.05
MARKS = {1: " ▲", 0: "", -1: " ▼"}


def error_by_rows(gains: np.ndarray, n_test: float, n_train: float) -> float:
    """The standard error of the mean of gains (J,) of overlapping splits, by Nadeau and Bengio."""
    return float(np.std(gains, ddof=1) * math.sqrt(1 / len(gains) + n_test / n_train))


def error_by_overlap(gains: np.ndarray, halves: np.ndarray, test_share: float, train_share: float) -> float:
    """The same from the shares of rows that two splits have in common.

    `halves` (J, 2) are the gains on the halves of the test rows.
    """
    of_all = float(np.var(gains, ddof=1))
    of_test = float(np.mean((halves[:, 0] - halves[:, 1]) ** 2)) / 4
    of_training = max(of_all - of_test * (1 - test_share), 0.0) / max(1 - train_share, 1e-9)
    return math.sqrt(of_all / len(gains) + of_test * test_share + of_training * train_share)


def p_value(mean: float, error: float, n: int) -> float:
    """Two-sided, of the hypothesis that the true mean is 0."""
    if error == 0:
        return 1.0 if mean == 0 else 0.0
    return float(2 * student_t.sf(abs(mean) / error, n - 1))


def holm(p_values: Sequence[float]) -> np.ndarray:
    """Holm's adjusted p values, in the given order."""
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p)
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted


@dataclass(frozen=True)
class Difference:
    """The mean over splits of a method less another, positive where better, and its standard error."""

    mean: float
    error: float
    n: int

    @property
    def margin(self) -> float:
        return float(student_t.ppf(0.975, self.n - 1) * self.error) if self.n > 1 else math.nan

    @property
    def p(self) -> float:
        return p_value(self.mean, self.error, self.n) if self.n > 1 else 1.0

    def __str__(self) -> str:
        return f"{signed(self.mean)} ± {number(self.margin, 2)}"


class Results:
    """The lines of results.csv, and what follows from them.

    Gains are over the method `baseline`, and `simple` are the strategies among which the best simple one is.
    """

    def __init__(
        self,
        lines: dict[Key, Line],
        correction: str = "overlap",
        baseline: str = "unweighted",
        simple: Sequence[str] = (),
    ) -> None:
        self.correction, self.baseline, self.simple = correction, baseline, tuple(simple)
        self.by: dict[tuple[str, str], dict[int, Line]] = {}
        for (problem, split, method), line in lines.items():
            if math.isfinite(line.value):
                self.by.setdefault((problem, method), {})[split] = line
        self.failed = [
            line for line in lines.values() if not math.isfinite(line.value) and "left out" not in line.extra
        ]

    def lines(self, problem: str, method: str) -> dict[int, Line]:
        return self.by.get((problem, method), {})

    def facts(self, problem: str) -> dict[str, Any]:
        """The numbers of rows and the metric, which the unweighted model's lines hold."""
        return next(iter(self.lines(problem, "unweighted").values())).extra

    def sign(self, problem: str) -> float:
        return 1.0 if self.facts(problem)["greater_is_better"] else -1.0

    def gains(self, problem: str, method: str, over: str | None = None) -> tuple[np.ndarray, np.ndarray]:
        """The gains (J,) over another method, and those (J, 2) on the halves of the test rows."""
        ours, theirs = self.lines(problem, method), self.lines(problem, over or self.baseline)
        if method == "achievable":  # is a gain already
            rows = [(line.value, *line.extra["halves"]) for line in ours.values()]
        else:
            sign = self.sign(problem)
            rows = [
                tuple(
                    sign * (a - b) for a, b in zip(_values(ours[split]), _values(theirs[split]), strict=True)
                )
                for split in sorted(ours.keys() & theirs.keys())
            ]
        found = np.array(rows, dtype=float).reshape(-1, 3)
        return found[:, 0], found[:, 1:]

    def difference(
        self, problem: str, method: str, over: str | None = None, correction: str | None = None
    ) -> Difference | None:
        """None where the two have no split in common."""
        return self._mean(problem, *self.gains(problem, method, over), correction)

    def value(self, problem: str, method: str) -> Difference | None:
        """The mean value on the test rows, in the metric's units; None where there is none."""
        found = np.array([_values(line) for line in self.lines(problem, method).values()]).reshape(-1, 3)
        return self._mean(problem, found[:, 0], found[:, 1:])

    def _mean(
        self, problem: str, values: np.ndarray, halves: np.ndarray, correction: str | None = None
    ) -> Difference | None:
        """The mean of values (J,) of splits, and its error; `halves` (J, 2) are those of the test rows."""
        if not len(values):
            return None
        if len(values) == 1:
            return Difference(float(values[0]), math.nan, 1)
        facts = self.facts(problem)
        n_train = facts["n_train"] + facts["n_val"]
        if (correction or self.correction) == "rows":
            error = error_by_rows(values, facts["n_test"], n_train)
        else:
            whole = halves[np.isfinite(halves).all(axis=1)]
            shares = facts["n_test"] / facts["test_pool"], n_train / facts["learning_pool"]
            error = error_by_overlap(values, whole if len(whole) else np.zeros((1, 2)), *shares)
        return Difference(float(values.mean()), error, len(values))

    def best_simple(self, problem: str) -> str:
        """The simple strategy with the highest mean gain on the test rows."""
        means = {strategy: self.difference(problem, strategy) for strategy in self.simple}
        known = {strategy: gain.mean for strategy, gain in means.items() if gain is not None}
        return max(known, key=lambda strategy: known[strategy])

    def share(self, problem: str, method: str) -> float:
        """The share of the achievable gain; NaN where nothing is clearly achievable."""
        achievable, gain = self.difference(problem, "achievable"), self.difference(problem, method)
        clear = achievable is not None and achievable.mean > 2 * achievable.error
        return gain.mean / achievable.mean if gain and achievable and clear else math.nan

    def verdicts(
        self,
        problems: Sequence[str],
        method: str,
        strategy: Callable[[str], str],
        correction: str | None = None,
    ) -> dict[str, int]:
        """Problem → 1 where the method is significantly better than the strategy, −1 where worse, else 0."""
        pairs = [
            (problem, self.difference(problem, method, strategy(problem), correction)) for problem in problems
        ]
        known = [(problem, difference) for problem, difference in pairs if difference is not None]
        adjusted = holm([difference.p for _, difference in known])
        return {
            problem: int(np.sign(difference.mean)) if p < LEVEL else 0
            for (problem, difference), p in zip(known, adjusted, strict=True)
        }

    def honest_bias(self, problem: str, method: str, *, without_size_bias: bool = False) -> float:
        """Mean of honest − test, positive where too good, over its standard deviation over splits."""
        lines = self.lines(problem, method).values()
        off = np.array([line.extra.get("honest", math.nan) - line.value for line in lines])
        if without_size_bias:
            off += [_size_bias(line) for line in lines]
        off = self.sign(problem) * off[np.isfinite(off)]
        return float(off.mean() / off.std(ddof=1)) if len(off) > 1 and off.std() > 0 else math.nan

    def honest_gains(self, problem: str, method: str) -> HonestGains:
        """The gains of all splits that have an interval, as they were promised and as they came out."""
        sign, found = self.sign(problem), []
        for split, line in self.lines(problem, method).items():
            low, high = line.extra.get("gain_interval", (math.nan, math.nan))
            unweighted = self.lines(problem, "unweighted").get(split)
            if unweighted is None or not math.isfinite(low + high):
                continue
            size_bias = sign * (_size_bias(line) - _size_bias(unweighted))
            found.append((low, high, sign * (line.value - unweighted.value), size_bias))
        return HonestGains(*np.array(found, dtype=float).reshape(-1, 4).T)

    def intervals(self, problem: str, method: str) -> tuple[float, float]:
        """The share of gain intervals that hold the test gain, and their mean width."""
        gains = self.honest_gains(problem, method)
        if not len(gains.test):
            return math.nan, math.nan
        return float(gains.held.mean()), float((gains.high - gains.low).mean())


@dataclass(frozen=True)
class HonestGains:
    """The intervals of the gain, and the gains on the test rows with their size bias, of J splits (J,)."""

    low: np.ndarray
    high: np.ndarray
    test: np.ndarray
    size_bias: np.ndarray

    @property
    def honest(self) -> np.ndarray:
        return np.asarray((self.low + self.high) / 2)

    @property
    def held(self) -> np.ndarray:
        return np.asarray((self.low <= self.test) & (self.test <= self.high))

    @property
    def has_width(self) -> np.ndarray:
        return np.asarray(self.high > self.low)


def _values(line: Line) -> tuple[float, float, float]:
    first, second = line.extra.get("halves", (math.nan, math.nan))
    return line.value, first, second


def _size_bias(line: Line) -> float:
    """The bias of the value on the test rows from their number, in the metric's own direction; see above."""
    value, first, second = _values(line)
    return (first + second) / 2 - value


def over_problems(values: Sequence[float]) -> tuple[float, float]:
    """The mean of values of problems, and its 95 % margin; both NaN without any."""
    known = np.array([value for value in values if math.isfinite(value)])
    if not len(known):
        return math.nan, math.nan
    if len(known) == 1:
        return float(known[0]), math.nan
    error = float(known.std(ddof=1)) / math.sqrt(len(known))
    return float(known.mean()), float(student_t.ppf(0.975, len(known) - 1)) * error


def markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(heads) + " |", "|---" + "|---:" * (len(heads) - 1) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def against_best(results: Results, problems: Sequence[str]) -> str:
    verdicts = results.verdicts(problems, "moew", results.best_simple)
    rows = []
    for problem in problems:
        facts, best = results.facts(problem), results.best_simple(problem)
        gain, of_best = results.difference(problem, "moew"), results.difference(problem, best)
        between = results.difference(problem, "moew", best)
        achievable = results.difference(problem, "achievable")
        rows.append(
            [
                f"{problem} ({facts['model']})",
                f"{facts['metric']} {'↑' if facts['greater_is_better'] else '↓'}",
                str(len(results.lines(problem, "moew"))),
                DASH if achievable is None else str(achievable),
                str(gain),
                share_text(results.share(problem, "moew")),
                f"{best}, {of_best}",
                f"{between}{MARKS[verdicts.get(problem, 0)]}",
            ]
        )
    heads = [
        "problem",
        "metric",
        "splits",
        "achievable gain",
        "moew's gain",
        "its share",
        "best simple strategy on test, its gain",
        "moew − best",
    ]
    return markdown(heads, rows) + (
        "\n\nIn the metric's units, positive is better, ± 95 % margins (correction "
        f"“{results.correction}”). ▲ ▼: significantly better or worse after Holm's correction."
    )


def share_text(share: float) -> str:
    return DASH if math.isnan(share) else percent(round(share, 2))


def all_gains(results: Results, problems: Sequence[str], methods: Sequence[str]) -> str:
    shown = [method for method in methods if method != results.baseline]
    rows = []
    for problem in problems:
        gains = {method: results.difference(problem, method) for method in shown}
        best = max(gain.mean for gain in gains.values() if gain is not None)
        cells = [
            DASH if gain is None else f"**{signed(gain.mean)}**" if gain.mean == best else signed(gain.mean)
            for gain in gains.values()
        ]
        rows.append([problem, *cells])
    return markdown(["problem", *shown], rows)


def _or_infinite(share: float) -> float:
    return math.inf if math.isnan(share) else share


def shares(
    results: Results, methods: Sequence[str], clear: Sequence[str], parts: dict[str, Sequence[str]]
) -> str:
    """Mean shares on the problems with a clear achievable gain; `parts` of them have a column each, by its
    head, and moew's lead is on the last one."""
    rows = []
    for method in methods:
        if method == results.baseline:
            continue
        found = {problem: results.share(problem, method) for problem in clear}
        columns = [[found[problem] for problem in part] for part in parts.values()]
        lead = [results.share(problem, "moew") - found[problem] for problem in list(parts.values())[-1]]
        worst = min(found, key=lambda problem: _or_infinite(found[problem]), default=None)
        rows.append(
            [
                method,
                *(DASH if np.isnan(column).any() else mean_share(column) for column in columns),
                DASH if method == "moew" else _mean_lead(lead),
                DASH if worst is None else f"{share_text(found[worst])} ({worst})",
            ]
        )
    heads = ["strategy", *parts, "moew − it, there", "worst"]
    return markdown(heads, rows) + "\n\n± 95 % margins by Student's t, with the problems as draws."


def mean_share(shares: Sequence[float]) -> str:
    mean, margin = over_problems(shares)
    return DASH if math.isnan(mean) else f"{share_text(mean)} ± {share_text(margin).removesuffix(' %')}"


def _mean_lead(leads: Sequence[float]) -> str:
    text = mean_share(leads)
    return f"+{text}" if over_problems(leads)[0] > 0 else text


def selected(results: Results, problems: Sequence[str]) -> str:
    """How many of the searches ended with each strategy, and with tuned decisions."""
    names = [
        (problem, line.extra["chosen"])
        for problem in problems
        for line in results.lines(problem, "moew").values()
        if "chosen" in line.extra
    ]
    plain = [name.removesuffix(AND_TUNED) for _, name in names]
    rows = []
    for strategy in sorted(set(plain), key=lambda strategy: (-plain.count(strategy), strategy)):
        where = [problem for (problem, _), name in zip(names, plain, strict=True) if name == strategy]
        most = sorted(set(where), key=lambda problem: (-where.count(problem), problem))[:3]
        rows.append(
            [
                strategy,
                str(len(where)),
                str(sum(name == strategy + AND_TUNED for _, name in names)),
                ", ".join(f"{problem} {where.count(problem)}" for problem in most),
            ]
        )
    heads = [f"of {len(names)} searches", "selected", "with tuned decisions", "most often on"]
    return markdown(heads, rows)


def against_each(results: Results, problems: Sequence[str], methods: Sequence[str]) -> str:
    rows = []
    strategies: list[tuple[str, Callable[[str], str]]] = [
        *((m, lambda _, m=m: m) for m in methods if m != "moew"),
        ("the best simple strategy of each problem", results.best_simple),
    ]
    for name, strategy in strategies:
        both = [
            results.verdicts(problems, "moew", strategy, correction) for correction in ("rows", "overlap")
        ]
        differences = [results.difference(problem, "moew", strategy(problem)) for problem in problems]
        known = [difference for difference in differences if difference is not None]
        counts = [
            f"{sum(v > 0 for v in found.values())} / {sum(v < 0 for v in found.values())}" for found in both
        ]
        higher = sum(difference.mean > 0 for difference in known)
        rows.append([name, str(len(known)), f"{higher}", *counts])
    heads = [
        "strategy",
        "problems",
        "moew's mean higher",
        "better / worse, by rows",
        "better / worse, by overlap",
    ]
    return markdown(heads, rows)


def costs(results: Results, problems: Sequence[str], methods: Sequence[str]) -> str:
    rows = []
    for method in [*methods, "achievable"]:
        lines = [line for problem in problems for line in results.lines(problem, method).values()]
        if lines:
            means = [
                np.mean([getattr(line, f) for line in lines]) for f in ("fits", "fit_seconds", "seconds")
            ]
            rows.append([method, f"{means[0]:.0f}", *(f"{seconds:.2f}" for seconds in means[1:])])
    return markdown(["mean of all problems and splits", "fits", "CPU seconds of fitting", "seconds"], rows)


def mean_bias(biases: Sequence[float]) -> str:
    mean, margin = over_problems(biases)
    return f"{signed(mean, 2)} ± {number(margin, 2)}"


def draw(
    results: Results,
    problems: Sequence[str],
    strategies: Sequence[str],
    path: Path,
    hollow: Sequence[str] = (),
    over: str = "the unweighted model",
) -> None:
    """Each problem's gains in units of its achievable gain (or of its largest one where that is unclear).

    moew has 95 % margins by the correction "overlap"; the rivals stand one below the other. `hollow` are
    other settings of moew.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    every = ("x", "v", "s", "D", "^", "P", "<", ">")
    marks = {strategy: every[k % len(every)] for k, strategy in enumerate(strategies)}
    colours = {strategy: COLOURS[1 + k % 5] for k, strategy in enumerate(strategies)}
    low, high = -1.0, 1.5
    figure, axis = plt.subplots(figsize=(9, 1.6 + 0.5 * len(problems)), layout="constrained")
    labels = []
    for place, problem in enumerate(problems):
        scale, clear = _scale(results, problem, strategies)
        labels.append(problem if clear else f"{problem} *")
        for method in (*hollow, "moew", *strategies):
            gain = results.difference(problem, method, correction="overlap")
            if gain is None:
                continue
            at = min(max(gain.mean / scale, low), high)
            if method == "moew":
                half = gain.margin / scale if math.isfinite(gain.margin) else 0.0
                style: dict[str, Any] = {
                    "fmt": "o",
                    "color": COLOURS[0],
                    "markersize": 8,
                    "capsize": 3,
                    "zorder": 4,
                }
                axis.errorbar(at, place - 0.2, xerr=half, **style)
            elif method in hollow:
                axis.plot(at, place - 0.2, "o", markersize=8, mfc="white", color=COLOURS[0], zorder=3)
            else:
                down = place + 0.02 + 0.36 * strategies.index(method) / len(strategies)
                axis.plot(at, down, marks[method], markersize=5, color=colours[method], zorder=2)
    axis.plot([], [], "o", color=COLOURS[0], markersize=8, label="moew")
    for method in hollow:
        axis.plot([], [], "o", mfc="white", color=COLOURS[0], markersize=8, label=method)
    for strategy in strategies:
        axis.plot([], [], marks[strategy], markersize=5, color=colours[strategy], label=strategy)
    axis.axvline(0.0, color="black", linewidth=1, zorder=1)
    axis.axvline(1.0, color="grey", linewidth=1, linestyle="--", zorder=1)
    for place in range(1, len(problems)):
        axis.axhline(place - 0.5, color="lightgrey", linewidth=0.8, zorder=0)
    axis.set_yticks(range(len(problems)), labels)
    axis.set_ylim(len(problems) - 0.5, -0.5)
    axis.set_xlim(low - 0.08, high + 0.08)
    unclear = any(label.endswith("*") for label in labels)
    axis.set_xlabel(
        f"gain over {over} (0), as a share of the achievable gain (1); edges: beyond"
        + ("\n* no clear achievable gain: as a share of the largest gain or loss" if unclear else "")
    )
    figure.legend(loc="outside upper center", ncols=4, frameon=False, fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _scale(results: Results, problem: str, strategies: Sequence[str]) -> tuple[float, bool]:
    """What a problem's gains are drawn in units of, and whether that is its achievable gain."""
    achievable = results.difference(problem, "achievable")
    if achievable is not None and not math.isnan(results.share(problem, "moew")):
        return achievable.mean, True
    gains = [results.difference(problem, m) for m in ("moew", *strategies) if m != "best constant"]
    return max((abs(gain.mean) for gain in gains if gain is not None), default=0.0) or 1.0, False
