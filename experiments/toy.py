"""Figure 1, as `python -m experiments demo figure-1` runs it, also with networks and with random alphas."""

from __future__ import annotations

from experiments._experiment import Options, Run
from experiments.figure_1 import Figure1Settings, run_figure_1


def main(options: Options, model: str = "logistic", sampler: str = "gp_bucb") -> str:
    """Run or continue, and return the table; the figure and raw numbers go to the folder."""
    o = options
    this = Run("toy", o, model=model, sampler=sampler)
    settings = Figure1Settings(o.seed, model, sampler, o.steps, o.device, o.precision)
    tick = this.tick(f"{model} {sampler}", o.repeats, "repeat")
    return run_figure_1(this.folder, o.repeats, settings, n_jobs=o.n_jobs, on_repeat=tick)
