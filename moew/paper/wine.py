"""Figures 4a and 4b and the study of p and q: prices of wines, judged by the price range that fares worst.

Two datasets. "wine" has the paper's 40 features (39 words and the points) for the 9,315 rows whose reviews
are at hand; "wine-full" has the paper's rows, 120,975, but no words: the points and 39 flags, of the
countries and varieties met most often. With `--csv` Kaggle's own file takes the place of both: the paper's
rows and words. Every repeat has its own split, 70/10/20 percent.

The paper says 40-20-10-1, squared loss on the log price, an autoencoder 41-100-d-100-41, K = 20, p = q = 68.3
and a kernel as wide as the ball. The authors' scripts add mini-batches of 1000, radius 5, and numbers as they
are: points (80 to 100) beside flags. So the points alone saturate most of the model's first layer, and models
with equal weights differ much by nothing but their first parameters. Where text and scripts differ there is a
second row, with 20 repeats: hinge loss for the autoencoder's flags (text) in place of squared; a GP with
fitted width and noise 1e-4 (scripts) in place of width R and the noise of the uniform models.

All rows train the same model, the authors', but for the two with "scaled points": what one would change
first, for uniform weights too. "moew" has another embedding (scaled numbers, standardised), radius and GP,
and no more.

Networks trained together share their mini-batches, which leave all of them some percent too high or too low
(with equal weights and four networks each, the metric of three repeats was 58–65, 81–85 and 58–64 %). So the
best of many batches of candidates has lucky mini-batches too, for every row of the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from moew.datasets import Dataset, load_wine, load_wine_full
from moew.margins import margin
from moew.paper._experiment import Line, Options, Prepared, Run, chosen, difference, table
from moew.paper._searches import Arm, Moew, Plain, Seen, paper_search
from moew.paper._wine_rows import Wine, most_frequent_flags
from moew.protocols import FloatArray
from moew.search import GpBucb
from moew.seeds import integer_seed

BATCH_SIZE, FEW_REPEATS = 20, 20
PAPER_RADIUS, OUR_RADIUS, OUR_DIMS, LONG_DIMS = 5.0, 3.0, 8, 10
ONE_DEVIATION = 68.3
# The scripts' noise is 1e-4 of a share's square; our metric is in percent.
SEARCH_OF_SCRIPTS = GpBucb(width="fit", noise=1e-4 * 100**2, targets="raw")
PAPER_UNIFORM = ((52.00, 0.31), (48.27, 0.41))  # best of 200, of 1000
PAPER_D8 = (46.33, 0.16)
PAPER_CONFIDENCE = {
    0.0: (47.07, 0.19),
    75.0: (46.32, 0.15),
    95.0: (46.28, 0.15),
    99.99: (46.28, 0.16),
    99.999: (46.46, 0.17),
}


@dataclass(frozen=True)
class Setting:
    """One search: `embedding` is None for uniform weights, "scripts", "text" (of the paper) or "ours"."""

    name: str
    embedding: str | None = None
    n_dims: int = 0
    search: GpBucb | None = None  # None: the paper's
    confidence: float = ONE_DEVIATION  # the paper's p = q
    scaled: bool = False  # the model's points
    few: bool = False  # repeats


@dataclass(frozen=True)
class Plan:
    """What is studied: dimensions d, p = q, and how many batches B the searches have: `long_batches` those of
    uniform weights and LONG_DIMS. With the paper's features (`like_paper`) its figures stand beside ours, and
    the second settings are tried."""

    dims: tuple[int, ...]
    confidences: tuple[float, ...] = ()
    n_batches: int = 10
    long_batches: int = 10
    like_paper: bool = False

    def settings(self) -> list[Setting]:
        """All searches; uniform weights come first, since they give the noise."""
        ours = partial(Setting, embedding="ours", n_dims=OUR_DIMS, search=GpBucb())
        found = [Setting(UNIFORM)]
        found += [Setting(as_paper(d), "scripts", d) for d in self.dims]
        found += [Setting(with_p(p), "scripts", LONG_DIMS, confidence=p) for p in self.confidences]
        found += [ours(MOEW), Setting(SCALED_UNIFORM, scaled=True), ours(SCALED_MOEW, scaled=True)]
        if self.like_paper:
            found.append(Setting(f"{as_paper(8)}, hinge loss (text)", "text", 8, few=True))
            scripts = Setting(f"{as_paper(8)}, GP of the scripts", "scripts", 8, SEARCH_OF_SCRIPTS, few=True)
            found.append(scripts)
        return found

    def batches(self, setting: str) -> list[int]:
        """After how many batches B the choice of a search is reported; its last is all it has."""
        if setting not in (UNIFORM, as_paper(LONG_DIMS)):
            return [self.n_batches]
        step = max(1, self.n_batches // 2)
        return list(range(step, self.long_batches + 1, step))


def as_paper(d: int) -> str:
    return f"d={d} as in the paper"


def with_p(p: float) -> str:
    return f"p=q={p:g} as in the paper"


UNIFORM, MOEW = "uniform", "moew"
SCALED_UNIFORM, SCALED_MOEW = f"{UNIFORM}, scaled points", f"{MOEW}, scaled points"
WHOLE = Plan(tuple(range(2, 31, 2)), tuple(PAPER_CONFIDENCE), long_batches=50, like_paper=True)
PART = Plan((2, 8, 10, 20))  # of "wine-full"
Picks = dict[tuple[str, int], dict[str, FloatArray]]


def make_arm(wine: Wine, setting: Setting, repeats: int, uniform: Seen | None) -> Arm:
    """How this setting weights; the noise of the paper's GP is that of the uniform models."""
    if setting.embedding is None:
        return Plain()
    search = setting.search
    if search is None:
        search = paper_search(uniform, setting.confidence, setting.confidence)
    return Moew(
        wine.embedding(setting.embedding, setting.n_dims, repeats),
        OUR_RADIUS if setting.embedding == "ours" else PAPER_RADIUS,
        search,
        greater_is_better=False,
        seed=integer_seed(wine.options.seed, f"wine {setting.name}"),
        n_jobs=wine.options.n_jobs,
    )


def search_all(this: Run, name: str, wine: Wine, plan: Plan) -> dict[str, Seen]:
    """Every setting of the plan; what was done before is taken from the folder."""
    found: dict[str, Seen] = {}
    for setting in plan.settings():
        found[setting.name] = this.search(
            f"{name} {setting.name}",
            partial(prepared, wine, setting, found.get(UNIFORM)),
            n_batches=plan.batches(setting.name)[-1],
            batch_size=BATCH_SIZE,
        )
    return found


def prepared(wine: Wine, setting: Setting, uniform: Seen | None) -> Prepared:
    repeats = min(wine.options.repeats, FEW_REPEATS) if setting.few else wine.options.repeats
    networks, evaluate = wine.model(setting.scaled, repeats)
    return Prepared(networks, make_arm(wine, setting, repeats, uniform), evaluate)


def choose_all(found: dict[str, Seen], plan: Plan) -> Picks:
    """The scores (R,) of what each search chooses by validation after B batches."""
    return {
        (setting, batches): chosen(seen, greater_is_better=False, first=batches * BATCH_SIZE)
        for setting, seen in found.items()
        for batches in plan.batches(setting)
    }


def report(name: str, plan: Plan, picks: Picks) -> str:
    """The tables of one dataset."""
    B = plan.n_batches

    def line(setting: str, batches: int, shown: str, paper: tuple[float, float] | None = None) -> Line:
        known = paper if plan.like_paper and paper is not None else (None, 0.0)
        return Line(shown, picks[setting, batches]["test"], False, *known)

    shown = [setting.name for setting in plan.settings() if not setting.name.startswith("p=q")]
    known = {UNIFORM: PAPER_UNIFORM[0], as_paper(8): PAPER_D8}
    lines = [line(setting, B, setting, known.get(setting)) for setting in shown]
    parts = [table(f"{name}, worst price range's test error in percent, best of {B * BATCH_SIZE}", lines)]
    for setting in shown:
        if not setting.startswith(UNIFORM):
            other = SCALED_UNIFORM if setting == SCALED_MOEW else UNIFORM
            values = picks[setting, B]["test"]
            rivals = picks[other, B]["test"][: len(values)]
            parts.append(difference(f"{setting} − {other}", values, rivals, greater_is_better=False))
    if plan.confidences:
        lines = [line(with_p(p), B, f"p=q={p:g}", PAPER_CONFIDENCE.get(p)) for p in plan.confidences]
        parts += ["", table(f"{name}, d={LONG_DIMS}, B={B}", lines)]
    if plan.long_batches > B:
        marks, last = plan.batches(UNIFORM), plan.long_batches
        lines = [line(as_paper(LONG_DIMS), b, f"B={b}") for b in marks]
        lines.append(line(UNIFORM, last, f"uniform, B={last}", PAPER_UNIFORM[1]))
        parts += ["", table(f"{name}, d={LONG_DIMS} as in the paper", lines)]
    return "\n".join([*parts, ""])


def draw(path: Path, name: str, plan: Plan, picks: Picks) -> None:
    """Figure 4a: by d; Figure 4b: by B; validation and test."""
    from moew.paper._figures import COLOURS, band, new_figure, save

    figure, (left, right) = new_figure(1, 2, (11, 4.6))
    B, marks = plan.n_batches, plan.batches(UNIFORM)
    panels = (
        (left, plan.dims, [(as_paper(d), B) for d in plan.dims], [(UNIFORM, B)] * len(plan.dims)),
        (right, marks, [(as_paper(LONG_DIMS), b) for b in marks], [(UNIFORM, b) for b in marks]),
    )
    for axis, x, ours, uniform in panels:
        band(axis, x, [picks[one]["test"] for one in uniform], "uniform, test", color="grey")
        band(
            axis,
            x,
            [picks[one]["validation"] for one in ours],
            "as in the paper, validation",
            color=COLOURS[1],
        )
        band(axis, x, [picks[one]["test"] for one in ours], "as in the paper, test", color=COLOURS[0])
    moew = picks[MOEW, B]["test"]
    left.errorbar([OUR_DIMS], [moew.mean()], [margin(moew)], fmt="s", color=COLOURS[2], label="moew, test")
    left.set(
        xlabel="dimensions d", ylabel="worst price range's error, %", title=f"{name}: Figure 4a, B = {B}"
    )
    right.set(xlabel="batches B", title=f"{name}: Figure 4b, d = {LONG_DIMS}")
    left.set_xticks(plan.dims)
    right.set_xticks(marks)
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    save(figure, path)


def datasets(csv: Path | None) -> Iterator[tuple[str, Dataset, Plan]]:
    """Names, rows and plans: the two at hand, or the file that the user has."""
    if csv is None:
        yield "wine", load_wine(), WHOLE
        yield "wine-full", most_frequent_flags(load_wine_full()), PART
    else:
        data = load_wine(csv)
        yield f"wine-kaggle-{len(data.y)}", data, WHOLE


def main(options: Options, csv: Path | None = None) -> str:
    """Run or go on, and return the tables; figures and raw numbers go to the folder."""
    this = Run("wine", options)
    texts, values = [], []
    for name, data, plan in datasets(csv):
        picks = choose_all(search_all(this, name, Wine(options, data), plan), plan)
        values += [(f"{name} {setting}, B={batches}", scores) for (setting, batches), scores in picks.items()]
        texts.append(report(name, plan, picks))
        draw(this.folder / f"{name}.png", name, plan, picks)
    this.write_values(values)
    return this.conclude("\n".join(texts))
