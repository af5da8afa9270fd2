"""Which strategy is selected, from hand-made scores of the strategies."""

import math
from dataclasses import replace

import numpy as np
import pytest
from choosers import chooser_of
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from moew import MetricSearch
from moew._util.margins import TWO_SIDED
from moew.data._splits import strata_of
from moew.search._choices import Choice, Chooser
from moew.search._honest_score import (
    AHEAD,
    AS_GOOD,
    LEADS,
    NEAR,
    SIMPLEST,
    StrategyScore,
    close_to,
    decide,
    gain_error,
    score_strategies,
)
from moew.search._strategies import CONSTANT, UNWEIGHTED, WEIGHTS, Variant, list_variants, strategy_names

PAIRS = 5


def score(name, honest, *, moved=0.0, optimism=0.0, simple=True):
    """A strategy of this honest value, which is higher by `moved` on one half and lower on the other."""
    best = honest + optimism
    moves = moved * np.tile([1.0, -1.0], PAIRS)
    own = best + moves
    strategy = Variant(name, simple, lambda rows: None)
    return StrategyScore(strategy, Choice(0, (0,), np.ones(1), None, None), best, own - optimism, own, own)


def learned(honest, **more):
    return score("example weights", honest, simple=False, **more)


def chosen(*scores, selects=True):
    return decide(scores, selects).selected.variant.name


def test_the_scores_of_a_strategy_are_what_their_names_say():
    own = np.array([0.7, 0.5, 0.8, 0.4])
    crossed = np.array([0.6, 0.5, 0.6, 0.4])
    one = StrategyScore(Variant("a", True, None), None, 0.65, crossed, own, own)
    assert one.optimism == pytest.approx(0.075)
    assert one.size_bias == pytest.approx(0.6 - 0.65)
    assert one.honest == pytest.approx(0.65 - 0.075 + 0.05)
    assert one.error == pytest.approx(own.std())
    moves = np.array([0.01, 0.03])  # what other halves chose tells the size's bias, where it is known
    assert replace(one, moves=moves).size_bias == pytest.approx(0.02)
    assert replace(one, moves=moves).honest == pytest.approx(0.65 - 0.075 - 0.02)


def test_less_than_half_of_the_halves_may_be_undefined():
    def of(values):
        values = np.array(values)
        return StrategyScore(Variant("a", True, None), None, 0.5, values, values, values)

    assert of([0.5, math.nan, 0.5, 0.5]).honest == pytest.approx(0.5)
    assert math.isnan(of([0.5, math.nan, 0.5, math.nan]).honest)


def test_without_honest_values_a_strategy_with_a_value_goes_before_one_without():
    no_value, value = learned(math.nan), replace(learned(math.nan), apparent=0.7)
    assert decide([no_value, value], False).selected is value
    assert decide([no_value, no_value], False).selected is no_value


def test_equal_strategies_are_decided_for_the_simplest():
    assert chosen(score("a", 0.5), score("b", 0.5), learned(0.5)) == "a"


def test_a_simpler_strategy_is_taken_if_it_is_as_good():
    better = score("b", 0.60, moved=0.02)
    error = gain_error(score("a", 0.5), better)
    assert error == pytest.approx(0.02)
    near, far = 0.60 - 0.99 * NEAR * error, 0.60 - 1.01 * NEAR * error
    assert chosen(score("a", near), better, learned(0.5)) == "a"
    assert chosen(score("a", far), better, learned(0.5)) == "b"


def test_a_lead_that_is_within_chance_is_called_that():
    simple, ahead = score("a", 0.6), TWO_SIDED * 0.02
    within, beyond = (learned(0.6 + share * ahead, moved=0.02) for share in (0.99, 1.01))
    for weights, reason in ((within, LEADS), (beyond, AHEAD)):
        verdict = decide([simple, weights], True)
        assert verdict.selected is weights and verdict.reason == reason
    assert decide([simple, learned(0.5, moved=0.02)], True).reason == SIMPLEST


def test_ahead_beyond_chance_is_ahead_of_every_simpler_strategy():
    simplest_strategy = score("a", 0.60)
    noisy = score("b", 0.5, moved=0.5)  # far behind, but nobody knows how far
    weights = learned(0.7, moved=0.01)
    assert decide([simplest_strategy, weights], True).reason == AHEAD
    assert decide([simplest_strategy, noisy, weights], True).reason == LEADS
    verdict = decide([simplest_strategy, learned(0.604, moved=0.02)], True)
    assert verdict.selected is simplest_strategy and verdict.reason == AS_GOOD


def test_what_is_said_to_be_ahead_beyond_chance_has_a_gain_beyond_chance():
    """The gain is corrected for the choice among the strategies: by that score what is selected must be
    ahead."""
    plain, other = score(UNWEIGHTED, 0.60), score("b", 0.62, moved=-0.02)
    weights = learned(0.63, moved=0.015)
    assert weights.honest - plain.honest > TWO_SIDED * gain_error(weights, plain)
    alone, among = decide([plain, learned(0.63, moved=0.015)], True), decide([plain, other, weights], True)
    assert alone.selected.variant.name == WEIGHTS and among.selected is weights
    assert among.honest < alone.honest  # on every second half the other is better
    assert among.honest - plain.honest < TWO_SIDED * gain_error(weights, plain)
    assert among.reason == LEADS


def test_large_but_noisy_gains_are_not_given_away():
    """F1 0.36 of the unweighted model, 0.50 with a tuned threshold, from 20 positives."""
    plain, tuned = score(UNWEIGHTED, 0.36, moved=0.05), score("tuned decisions", 0.50, moved=-0.10)
    assert 0.5 < 0.14 / gain_error(plain, tuned) < 1
    assert chosen(plain, tuned, learned(0.40, moved=0.2)) == "tuned decisions"


def test_equal_values_go_to_the_simpler_also_where_no_error_is_known():
    unknown = [replace(score(name, 0.7), own=np.full(2 * PAIRS, math.nan)) for name in "ab"]
    unknown = [replace(one, moves=np.zeros(2)) for one in unknown]
    assert math.isnan(gain_error(*unknown))
    assert decide([unknown[0], unknown[1], learned(0.1)], True).selected is unknown[0]
    later = replace(unknown[1], apparent=0.7 * (1 + 1e-15))  # but for rounding
    assert decide([unknown[0], later, learned(0.1)], True).selected is unknown[0]


def test_a_constant_must_be_ahead_of_the_unweighted_model_beyond_chance():
    plain = score(UNWEIGHTED, 0.60)
    small, large = (score(CONSTANT, 0.60 + z * 0.02, moved=0.02) for z in (1.9, 2.0))
    assert chosen(plain, small, learned(0.1)) == UNWEIGHTED
    assert chosen(plain, large, learned(0.1)) == CONSTANT
    assert chosen(small, learned(0.1)) == CONSTANT  # without an unweighted model


def test_a_constant_that_earns_nothing_does_not_go_before_a_model_that_earns():
    earns = score("tuned decisions", 0.91, moved=2.0)
    assert (
        chosen(score(UNWEIGHTED, 0.05, moved=1.0), score(CONSTANT, 0.0), earns, learned(0.0))
        == earns.variant.name
    )
    undefined = [nan(UNWEIGHTED), score(CONSTANT, 0.0), nan("tuned decisions"), nan("example weights", False)]
    assert chosen(*undefined) == UNWEIGHTED  # that its value is known on all halves is no merit


def test_the_strategy_that_might_as_well_have_been_selected_is_known():
    first, second = score("a", 0.60), score("b", 0.59, moved=0.02)
    strategies = [first, second, learned(0.2)]
    assert close_to(strategies, first) is second
    assert close_to([first, learned(0.2, moved=0.02)], first) is None  # beyond chance
    assert (
        close_to([first, replace(first, variant=Variant("c", True, None))], first) is None
    )  # it chose the same
    assert close_to([nan("a"), first], first) is None


def test_without_other_strategies_example_weights_are_selected_whatever_they_score():
    verdict = decide([score("a", 0.9), learned(0.1)], False)
    assert verdict.selected.variant.name == "example weights"
    assert verdict.reason == "no other strategy was asked for"
    assert verdict.honest == pytest.approx(0.1)
    tuned = score("example weights, tuned", 0.2, simple=False)
    assert chosen(score("a", 0.9), learned(0.1), tuned, selects=False) == "example weights, tuned"


def nan(name, simple=True):
    nans = np.full(2 * PAIRS, math.nan)
    return StrategyScore(Variant(name, simple, None), None, 0.99, nans, nans, nans)


def test_a_strategy_without_an_honest_score_never_wins_against_one_with():
    assert chosen(nan("a"), score("b", 0.1), nan("example weights", False)) == "b"
    assert chosen(score("a", 0.1), nan("b"), learned(0.05)) == "a"
    assert chosen(score("a", 0.1), nan("b"), learned(0.9)) == "example weights"
    undefined = [nan("a"), nan("example weights", False)]
    assert chosen(*undefined) == "a"
    assert math.isnan(decide(undefined, True).honest)
    tuned = score("example weights, tuned", 0.9, simple=False)
    assert chosen(score("a", 0.1), nan("example weights", False), tuned) == "example weights, tuned"


def test_a_strategy_differs_from_itself_by_nothing():
    one = score("a", 0.5, moved=0.1, optimism=0.3)
    assert gain_error(one, one) == 0.0
    assert math.isnan(gain_error(one, nan("b")))


@given(shared=st.floats(0, 1), own=st.floats(0, 1), optimism=st.floats(-1, 1))
def test_errors_that_two_strategies_share_cancel(shared, own, optimism):
    one = score("a", 0.5, moved=shared)
    other = score("b", 0.7, moved=shared + own, optimism=optimism)
    assert gain_error(one, other) == pytest.approx(math.hypot(own, optimism), abs=1e-9)
    assert gain_error(one, other) == gain_error(other, one)


SCORES = st.lists(st.tuples(st.floats(-1, 1), st.floats(0, 0.3), st.floats(0, 0.3)), min_size=2, max_size=5)


@given(made=SCORES)
def test_what_is_selected_keeps_the_rule_s_word(made):
    strategies = [score(str(k), h, moved=m, optimism=o) for k, (h, m, o) in enumerate(made[:-1])]
    strategies.append(learned(made[-1][0], moved=made[-1][1], optimism=made[-1][2]))
    verdict = decide(strategies, True)
    best = max(strategies, key=lambda strategy: strategy.honest)
    assert best.honest - verdict.selected.honest <= NEAR * gain_error(best, verdict.selected) + 1e-9
    simpler = strategies[: strategies.index(verdict.selected)]
    for other in simpler:
        assert best.honest - other.honest > NEAR * gain_error(best, other)
    ahead = [
        verdict.honest - other.honest > TWO_SIDED * gain_error(verdict.selected, other) for other in simpler
    ]
    assert (verdict.reason == AHEAD) is (verdict.selected is best and bool(simpler) and all(ahead))


def test_the_honest_value_counts_the_choice_itself():
    # Two strategies, each the better on every second half by chance: choosing between them flatters.
    moves = 0.1 * np.tile([1.0, -1.0], PAIRS)
    one, other = (
        StrategyScore(Variant(name, True, None), None, 0.5, 0.5 + m, 0.5 + m, 0.5 + m)
        for name, m in (("a", moves), ("b", -moves))
    )
    verdict = decide([one, other, learned(0.0)], True)
    assert one.honest == other.honest == pytest.approx(0.5)
    # On each half the selection rule takes the strategy that is better there, which is the worse on the other
    # half.
    assert verdict.honest == pytest.approx(0.4)
    assert verdict.optimism == pytest.approx(0.1)


def test_with_one_strategy_that_is_always_best_the_selection_adds_nothing():
    best = score("b", 0.8, moved=0.01, optimism=0.05)
    verdict = decide([score("a", 0.2), best, learned(0.1)], True)
    assert verdict.selected is best
    assert verdict.honest == pytest.approx(best.honest)
    assert verdict.optimism == pytest.approx(0.05)


@pytest.mark.heavy
def test_a_tuned_threshold_is_selected_for_a_rare_class():
    """300 rows with about 20 positives, evaluated by F1: a noisy gain, and nothing beyond chance, but
    large."""
    chosen = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((300, 5))
        y = (rng.random(300) < expit(X @ [1.5, -1.0, 0.5, 0.0, 0.0] - 4.0)).astype(int)
        settings = {"n_candidates": 10, "batch_size": 10, "random_state": seed}
        chosen.append(
            MetricSearch.from_settings(LogisticRegression(), metric="f1", **settings).fit(X, y).selected_
        )
    assert chosen.count("unweighted") <= 2
    assert "constant prediction" not in chosen


def scored(chooser, candidates, effort_seed=0, finalists=None):
    strategies = list_variants(chooser, candidates, strategy_names(), averages=True)
    same = finalists or (lambda chosen: (chooser, dict(chosen)))
    strata = strata_of(chooser.rows.y, "classification")
    return score_strategies(strategies, chooser, same, strata, np.random.default_rng(effort_seed))


def test_scores_of_strategies_are_made_of_halves_that_they_did_not_choose_on():
    chooser = chooser_of("balanced_accuracy", m=5)
    scores = {one.variant.name: one for one in scored(chooser, {UNWEIGHTED: [0], WEIGHTS: [1, 2, 3, 4]})}
    plain = scores[UNWEIGHTED]
    # The unweighted model is not chosen: what it scores is what it scores.
    np.testing.assert_array_equal(plain.crossed, plain.chosen)
    assert plain.optimism == 0
    assert plain.apparent == pytest.approx(chooser.values(chooser.every)[0])
    assert len(plain.crossed) == 2 * chooser.effort.pairs
    assert scores["tuned decisions"].apparent >= plain.apparent
    assert scores[WEIGHTS].apparent >= chooser.values(chooser.every).max()


def test_choosing_among_candidates_of_pure_chance_is_seen_through():
    rng = np.random.default_rng(0)
    gaps, honest = [], []
    for seed in range(12):
        chooser = chooser_of("accuracy", m=30, seed=seed, n=100)
        y = rng.permutation(chooser.rows.y)  # labels that no candidate knows
        chooser = Chooser(
            chooser.evaluator,
            type(chooser.rows)(chooser.rows.X, y),
            "classification",
            chooser.predictions,
            np.array([np.mean(p.arrays["predict"] == y) for p in chooser.predictions.values()]),
            chooser.effort,
        )
        scores = {s.variant.name: s for s in scored(chooser, {UNWEIGHTED: [0], WEIGHTS: list(range(1, 30))})}
        gaps.append(scores[WEIGHTS].apparent - 0.5)
        honest.append(scores[WEIGHTS].honest - 0.5)
    assert np.mean(gaps) > 0.08
    assert abs(np.mean(honest)) < 0.06


def test_ahead_beyond_chance_is_said_only_where_the_interval_of_the_gain_is_above_zero():
    rng, ahead, luck_decided = np.random.default_rng(0), 0, 0
    for _ in range(300):
        plain, simple = score(UNWEIGHTED, 0.5), score("class weights", 0.5 + rng.normal(0, 0.02))
        strategies = [plain, simple, learned(0.5 + rng.normal(0.02, 0.02))]
        noise = rng.normal(0, 0.02, (3, 2 * PAIRS))
        strategies = [
            replace(strategy, own=strategy.own + more)
            for strategy, more in zip(strategies, noise, strict=True)
        ]
        verdict = decide(strategies, selects=True)
        if verdict.selected is strategies[0]:
            continue
        gain = verdict.honest - strategies[0].honest
        luck = verdict.optimism - verdict.selected.optimism
        holds_zero = gain <= TWO_SIDED * gain_error(verdict.selected, strategies[0], luck)
        ahead += verdict.reason == AHEAD
        luck_decided += holds_zero and gain > TWO_SIDED * gain_error(verdict.selected, strategies[0])
        assert not (verdict.reason == AHEAD and holds_zero)
    assert ahead and luck_decided
