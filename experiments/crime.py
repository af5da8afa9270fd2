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
docs/results.md has all of them. In short:

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
"""

from __future__ import annotations

from experiments._crime_settings import PAPER, VARIANTS, settings
from experiments._crime_study import Searches, Setting
from experiments._crime_tables import (
    Results,
    Scores,
    draw,
    file_order_table,
    main_tables,
    spread_table,
    variant_table,
)
from experiments._experiment import Options, Run
from moew.datasets import load_crime


def main_results(searches: Searches, repeats: int) -> Results:
    """The scores of all arms of both tables."""
    return {
        key: {name: searches.result(setting, repeats) for name, setting in settings(*key).items()}
        for key in PAPER
    }


def variant_results(searches: Searches, repeats: int) -> dict[str, tuple[Setting, Scores, Scores]]:
    """For each variant: its setting, the scores of fixed weights, and those of MOEW."""
    return {
        name: (s, searches.result(s.fixed, repeats, aim=s), searches.result(s, repeats))
        for name, s in VARIANTS.items()
    }


def report(this: Run, searches: Searches) -> str:
    """All tables; raw numbers and the figure go to the folder."""
    repeats, few = this.options.repeats, this.options.second_repeats
    results = main_results(searches, repeats)
    variants = variant_results(searches, few)
    rows = [(f"{s} {a}: {name}", v) for (s, a), arms in results.items() for name, v in arms.items()]
    for name, (_, *arms) in variants.items():
        rows += [(f"variant {name}: {w}", v) for w, v in zip(("fixed weights", "moew"), arms, strict=True)]
    this.write_values(rows)
    draw(this.folder / "crime.png", results)
    texts = [main_tables(results), variant_table(variants), spread_table(searches, repeats)]
    return "\n".join([*texts, "", file_order_table(searches, few)])


def main(options: Options) -> str:
    """Run or continue, and return the tables; the figure and raw numbers go to the folder."""
    this = Run("crime", options)
    return this.conclude(
        report(this, Searches(this, {name: load_crime(name) for name in ("script", "complete")}))
    )
