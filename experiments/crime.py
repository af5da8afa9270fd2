"""Tables 1 and 2: accuracy and fairness of a linear classifier of communities with much violent crime.

The groups are quartiles of the share of white people. Vanilla: one threshold, with the best training
accuracy; the search minimises the violation, the gap between the groups' false-positive rates. Post-shift: a
threshold for each group; the search maximises accuracy. Settings that the paper leaves open are the authors':
93 features (the paper says 95), so an autoencoder 94-10-4-10-94. As π the shifted study takes the ratio of
the shares of large communities, for Shimodaira and MOEW (one variant uses p_V(y) / p_T(y), as the text says).

Every repeat has its own split. The paper's repeats cannot have had: over random splits of 500 test rows the
accuracy alone has a margin of 0.2 at 100 repeats, and the paper's is 0.07. So the paper's figures are those
of one split, and its margins show only the randomness of training; a verdict on one of our means says little.

`VARIANTS` are other readings of what was done, some thought of before and some after seeing results;
docs/experiments/crime.md has all of them. In short:

- No split has a mean FPR violation of 79 with any single threshold, and within a split it varies by 2 to 5
  points; the paper's margins are standard deviations of 12 (uniform) and 24 (MOEW). The share of wrong ones
  among the positive decisions (FDR) varies that much, because the whitest group has hardly any. But the
  released script counts FPR, and Table 2's margins are like those of FPR.
- With the threshold of the best training accuracy, MOEW gains little at radius 1: refitting the threshold
  undoes what weights do to the share of positives. With the model's own threshold, 0, the violation falls by
  14 points over splits, and on one split by 22 at no loss of accuracy: the paper's effect (21), but from
  56 and not from 79.
- Nothing that was tried explains the low accuracy of Table 2's post-shift, 72.
- A group with all scores above its threshold, of which the released script counts 30 %, did not occur among
  100 models with uniform weights.

The IID study has variants with π(y) = p_V(y) / p_T(y), too; what they are compared with is π(y) alone. The
searches of the paper's settings and of "moew" also choose by the posterior mean of their Gaussian process
(`_posterior_choice`), beside the best validation value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from experiments._crime_settings import PAPER, VARIANTS, settings
from experiments._crime_study import Searches
from experiments._crime_tables import draw, file_order_table, main_tables, spread_table, variant_table
from experiments._experiment import Options, Run, Scores
from experiments.datasets import load_crime

FIXED, MOEW = "fixed weights", "moew"


def row(study: str, approach: str, arm: str) -> str:
    """The name of an arm of one of the main tables in the file of raw numbers."""
    return f"{study} {approach}: {arm}"


def variant_row(variant: str, weights: str) -> str:
    """The name of a variant's fixed weights or MOEW in the file of raw numbers."""
    return f"variant {variant}: {weights}"


def all_rows(searches: Searches) -> dict[str, Callable[[], Scores]]:
    """The scores of every row by its name, to be computed when called."""
    repeats, few = searches.this.options.repeats, searches.this.options.second_repeats
    rows: dict[str, Callable[[], Scores]] = {
        row(*key, name): partial(searches.result, setting, repeats)
        for key in PAPER
        for name, setting in settings(*key).items()
    }
    for name, setting in VARIANTS.items():
        rows[variant_row(name, FIXED)] = partial(searches.result, setting.fixed, few, aim=setting)
        rows[variant_row(name, MOEW)] = partial(searches.result, setting, few)
    return rows


def report(this: Run, searches: Searches) -> str:
    """All tables; raw numbers and the figure go to the folder."""
    rows = all_rows(searches)
    this.check_only(list(rows))
    values = this.write_values([(name, make()) for name, make in rows.items() if this.wants(name)])
    results = {
        key: {name: values[row(*key, name)] for name in settings(*key) if row(*key, name) in values}
        for key in PAPER
    }
    variants = {
        name: (setting, values[variant_row(name, FIXED)], values[variant_row(name, MOEW)])
        for name, setting in VARIANTS.items()
        if {variant_row(name, FIXED), variant_row(name, MOEW)} <= values.keys()
    }
    draw(this.folder / "crime.png", results)
    texts = [main_tables(results), variant_table(variants)]
    return "\n".join([*texts, this.remarks(lambda: all_models(this, searches))])


def all_models(this: Run, searches: Searches) -> str:
    """What models with uniform weights give, all of them and not only the chosen ones."""
    spread = spread_table(searches, this.options.repeats)
    return "\n".join([spread, "", file_order_table(searches, this.options.second_repeats)])


def main(options: Options) -> str:
    """Run or continue, and return the tables; the figure and raw numbers go to the folder."""
    this = Run("crime", options)
    chosen_later = {
        replace(setting, choice="validation")
        for key in PAPER
        for name, setting in settings(*key).items()
        if setting.choice != "validation" and this.wants(row(*key, name))
    }
    data = {name: load_crime(name) for name in ("script", "complete")}
    return this.conclude(report(this, Searches(this, data, chosen_later=chosen_later)))
