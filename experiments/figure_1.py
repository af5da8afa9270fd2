"""Figure 1 of the paper: training and test data differ, and the metric is not the loss.

Training features are Beta(2, 1)², validation and test features Beta(1, 2)², the boundary is the diagonal,
the metric is precision at 95 % recall. What the paper leaves open is chosen in docs/figure-1.md.
`python -m experiments demo figure-1` and `python -m experiments toy` run it.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.linear_model import LogisticRegression

from experiments._beside_paper import Line, table, write_values
from experiments.datasets import draw_figure_1, figure_1_probability
from moew import ExampleWeights, MetricSearch
from moew._util.margins import margin
from moew._util.seeds import generator, integer_seed
from moew._util.whole_files import write_whole
from moew.data import Rows
from moew.embedding import ColumnsEmbedding
from moew.metrics import precision_at_recall
from moew.search._compare import MOEW, choices_of_all, choices_with_weights
from moew.search._prepare import prepare
from moew.search._strategies import RANDOM, UNWEIGHTED
from moew.search._strategies.importance_weights import BY_FEATURES, importance_weightings
from moew.types import BoolArray, FloatArray
from moew.weighting import WeightFunction

N_TRAIN, N_VALIDATION, N_TEST = 5_000, 2_000, 100_000
RADIUS, N_BATCHES, BATCH_SIZE = 1.0, 5, 10
REPEATS, STEPS = 30, 2_000  # unless other numbers are asked for
PAPER = {"uniform": 20.8, "importance (exact)": 21.8, "moew": 23.2, "Bayes-optimal": 25.0}
GRID = 101  # points a side of the contour panels
DrawnRows = tuple[FloatArray, BoolArray]


@dataclass(frozen=True)
class Figure1Settings:
    """What is trained, a "logistic" regression or a "network", and where alphas come from.

    `steps`, `device` and `precision` are the network's.
    """

    seed: int = 0
    model: str = "logistic"
    sampler: str = "gp_bucb"
    steps: int = STEPS
    device: str | None = None
    precision: str = "float32"


@dataclass(frozen=True)
class Repeat:
    """One draw of all data: test precision by method, the winner's two validation scores, log weights."""

    precision: dict[str, float]
    best: float
    honest: float
    log_weights: FloatArray  # (2, GRID, GRID): negatives and positives over the unit square

    def save(self, path: Path) -> None:
        """Write to `path`, whole or not at all."""
        arrays: dict[str, Any] = {f"precision {method}": value for method, value in self.precision.items()}
        arrays |= {"best": self.best, "honest": self.honest, "log_weights": self.log_weights}
        write_whole(path, lambda new: np.savez(new, **arrays))

    @classmethod
    def load(cls, path: Path) -> Repeat:
        with np.load(path, allow_pickle=False) as kept:
            names = [name for name in kept.files if name.startswith("precision ")]
            precision = {name.removeprefix("precision "): float(kept[name]) for name in names}
            return cls(precision, float(kept["best"]), float(kept["honest"]), kept["log_weights"])


def run_figure_1(
    folder: Path,
    repeats: int = REPEATS,
    settings: Figure1Settings | None = None,
    *,
    n_jobs: int = 1,
    on_repeat: Callable[[int], None] | None = None,
) -> str:
    """Run or go on, and return the table and where the figure and the raw numbers are.

    The folder gets figure-1.png, the numbers in it (figure-1-rows.csv and figure-1-weights.csv), toy.csv,
    toy.txt and what is done so far. `on_repeat` is told after each repeat, or some of them at a time, how
    many are done; what it raises ends the run.
    """
    settings = settings or Figure1Settings()
    done = run_repeats(folder, repeats, settings, n_jobs, on_repeat)
    methods = list(done[0].precision)
    values = {method: np.array([repeat.precision[method] for repeat in done]) for method in methods}
    numbers, picture = folder / "toy.csv", folder / "figure-1.png"
    write_values(numbers, [(f"{settings.model} {settings.sampler}", values)])
    samples = draw_samples(settings.seed)
    mean = np.mean([repeat.log_weights for repeat in done], axis=0)
    write_panels(folder, samples, mean)
    draw_figure(samples, mean, len(done), picture)
    lines = [Line(method, values[method], True, PAPER.get(method)) for method in methods]
    text = f"{table('Test precision at 95 % recall, in percent', lines)}\n\n{remarks(done)}"
    (folder / "toy.txt").write_text(f"{text}\n", encoding="utf-8")
    return f"{text}\n\nThe figure: {picture}\nThe numbers: {numbers}"


def run_repeats(
    folder: Path,
    repeats: int,
    settings: Figure1Settings,
    n_jobs: int = 1,
    on_repeat: Callable[[int], None] | None = None,
) -> list[Repeat]:
    """All repeats, some at a time; each depends on the settings and its number only, and is kept."""
    s = settings
    state = folder / "state" / f"seed={s.seed}-steps={s.steps}-{s.precision}"
    paths = [state / f"{s.model}-{s.sampler}-{number}.npz" for number in range(repeats)]
    missing = [number for number, path in enumerate(paths) if not path.exists()]
    at_once = effective_n_jobs(n_jobs)
    for start in range(0, len(missing), at_once):
        numbers = missing[start : start + at_once]
        jobs = (delayed(run_repeat)(number, settings) for number in numbers)
        for number, repeat in zip(numbers, Parallel(n_jobs=n_jobs)(jobs), strict=True):
            repeat.save(paths[number])
        if on_repeat is not None:
            on_repeat(repeats - len(missing) + start + len(numbers))
    return [Repeat.load(path) for path in paths]


def run_repeat(number: int, settings: Figure1Settings) -> Repeat:
    """All methods on fresh data, at the same number of trained models, tested on the same rows."""
    rng = generator(settings.seed, "toy", number)
    train, validation, test = draw_parts(rng)
    search = make_search(settings, integer_seed(settings.seed, "search", number))
    prepared = [prepare(search.settings, Rows(*train), Rows(*validation), Rows(*test))]
    exact = np.prod((1 - train[0]) / train[0], axis=1)  # Beta(1, 2) over Beta(2, 1), feature by feature
    estimated = importance_weightings(prepared[0])[BY_FEATURES].pi_
    chosen = choices_of_all(prepared, (UNWEIGHTED, RANDOM, MOEW))
    (uniform,), (random,), (moew,) = chosen[UNWEIGHTED], chosen[RANDOM], chosen[MOEW]
    shares = {
        "select everything": float(test[1].mean()),
        "uniform": uniform.test,
        "random": random.test,
        "importance (exact)": choices_with_weights(prepared, [exact / exact.mean()])[0].test,
        "importance (estimated)": choices_with_weights(prepared, [estimated])[0].test,
        "moew": moew.test,
        "random directions": untrained(rng, validation, test),
        "Bayes-optimal": precision_at_recall(0.95)(test[1], figure_1_probability(test[0])),
    }
    return Repeat(
        {method: 100 * share for method, share in shares.items()},
        100 * moew.apparent,
        100 * moew.honest,
        log_weights(moew.weight_function),
    )


def first_search(settings: Figure1Settings | None = None) -> tuple[MetricSearch, DrawnRows, DrawnRows]:
    """The search of the first repeat, not fitted, and the training and validation rows it is made for."""
    settings = settings or Figure1Settings()
    train, validation, _ = draw_parts(generator(settings.seed, "toy", 0))
    return make_search(settings, integer_seed(settings.seed, "search", 0)), train, validation


def draw_parts(rng: np.random.Generator) -> tuple[DrawnRows, DrawnRows, DrawnRows]:
    """Training, validation and test rows of one repeat."""
    return (
        draw_figure_1(rng, N_TRAIN, 2, 1),
        draw_figure_1(rng, N_VALIDATION, 1, 2),
        draw_figure_1(rng, N_TEST, 1, 2),
    )


def make_search(settings: Figure1Settings, seed: int) -> MetricSearch:
    """The search of the demo, with logistic regression or a network 2-20-10-1 inside."""
    weights = ExampleWeights(
        embedding=ColumnsEmbedding([0, 1]),
        base_weights="label_shift",
        sampler=settings.sampler,
        radius=RADIUS,
        batch_size=BATCH_SIZE,
        final="best",
    )
    return MetricSearch(
        LogisticRegression() if settings.model == "logistic" else _network(settings),
        metric=precision_at_recall(0.95),
        strategies=[weights],
        evaluate_on="validation",
        n_candidates=N_BATCHES * BATCH_SIZE,
        verbose=False,
        random_state=seed,
    )


def _network(settings: Figure1Settings) -> Any:
    from moew import NetworkClassifier  # loads JAX, which the demo does without

    return NetworkClassifier(
        (20, 10),
        steps=settings.steps,
        batch_size=250,
        learning_rate=0.01,
        device=settings.device,
        precision=settings.precision,
    )


def untrained(rng: np.random.Generator, validation: DrawnRows, test: DrawnRows) -> float:
    """The plainest rival: as many linear scorers as moew trains, drawn at random, best on validation."""
    metric = precision_at_recall(0.95)
    angles = rng.uniform(0, 2 * np.pi, 1 + N_BATCHES * BATCH_SIZE)
    directions = np.stack([np.cos(angles), np.sin(angles)])
    best = int(np.argmax([metric(validation[1], scores) for scores in (validation[0] @ directions).T]))
    return metric(test[1], test[0] @ directions[:, best])


def log_weights(weight: WeightFunction) -> FloatArray:
    """Log weights (2, GRID, GRID) of negatives and positives over the unit square."""
    side = np.linspace(0, 1, GRID)
    X = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    both = [np.log(weight(X, np.full(len(X), label))) for label in (False, True)]
    return np.stack(both).reshape(2, GRID, GRID)


def remarks(repeats: list[Repeat]) -> str:
    """What a reader of the table should know."""
    gains = {
        other: np.array([r.precision["moew"] - r.precision[other] for r in repeats])
        for other in ("uniform", "importance (exact)", "importance (estimated)")
    }
    lines = [
        f"moew − {other}: {gain.mean():+.2f} ± {margin(gain):.2f}, "
        f"better in {int((gain > 0).sum())} of {len(gain)}"
        for other, gain in gains.items()
    ]
    best, honest = (np.array([getattr(r, name) for r in repeats]) for name in ("best", "honest"))
    n_models = 1 + N_BATCHES * BATCH_SIZE
    lines += [
        f"moew on its validation rows: best {best.mean():.2f} ± {margin(best):.2f} %, "
        f"honest {honest.mean():.2f} ± {margin(honest):.2f} %",
        f"{len(repeats)} repeats with fresh data; {n_models} models for each row of weights, the best on\n"
        "validation wins (one stands for all if training is deterministic). Random directions are untrained.",
    ]
    return "\n".join(lines)


def draw_samples(seed: int) -> dict[str, DrawnRows]:
    """The rows shown in the upper panels, by their titles."""
    rng = generator(seed, "figure")
    distributions = {"Training distribution": (2, 1), "Validation and test distribution": (1, 2)}
    return {title: draw_figure_1(rng, 1_000, a, b) for title, (a, b) in distributions.items()}


def write_panels(folder: Path, samples: dict[str, DrawnRows], log_weights: FloatArray) -> None:
    """Write the numbers of the figure as CSV: the rows of the upper panels, and over the unit square the
    weights of the lower ones, from their mean logarithms (2, GRID, GRID) of negatives and positives."""
    with (folder / "figure-1-rows.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["panel", "x1", "x2", "positive"])
        for title, (X, y) in samples.items():
            writer.writerows(
                [title, f"{a:.5g}", f"{b:.5g}", int(label)] for (a, b), label in zip(X, y, strict=True)
            )
    side = np.linspace(0, 1, GRID)
    negatives, positives = np.exp(log_weights)
    with (folder / "figure-1-weights.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["x1", "x2", "weight of positives", "weight of negatives"])
        for i, j in np.ndindex(GRID, GRID):
            both = (positives[i, j], negatives[i, j])
            writer.writerow([f"{side[j]:.4g}", f"{side[i]:.4g}", *(f"{weight:.5g}" for weight in both)])


def draw_figure(samples: dict[str, DrawnRows], mean: FloatArray, n_repeats: int, path: Path) -> None:
    """The paper's four panels; the contours are the geometric mean of the winners' weights."""
    import matplotlib as mpl

    path.parent.mkdir(parents=True, exist_ok=True)
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(9, 8.6), sharex=True, sharey=True, layout="constrained")
    for axis, (title, (X, y)) in zip(axes[0], samples.items(), strict=True):
        axis.scatter(*X[~y].T, s=7, color="black", label="negative")
        axis.scatter(*X[y].T, s=7, color="#D55E00", label="positive")
        axis.set_title(title)
    axes[0, 0].legend(loc="lower left", framealpha=0.9)
    side = np.linspace(0, 1, GRID)
    for axis, title, values in zip(axes[1], ("positives", "negatives"), mean[::-1], strict=True):
        lines = axis.contour(side, side, np.exp(values), levels=8, cmap="viridis")
        axis.clabel(lines, fmt="%.2g")
        axis.set_title(f"Weight of {title} (mean of {n_repeats} repeats)")
    for axis in axes.flat:
        axis.plot([0, 1], [1, 0], color="grey", linestyle="--", linewidth=1)
        axis.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    for axis in axes[1]:
        axis.set_xlabel("$x_1$")
    for axis in axes[:, 0]:
        axis.set_ylabel("$x_2$")
    figure.savefig(path, dpi=120)
    plt.close(figure)
