"""How good is the best alpha after so many trials, for every sampler?

    python benchmarks/samplers.py run --jobs 2 [--repeats 20] [--samplers TEXT] [--problems TEXT]
    python benchmarks/samplers.py botorch --repeats 5
    python benchmarks/samplers.py table

200 trials in batches of 20, the first one random and the same for all. Functions: three synthetic ones in 2,
4, 8, 16 and 30 dimensions with noise, whose highest value is known, and six made from tables of real trained
alphas (benchmarks/recorded_searches.py). A sampler sees noisy scores; the value that counts is the function
without noise at the alpha with the best score, and in "by mean" at the alpha with the highest posterior mean
of the default GP. Values are 0 at α = 0 and 1 at the best known. `run` appends a line to curves.csv for each
problem, sampler and repeat, and skips what is there. `botorch` does the same with BoTorch's qLogNEI
(benchmarks/botorch_side.py), in an environment of its own, which it makes once.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # one process per core does the work
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import csv
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import checkout  # noqa: F401  # finds experiments/, beside this folder
import numpy as np
from joblib import Parallel, delayed
from recorded_searches import NAMES
from sampler_functions import Function, functions
from tried_samplers import Modelled

from experiments.samplers import Annealing, DifferentialEvolution, GridSampler, Swarm
from moew.samplers import Ball, GpBucb, RandomSampler
from moew.types import Domain, FloatArray, Sampler, SamplerOfPoints

OUT = Path("docs/results/samplers")
N_TRIALS, BATCH = 200, 20
FIELDS = (
    "problem",
    "sampler",
    "repeat",
    "seconds",
    *(f"after {n}" for n in range(BATCH, N_TRIALS + 1, BATCH)),
)
BY_MEAN = ", by mean"
PAPER, DEFAULT, BOTORCH = "GP-BUCB as in the paper", "GP-BUCB", "BoTorch qLogNEI"


def samplers(function: Function) -> dict[str, Sampler | None]:
    """The samplers by name; None is one that cannot search so many dimensions."""
    variance = function.noise**2
    made: dict[str, Any] = {
        "random": RandomSampler(),
        "grid": GridSampler() if 2**function.n_dims < N_TRIALS else None,
        "annealing": Annealing(),
        "swarm": Swarm(),
        "differential evolution": DifferentialEvolution(),
        PAPER: GpBucb(width="domain", noise=max(variance, 1e-12)),
        DEFAULT: GpBucb(),
        "GP-BUCB, noise known": GpBucb(noise=max(variance, 1e-12)),
        "Matérn": Modelled(),
        "Matérn, p = 90": Modelled((90.0,)),
        "Matérn, p by turns": Modelled((20.0, 68.3, 95.4, 99.7)),
        "Matérn, noisy EI": Modelled(None),
        "Matérn, trust region": Modelled(near=0.5),
    }
    if find_spec("optuna") is not None:
        import optuna

        from experiments.samplers.optuna import OptunaSampler

        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        made |= {
            "Optuna TPE": OptunaSampler(optuna.samplers.TPESampler()),
            "Optuna CMA-ES": OptunaSampler(optuna.samplers.CmaEsSampler()) if function.n_dims > 1 else None,
            "Optuna QMC": OptunaSampler(optuna.samplers.QMCSampler()),
        }
    return made


def first_batch(function: Function, domain: Domain, rng: np.random.Generator) -> FloatArray:
    """α = 0 and random alphas."""
    return np.vstack([np.zeros(function.n_dims), domain.sample(rng, BATCH - 1)])


Propose = Callable[[FloatArray, FloatArray, int], FloatArray]  # known alphas, scores, batch → next alphas


def curve(
    function: Function, propose: Propose, repeat: int, *, random_first: bool = True
) -> tuple[list[float], list[float], float]:
    """The value of the best alpha by score after each batch, that of the best by posterior mean, and the
    seconds that the sampler took for a batch."""
    rng = np.random.default_rng(repeat)
    domain = Ball(function.n_dims, function.radius)
    alphas, scores = np.empty((0, function.n_dims)), np.empty(0)
    by_score, by_mean, seconds = [], [], 0.0
    for batch in range(N_TRIALS // BATCH):
        if batch == 0 and random_first:
            asked = first_batch(function, domain, rng)
        else:
            begun = time.perf_counter()
            asked = propose(alphas, scores, batch)
            seconds += time.perf_counter() - begun
        alphas = np.vstack([alphas, asked])
        noise = function.noise * np.random.default_rng([repeat, batch]).standard_normal(len(asked))
        scores = np.append(scores, function.value(asked) + noise)
        values = function.value(alphas)
        by_score.append(float(values[scores.argmax()]))
        by_mean.append(float(values[GpBucb().model(alphas, scores, domain).predict(alphas)[0].argmax()]))
    return by_score, by_mean, seconds / (N_TRIALS // BATCH - random_first)


def run_one(problem: str, name: str, repeat: int, path: Path) -> None:
    """Search once and append the two curves."""
    function = functions()[problem]
    sampler = samplers(function)[name]
    assert sampler is not None
    domain = Ball(function.n_dims, function.radius)
    of_points = isinstance(sampler, SamplerOfPoints)
    if isinstance(sampler, SamplerOfPoints):
        sampler = sampler.for_budget(domain, N_TRIALS)

    def propose(alphas: FloatArray, scores: FloatArray, batch: int) -> FloatArray:
        rng = np.random.default_rng([repeat, batch, 1])
        none = np.empty((0, function.n_dims))
        return sampler.propose(alphas, scores, pending=none, k=BATCH, domain=domain, rng=rng)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        by_score, by_mean, seconds = curve(function, propose, repeat, random_first=not of_points)
    append(path, function.name, name, repeat, seconds, by_score)
    if name == DEFAULT:
        append(path, function.name, name + BY_MEAN, repeat, seconds, by_mean)


def append(path: Path, problem: str, sampler: str, repeat: int, seconds: float, values: list[float]) -> None:
    """Add a line; several processes may do so at a time."""
    cells = [problem, sampler, repeat, f"{seconds:.4g}", *(f"{value:.6g}" for value in values)]
    with path.open("a", newline="") as file:
        csv.writer(file).writerow(cells)


def start_file(path: Path) -> set[tuple[str, str, int]]:
    """Make the file if there is none; returns what it holds."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(",".join(FIELDS) + "\n")
    return {(line["problem"], line["sampler"], int(line["repeat"])) for line in read(path)}


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def chosen(options: argparse.Namespace) -> Iterable[tuple[str, str, int]]:
    """All that is to be run: repeat by repeat, so that an interrupted run has whole repeats."""
    made = functions()
    for repeat in range(options.repeats):
        for function in made.values():
            if options.problems in function.name:
                for name, sampler in samplers(function).items():
                    if options.samplers in name and sampler is not None:
                        yield function.name, name, repeat


def run(options: argparse.Namespace) -> None:
    path = options.out / "curves.csv"
    there = start_file(path)
    wanted = [one for one in chosen(options) if one not in there]
    jobs = (delayed(run_one)(*one, path) for one in wanted)
    for done, _ in enumerate(Parallel(options.jobs, return_as="generator_unordered")(jobs), 1):
        if done % 50 == 0 or done == len(wanted):
            print(f"{done} of {len(wanted)}", flush=True)


def botorch(options: argparse.Namespace) -> None:
    """The same for BoTorch, which runs in a process with its own packages and is asked for batches."""
    from botorch_client import BoTorchSide

    path = options.out / "curves.csv"
    there = start_file(path)
    with BoTorchSide() as side:
        for repeat in range(options.repeats):
            for function in functions().values():
                if options.problems in function.name and (function.name, BOTORCH, repeat) not in there:
                    ours: list[float] = []
                    propose = partial(_ask_both, side, function, repeat, ours)
                    by_score, _, seconds = curve(function, propose, repeat)
                    seconds -= sum(ours) / len(ours)
                    append(path, function.name, BOTORCH, repeat, seconds, by_score)
                    times = seconds * len(ours) / sum(ours)
                    said = f"{seconds:.1f} s a batch, {times:.0f} times GP-BUCB's on the same trials"
                    print(f"{function.name}, repeat {repeat}: {said}", flush=True)


def _ask_both(
    side: Any,
    function: Function,
    repeat: int,
    ours: list[float],
    alphas: FloatArray,
    scores: FloatArray,
    batch: int,
) -> FloatArray:
    """BoTorch's next alphas; GP-BUCB is asked for as many, and the seconds it took are appended to `ours`."""
    begun = time.perf_counter()
    GpBucb().propose(
        alphas,
        scores,
        pending=np.empty((0, function.n_dims)),
        k=BATCH,
        domain=Ball(function.n_dims, function.radius),
        rng=np.random.default_rng(0),
    )
    ours.append(time.perf_counter() - begun)
    found: FloatArray = side.propose(alphas, scores, batch, radius=function.radius, k=BATCH, seed=repeat)
    return found


def table(options: argparse.Namespace) -> str:
    """The tables, in Markdown."""
    path = options.out / "curves.csv"
    lines = read(path) if path.exists() else []
    if not any(line["sampler"] == PAPER for line in lines):
        raise SystemExit(
            f"{path} has no searches as in the paper; run `python benchmarks/samplers.py run` first"
        )
    curves: dict[tuple[str, str], dict[int, FloatArray]] = defaultdict(dict)
    seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
    for line in lines:
        key = line["problem"], line["sampler"]
        curves[key][int(line["repeat"])] = np.array([float(line[name]) for name in FIELDS[4:]])
        seconds[key].append(float(line["seconds"]))
    made = functions()
    problems = [name for name in made if (name, PAPER) in curves]
    known = [one for name in samplers(made[problems[0]]) for one in (name, name + BY_MEAN)] + [BOTORCH]
    names = [name for name in known if any(there == name for _, there in curves)]
    scaled: dict[tuple[str, str], FloatArray] = {}
    for problem in problems:
        function = made[problem]
        zero = float(function.value(np.zeros((1, function.n_dims)))[0])
        seen = max(
            float(np.max(one)) for (p, _), many in curves.items() if p == problem for one in many.values()
        )
        top = seen if function.highest is None else function.highest
        for name in names:
            if (problem, name) in curves:
                many = [curves[problem, name][repeat] for repeat in sorted(curves[problem, name])]
                scaled[problem, name] = (np.stack(many) - zero) / (top - zero)
    parts = []
    for title, group in (
        ("Recorded searches", [p for p in problems if p in NAMES]),
        ("Synthetic functions", [p for p in problems if p not in NAMES]),
    ):
        if group:
            parts += [
                f"**{title}: mean over {len(group)} functions**",
                _summary(group, names, scaled, seconds),
            ]
            parts += [f"**{title}: after 200 trials, one by one**", _one_by_one(group, names, scaled)]
    text = "\n\n".join(parts)
    (options.out / "samplers.txt").write_text(text + "\n")
    return text


def _margin(values: FloatArray) -> float:
    from moew._util.margins import margin

    return float(margin(values)) if len(values) > 1 else float("nan")


def trials_to_reach(mean_curve: FloatArray, level: float) -> float:
    """How many trials the curve needs for the level, between two batches by a straight line; ∞ if never."""
    reached = np.flatnonzero(mean_curve >= level)
    if len(reached) == 0:
        return float("inf")
    i = int(reached[0])
    if i == 0:
        return float(BATCH)
    before, after = mean_curve[i - 1], mean_curve[i]
    return BATCH * (i + float((level - before) / (after - before)))


def _summary(
    group: list[str],
    names: list[str],
    scaled: dict[tuple[str, str], FloatArray],
    seconds: dict[tuple[str, str], list[float]],
) -> str:
    rows = [
        "| sampler | functions | repeats | after 40 | 80 | 120 | 200 | 200, less the paper's | trials for "
        "the paper's 200: median | seconds a batch: median |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name in names:
        some = [p for p in group if (p, name) in scaled]
        if not some:
            continue
        n = min(len(scaled[p, name]) for p in some)
        n_both = min(n, *(len(scaled[p, PAPER]) for p in some))
        mean = np.mean([scaled[p, name][:n] for p in some], axis=0)  # (repeats, batches)
        gaps = np.mean([scaled[p, name][:n_both, -1] - scaled[p, PAPER][:n_both, -1] for p in some], axis=0)
        needed = np.median(
            [trials_to_reach(scaled[p, name].mean(axis=0), scaled[p, PAPER].mean(axis=0)[-1]) for p in some]
        )
        at = [f"{mean[:, n_trials // BATCH - 1].mean():.3f}" for n_trials in (40, 80, 120, 200)]
        reach = f"{needed:.0f}" if np.isfinite(needed) else "not reached"
        took = np.median([np.mean(seconds[p, name]) for p in some])
        rows.append(
            f"| {name} | {len(some)} | {n} | {' | '.join(at)} | {gaps.mean():+.3f} ± {_margin(gaps):.3f} | "
            f"{reach} | {took:.2g} |"
        )
    return "\n".join(rows)


def _one_by_one(group: list[str], names: list[str], scaled: dict[tuple[str, str], FloatArray]) -> str:
    rows = [f"| sampler | {' | '.join(group)} |", f"|---|{'---|' * len(group)}"]
    for name in names:
        cells = []
        for problem in group:
            last = scaled[problem, name][:, -1] if (problem, name) in scaled else None
            cells.append("" if last is None else f"{last.mean():.2f} ± {_margin(last):.2f}")
        if any(cells):
            rows.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=("run", "botorch", "table"))
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--samplers", default="", help="only those with this text in their name")
    parser.add_argument("--problems", default="", help="only those with this text in their name")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    if options.command == "run":
        run(options)
    if options.command == "botorch":
        botorch(options)
    print(table(options))


if __name__ == "__main__":
    main()
