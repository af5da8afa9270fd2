"""Figures 4a and 4b and the study of p and q: wine prices, evaluated by the price range with the largest
error.

Two datasets. "wine" has the paper's 40 features (39 words and the points) for the 9,315 rows whose reviews
are available; "wine-full" has the paper's rows, 120,975, but no words: the points and 39 flags of the most
frequent countries and varieties. With `--csv` Kaggle's own file replaces both: the paper's rows and words.
Every repeat has its own split, 70/10/20 percent.

The paper says 40-20-10-1, squared loss on the log price, an autoencoder 41-100-d-100-41, K = 20, p = q = 68.3
and a kernel as wide as the ball. The authors' scripts add mini-batches of 1000, radius 5, and unscaled
numbers: points (80 to 100) beside flags. So the points alone saturate most of the model's first layer, and
models with equal weights differ much only because of their initial parameters. Where text and scripts differ
there is a second row, with 20 repeats: hinge loss for the autoencoder's flags (text) instead of squared; a GP
with fitted width and noise 1e-4 (scripts) instead of width R and the noise of the uniform models.

All rows train the same model, the authors', except the two with "scaled points", the first thing one would
change, also for uniform weights. "moew" differs only in its embedding (flags of the price ranges, which the
metric depends on, and the points, which the model has difficulty with), its radius and its GP.

Networks trained together share their mini-batches, which leave all of them some percent too high or too low
(with equal weights and four networks each, the metric of three repeats was 58–65, 81–85 and 58–64 %). So the
best of many batches of candidates also has lucky mini-batches, in every row of the table.

The text says that all experiments used π(y) = p_V(y) / p_T(y), and the scripts have none: two second rows
have it, alone and under the paper's search, whose noise is then that of the models with π(y) alone. For a
price π(y) is a ratio of densities, as `moew.weighting.LabelShift` estimates it. The splits are random, so it
is near one. The paper's search with d = 8 and "moew" also choose by the posterior mean of their Gaussian
process (`_posterior_choice`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path

from experiments._experiment import PERCENT, PI_ALONE, Options, Prepared, Run, chosen
from experiments._searches import (
    Arm,
    Fixed,
    Learned,
    Seen,
    label_shift,
    paper_samplers,
    uniform_weights,
)
from experiments._wine_plan import (
    BATCH_SIZE,
    OUR_RADIUS,
    PAPER_RADIUS,
    PART,
    SCALED_UNIFORM,
    UNIFORM,
    WHOLE,
    Picks,
    Plan,
    Setting,
)
from experiments._wine_rows import JUDGE, Wine, most_frequent_flags
from experiments._wine_tables import draw, report, spread
from experiments.datasets import Dataset, load_wine, load_wine_full
from moew._util.seeds import integer_seed


def make_arm(wine: Wine, setting: Setting, repeats: int, uniform: Seen | None) -> Arm:
    """The arm of a setting; the noise of the paper's GP is that of the uniform models."""
    base_weights = label_shift if setting.pi else uniform_weights
    if setting.embedding is None:
        return Fixed(base_weights)
    paper, ours = setting.search is None, setting.embedding == "ours"
    return Learned(
        wine.metric_columns(repeats) if ours else wine.embedding(setting.embedding, setting.n_dims, repeats),
        OUR_RADIUS if ours else PAPER_RADIUS,
        paper_samplers(uniform, setting.confidence, setting.confidence) if paper else setting.search,
        integer_seed(wine.options.seed, f"wine {setting.name}"),
        base_weights,
    )


def search_all(this: Run, name: str, make_rows: Callable[[], Wine], plan: Plan) -> dict[str, Seen]:
    """Run every setting of the plan that is wanted, and what it depends on; finished ones are read from the
    folder."""
    found: dict[str, Seen] = {}
    settings = {setting.name: setting for setting in plan.settings()}
    rows = cache(make_rows)  # split when first needed

    def prepare(setting: Setting) -> Prepared:
        from_uniform = setting.embedding is not None and setting.search is None
        uniform = search(settings[PI_ALONE if setting.pi else UNIFORM]) if from_uniform else None
        return prepared(rows(), setting, uniform)

    def search(setting: Setting) -> Seen:
        shown = f"{name} {setting.name}"
        if setting.name not in found and setting.choice is not None:
            of = settings[setting.of]
            n_batches = plan.batches(of.name)[-1]
            both = this.posterior_choice(
                f"{name} {of.name}", partial(prepare, of), search(of), n_batches=n_batches
            )
            found[setting.name] = both[setting.choice]
        elif setting.name not in found:
            n_batches = plan.batches(setting.name)[-1]
            found[setting.name] = this.search(
                shown,
                partial(prepare, setting),
                n_batches=n_batches,
                batch_size=BATCH_SIZE,
                keep_embedding=setting.name in chosen_later,
            )
        return found[setting.name]

    wanted = [setting for setting in settings.values() if this.wants(f"{name} {setting.name}")]
    chosen_later = {setting.of for setting in wanted if setting.choice is not None}
    for setting in wanted:
        search(setting)
    return found


def prepared(wine: Wine, setting: Setting, uniform: Seen | None) -> Prepared:
    """The search of a setting."""
    o = wine.options
    repeats = o.second_repeats if setting.few else o.repeats
    problem = wine.problem(setting.scaled, repeats)
    return Prepared(problem, make_arm(wine, setting, repeats, uniform), JUDGE)


def choose_all(found: dict[str, Seen], plan: Plan) -> Picks:
    """The scores (R,), in percent, of what each search chooses by validation after B batches."""
    return {
        (setting, batches): chosen(seen, False, batches * BATCH_SIZE, PERCENT)
        for setting, seen in found.items()
        for batches in plan.batches(setting)
    }


def line_name(name: str, setting: str, batches: int) -> str:
    """The name of a setting after B batches in the file of raw numbers."""
    return f"{name} {setting}, B={batches}"


def datasets(csv: Path | None) -> Iterator[tuple[str, Dataset, Plan]]:
    """Names, rows and plans: the two datasets above, or the user's file."""
    if csv is None:
        yield "wine", load_wine(), WHOLE
        yield "wine-full", most_frequent_flags(load_wine_full()), PART
    else:
        data = load_wine(csv)
        yield f"wine-kaggle-{len(data.y)}", data, WHOLE


def main(options: Options, csv: Path | None = None) -> str:
    """Run or continue, and return the tables; figures and raw numbers go to the folder."""
    this = Run("wine", options)
    parts = list(datasets(csv))
    this.check_only([f"{name} {setting.name}" for name, _, plan in parts for setting in plan.settings()])
    found = {name: search_all(this, name, partial(Wine, options, data), plan) for name, data, plan in parts}
    values = this.write_values(
        [
            (line_name(name, setting, batches), scores)
            for name, _, plan in parts
            for (setting, batches), scores in choose_all(found[name], plan).items()
            if this.wants(f"{name} {setting}")
        ]
    )
    texts = []
    for name, data, plan in parts:
        picks = {
            (setting.name, batches): values[line_name(name, setting.name, batches)]
            for setting in plan.settings()
            for batches in plan.batches(setting.name)
            if line_name(name, setting.name, batches) in values
        }
        if picks:
            texts.append(report(f"{name} ({len(data.y):,} rows)", plan, picks))
            draw(this.folder / f"{name}.png", name, plan, picks)
    return this.conclude("\n".join([*texts, this.remarks(lambda: spreads(parts, found))]))


def spreads(parts: Sequence[tuple[str, Dataset, Plan]], found: Mapping[str, Mapping[str, Seen]]) -> str:
    """How far models with equal weights differ by chance, for each dataset."""
    return "\n".join(
        spread(f"{name}, {one}", found[name][one], plan.n_batches * BATCH_SIZE)
        for name, _, plan in parts
        if plan.n_batches > 1
        for one in (UNIFORM, SCALED_UNIFORM)
    )
