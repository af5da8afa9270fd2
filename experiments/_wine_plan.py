"""Which searches the wine experiment runs, and for how many batches."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from experiments._experiment import PI_ALONE, WITH_PI, Scores
from experiments._posterior_choice import ARGMAX, BEST_TRIAL
from moew.samplers import GpBucb

BATCH_SIZE = 20
PAPER_RADIUS, OUR_RADIUS, OUR_DIMS, LONG_DIMS = 5.0, 3.0, 5, 10  # ours: benchmarks.paper_settings wine
ONE_DEVIATION = 68.3
FITTED_SEARCH = GpBucb(width="fit", noise=1e-4, targets="raw")  # the scripts' noise
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
    scaled: bool = False  # whether the model's points are scaled
    few: bool = False  # whether it has fewer repeats
    pi: bool = False  # whether it has the base weights π(y)
    choice: str | None = None  # BEST_TRIAL or ARGMAX of the search `of`
    of: str = ""


@dataclass(frozen=True)
class Plan:
    """What is studied: dimensions d, p = q, and the number of batches B (`long_batches` for uniform weights
    and LONG_DIMS). With the paper's features (`like_paper`) its figures are shown beside ours, and the second
    settings are tried."""

    dims: tuple[int, ...]
    confidences: tuple[float, ...] = ()
    n_batches: int = 10
    long_batches: int = 10
    like_paper: bool = False

    def settings(self) -> list[Setting]:
        """All searches; uniform weights come first, since the noise is estimated from them."""
        ours = partial(Setting, embedding="ours", n_dims=OUR_DIMS, search=GpBucb())
        found = [Setting(UNIFORM)]
        found += [Setting(as_paper(d), "scripts", d) for d in self.dims]
        found += [Setting(with_p(p), "scripts", LONG_DIMS, confidence=p) for p in self.confidences]
        found += [ours(MOEW), Setting(SCALED_UNIFORM, scaled=True), ours(SCALED_MOEW, scaled=True)]
        if self.like_paper:
            few = partial(Setting, n_dims=8, few=True)
            found.append(few(f"{as_paper(8)}, hinge loss (text)", "text"))
            found.append(few(f"{as_paper(8)}, fitted GP, noise 1e-4", "scripts", search=FITTED_SEARCH))
            found.append(few(PI_ALONE, pi=True))
            found.append(few(PAPER_WITH_PI, "scripts", pi=True))
            found += [
                Setting(f"{of}, {choice}", choice=choice, of=of)
                for of in (as_paper(8), MOEW)
                for choice in (BEST_TRIAL, ARGMAX)
            ]
        return found

    def batches(self, setting: str) -> list[int]:
        """The numbers of batches B after which the choice of a search is reported; the last is its total."""
        if setting not in (UNIFORM, as_paper(LONG_DIMS)):
            return [self.n_batches]
        step = max(1, self.n_batches // 2)
        return list(range(step, self.long_batches + 1, step))


def as_paper(d: int) -> str:
    """The name of the paper's setting with d dimensions."""
    return f"d={d} as in the paper"


def with_p(p: float) -> str:
    """The name of the paper's setting with p = q."""
    return f"p=q={p:g} as in the paper"


UNIFORM, MOEW = "uniform", "moew"
PAPER_WITH_PI = f"{as_paper(8)}, {WITH_PI}"
SCALED_UNIFORM, SCALED_MOEW = f"{UNIFORM}, scaled points", f"{MOEW}, scaled points"
WHOLE = Plan(tuple(range(2, 31, 2)), tuple(PAPER_CONFIDENCE), long_batches=50, like_paper=True)
PART = Plan((2, 8, 10, 20))  # of "wine-full"
Picks = dict[tuple[str, int], Scores]  # by setting and B
