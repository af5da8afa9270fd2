"""A reader of digits that is judged by the digit it reads worst, on the digits that ship with scikit-learn.

The scanner is coarse (4 × 4 pixels), the model is linear, and the training rows were collected where low
digits are common: seven in ten of the digits 5 to 9 are missing. Validation and test rows have all digits
alike. `python -m experiments demo` runs it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from experiments._beside_paper import write_values
from moew import ExampleWeights, MetricSearch
from moew._util.margins import margin
from moew._util.seeds import generator, integer_seed
from moew.data import Rows
from moew.metrics import worst_class_error
from moew.search._compare import choices_of_all
from moew.search._prepare import prepare
from moew.search._strategies import TUNED, UNWEIGHTED
from moew.types import FloatArray, IntArray

N_TRAIN, N_VALIDATION = 800, 300  # training rows before most of the digits 5 to 9 are taken out
N_BATCHES, BATCH_SIZE = 4, 8
REPEATS = 12
BALANCED, DECISIONS_TUNED, MOEW = "class_weight='balanced'", "decisions tuned", "moew"
BOTH = ", also trained on validation rows"
DrawnRows = tuple[FloatArray, IntArray]


@dataclass(frozen=True)
class Setting:
    """What can be otherwise: the share of the digits 5 to 9 kept for training, the pixels, the model's C."""

    kept: float = 0.3
    coarse: bool = True  # 4 × 4 pixels instead of 8 × 8
    C: float = 1.0


DEMO = Setting()


@dataclass(frozen=True)
class Repeat:
    """One split: the worst digit's error on the test rows by method, and all digits' before and after."""

    worst: dict[str, float]
    chosen: str  # the strategy that moew selected
    unweighted: FloatArray  # (10,): error of each digit
    moew: FloatArray  # (10,)


def draw_parts(number: int, setting: Setting = DEMO) -> tuple[DrawnRows, DrawnRows, DrawnRows]:
    """Training, validation and test rows of one repeat: X (n, 16 or 64) in [0, 1] and the digit y (n,)."""
    rng = generator(0, "digits", number)
    pixels, y = load_digits(return_X_y=True)
    X = pixels / 16
    if setting.coarse:
        X = X.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(-1, 16)
    order = rng.permutation(len(y))
    train, validation, test = np.split(order, [N_TRAIN, N_TRAIN + N_VALIDATION])
    train = train[(y[train] < 5) | (rng.random(len(train)) < setting.kept)]
    return (X[train], y[train]), (X[validation], y[validation]), (X[test], y[test])


def make_search(number: int, setting: Setting = DEMO) -> MetricSearch:
    """The search of one repeat, not fitted. Weights may depend on the digit alone."""
    return MetricSearch(
        make_model(setting),
        metric=worst_class_error(),
        strategies=["auto", ExampleWeights(embedding="label", batch_size=BATCH_SIZE)],
        n_candidates=N_BATCHES * BATCH_SIZE,
        verbose=False,
        random_state=integer_seed(0, "digits search", number),
    )


def make_model(setting: Setting, class_weight: str | None = None) -> LogisticRegression:
    """The reader, and as scikit-learn balances it."""
    return LogisticRegression(C=setting.C, max_iter=1_000, class_weight=class_weight)


def run_repeat(number: int, setting: Setting = DEMO) -> Repeat:
    """All methods on one split; none of them sees the test rows."""
    train, validation, test = draw_parts(number, setting)
    search = make_search(number, setting)
    rows = prepare(search.settings, Rows(*train), Rows(*validation), Rows(*test))
    (unweighted,), (tuned,) = choices_of_all([rows], (UNWEIGHTED, TUNED)).values()
    search.fit(*train, validation=validation)
    both = (np.concatenate([train[0], validation[0]]), np.concatenate([train[1], validation[1]]))
    plain, balanced = make_model(setting).fit(*train), make_model(setting, "balanced").fit(*train)
    worst = {
        UNWEIGHTED: unweighted.test,
        UNWEIGHTED + BOTH: error_by_digit(make_model(setting).fit(*both), test).max(),
        BALANCED: error_by_digit(balanced, test).max(),
        BALANCED + BOTH: error_by_digit(make_model(setting, "balanced").fit(*both), test).max(),
        DECISIONS_TUNED: tuned.test,
        MOEW: search.metric_value(*test),
    }
    before, after = error_by_digit(plain, test), error_by_digit(search, test)
    return Repeat({name: float(value) for name, value in worst.items()}, search.selected_, before, after)


def error_by_digit(model: LogisticRegression | MetricSearch, rows: DrawnRows) -> FloatArray:
    """The share of each digit's rows (10,) that the model reads as another digit."""
    wrong = model.predict(rows[0]) != rows[1]
    return np.array([wrong[rows[1] == digit].mean() for digit in range(10)])


def run_repeats(
    repeats: int,
    n_jobs: int = 1,
    on_repeat: Callable[[int], None] | None = None,
    setting: Setting = DEMO,
) -> list[Repeat]:
    """All repeats; each depends on its number only. `on_repeat` is told after each how many are done."""
    jobs = (delayed(run_repeat)(number, setting) for number in range(repeats))
    done: list[Repeat] = []
    for repeat in Parallel(n_jobs=n_jobs, return_as="generator")(jobs):
        done.append(repeat)
        if on_repeat is not None:
            on_repeat(len(done))
    return done


def table(repeats: Sequence[Repeat]) -> str:
    """The worst digit's error by method, and moew against each, with 95 % margins over the repeats."""
    values = by_method(repeats)
    width = max(map(len, values))
    n_test = len(draw_parts(0)[2][1])
    lines = [
        f"Worst digit's error on {n_test} test rows that nothing was chosen on, {len(repeats)} repeats "
        "(lower is better; ± 95 %)",
        f"{'':{width}}  {'error':>13}  moew is lower by",
    ]
    for name, errors in values.items():
        gain = errors - values[MOEW]
        ahead = f"{gain.mean():.3f} ± {margin(gain):.3f}, in {int((gain > 0).sum())} of {len(gain)}"
        end = f"  {ahead}" if name != MOEW else ""
        lines.append(f"{name:{width}}  {errors.mean():.3f} ± {margin(errors):.3f}{end}")
    strategies = Counter(repeat.chosen for repeat in repeats).most_common()
    lines.append("moew selected: " + "; ".join(f"{times} × {strategy}" for strategy, times in strategies))
    return "\n".join(lines)


def by_method(repeats: Sequence[Repeat]) -> dict[str, FloatArray]:
    """The worst digit's error (repeats,) of each method."""
    return {name: np.array([repeat.worst[name] for repeat in repeats]) for name in repeats[0].worst}


def write_results(repeats: Sequence[Repeat], folder: Path) -> tuple[Path, Path]:
    """Write the numbers of all repeats and the picture; where they are."""
    numbers, picture = folder / "digits.csv", folder / "digits.png"
    write_values(numbers, [("digits", by_method(repeats))])
    draw_picture(repeats, picture)
    return numbers, picture


def draw_picture(repeats: Sequence[Repeat], path: Path) -> None:
    """Before and after: the error of each digit, and the worst one's by method with its margin."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    grey, orange = "#8a8a8a", "#D55E00"
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(10, 3.6), layout="constrained", width_ratios=(1.15, 1)
    )
    digits = np.arange(10)
    for name, side, colour in ((UNWEIGHTED, -0.2, grey), (MOEW, 0.2, orange)):
        errors = np.mean([getattr(repeat, name) for repeat in repeats], axis=0)
        left.bar(digits + side, errors, 0.4, color=colour, label=name)
    left.set(xticks=digits, xlabel="digit", ylabel="share misread", ylim=(0, 1))
    left.set_title("Each digit, before and after", fontsize=11)
    left.legend(frameon=False, loc="upper left")
    names = {name: name.replace(BOTH, ",\nvalidation rows, too") for name in repeats[0].worst}
    for place, (name, errors) in enumerate(by_method(repeats).items()):
        colour = orange if name == MOEW else grey
        right.errorbar(errors.mean(), place, xerr=margin(errors), fmt="o", color=colour, capsize=3)
        right.annotate(
            f"{errors.mean():.2f}", (errors.mean(), place), (0, 7), textcoords="offset points", ha="center"
        )
    right.set(
        yticks=range(len(names)),
        yticklabels=list(names.values()),
        xlim=(0, 1.05),
        ylim=(len(names) - 0.5, -0.7),
    )
    right.set_xlabel("worst digit's error, with its 95 % margin")
    right.set_title(f"The number that counts, {len(repeats)} repeats", fontsize=11)
    for axis in (left, right):
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(axis="y" if axis is left else "x", alpha=0.25)
        axis.set_axisbelow(True)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110, facecolor="white")
    plt.close(figure)
