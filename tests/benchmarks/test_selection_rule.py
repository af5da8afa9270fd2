"""The rules of benchmarks/selection_rule.py, on fits whose best selection is known."""

import numpy as np
import pytest
from benchmark_modules import BENCHMARKS, importable
from hypothesis import given
from hypothesis import strategies as st

from moew.search._choices import Choice
from moew.search._honest_score import StrategyScore, decide, gain_error
from moew.search._strategies import Variant

with importable():
    import selection_rule as rules


NAMES = ["unweighted", "constant prediction", "tuned decisions", "example weights"]


def fit_of(honest, errors, test=None):
    honest, test = np.array(honest), np.array(honest if test is None else test)
    simple = np.array([name != "example weights" for name in NAMES])
    return rules.Fit("p", NAMES, simple, honest, test, np.asarray(errors))


VALUES = st.lists(st.tuples(st.floats(-1, 1), st.floats(0.01, 0.3)), min_size=4, max_size=4)


@given(made=VALUES)
def test_the_rule_as_it_is_is_that_of_a_fit(made):
    def score(name, honest, moved):
        own = honest + moved * np.tile([1.0, -1.0], 5)
        flat = np.full(10, honest)
        choice = Choice(0, (0,), np.ones(1), None, None)
        return StrategyScore(Variant(name, name != "example weights", None), choice, honest, flat, flat, own)

    scores = [score(name, *one) for name, one in zip(NAMES, made, strict=True)]
    errors = [[gain_error(one, other) for other in scores] for one in scores]
    fit = fit_of([one.honest for one in scores], errors)
    assert NAMES[rules.RULES[rules.AS_IT_IS](fit)] == decide(scores, True).selected.variant.name


def test_losses_are_those_of_the_selected_strategy_in_units_of_the_spread():
    errors = np.full((4, 4), 0.1)
    fits = [fit_of([0.5, 0.2, 0.9, 0.6], errors, [0.5, 0.0, 0.7, 0.8])]
    assert rules.losses(rules.RULES["best honest score"], fits) == pytest.approx(
        0.1 / np.sqrt((0.3**2 + 0.1**2 + 0) / 3)
    )
    assert rules.losses(lambda fit: 3, fits).tolist() == [0.0]


def test_certainty_at_every_step_gives_a_noisy_gain_away():
    fit = fit_of([0.36, 0.1, 0.50, 0.40], np.full((4, 4), 0.15))
    chosen = {name: NAMES[rule(fit)] for name, rule in rules.RULES.items()}
    assert chosen["simplest within 1.96 errors of the best"] == "unweighted"
    assert chosen[rules.AS_IT_IS] == "tuned decisions"


def test_the_table_in_the_docs_is_that_of_the_records():
    lines = rules.table(rules.read(rules.PATH))
    page = (BENCHMARKS.parent / "docs/decisions.md").read_text()
    assert f"{lines[0].split()[0]} fits" in page
    for line in lines[4:]:
        assert line.replace("| -0", "| −0") in page
