"""Which way is handed out, from hand-made scores of the ways."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from judges import judge_of

from moew.data._splits import strata_of
from moew.search._guard import CERTAIN, SIMPLER, WayScore, decide, gain_error, score_ways, simplest
from moew.search._judge import Choice, Judge
from moew.search._ways import UNWEIGHTED, WEIGHTS, Way, list_ways

PAIRS = 5


def score(name, honest, *, moved=0.0, optimism=0.0, simple=True):
    """A way of this honest value, which is higher by `moved` on one half and lower on the other."""
    best = honest + optimism
    moves = moved * np.tile([1.0, -1.0], PAIRS)
    own = best + moves
    way = Way(name, simple, lambda rows: None)
    return WayScore(way, Choice((0,), np.ones(1), None, np.arange(2)), best, own - optimism, own, own)


def learned(honest, **more):
    return score("example weights", honest, simple=False, **more)


def chosen(*scores, guard=True):
    return decide(scores, guard).chosen.way.name


def test_the_scores_of_a_way_are_what_their_names_say():
    own = np.array([0.7, 0.5, 0.8, 0.4])
    crossed = np.array([0.6, 0.5, 0.6, 0.4])
    one = WayScore(Way("a", True, None), None, 0.65, crossed, own, own)
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
        return WayScore(Way("a", True, None), None, 0.5, values, values, values)

    assert of([0.5, math.nan, 0.5, 0.5]).honest == pytest.approx(0.5)
    assert math.isnan(of([0.5, math.nan, 0.5, math.nan]).honest)


def test_without_honest_values_a_way_with_a_value_goes_before_one_without():
    no_value, value = learned(math.nan), replace(learned(math.nan), best=0.7)
    assert decide([no_value, value], guard=False).chosen is value
    assert decide([no_value, no_value], guard=False).chosen is no_value


def test_equal_ways_are_decided_for_the_simplest():
    assert chosen(score("a", 0.5), score("b", 0.5), learned(0.5)) == "a"


def test_a_simpler_way_is_taken_within_half_a_standard_error():
    better = score("b", 0.60, moved=0.02)
    error = gain_error(score("a", 0.5), better)
    assert error == pytest.approx(0.02)
    near, far = 0.60 - 0.99 * SIMPLER * error, 0.60 - 1.01 * SIMPLER * error
    assert simplest([score("a", near), better]).way.name == "a"
    assert simplest([score("a", far), better]).way.name == "b"
    assert chosen(score("a", near), better, learned(0.5)) == "a"
    assert chosen(score("a", far), better, learned(0.5)) == "b"


def test_example_weights_are_handed_out_only_beyond_chance():
    simple = score("a", 0.6)
    ahead = CERTAIN * 0.02
    assert chosen(simple, learned(0.6 + 0.99 * ahead, moved=0.02)) == "a"
    verdict = decide([simple, learned(0.6 + 1.01 * ahead, moved=0.02)], True)
    assert verdict.chosen.way.name == "example weights"
    assert verdict.reason == "ahead of every simple way beyond chance"


def test_example_weights_must_be_ahead_of_the_best_simple_way_not_of_the_simplest():
    simplest_way, best = score("a", 0.60), score("b", 0.605, moved=0.02)
    assert simplest([simplest_way, best]) is simplest_way
    between = learned(0.6049, moved=1e-4)  # surely ahead of a, not of b
    assert chosen(simplest_way, best, between) == "a"


def test_what_the_choice_adds_to_a_score_makes_it_less_certain():
    simple = score("a", 0.6)
    assert chosen(simple, learned(0.65, moved=0.01)) == "example weights"
    assert chosen(simple, learned(0.65, moved=0.01, optimism=0.2)) == "a"


def test_without_the_guard_example_weights_are_handed_out_whatever_they_score():
    verdict = decide([score("a", 0.9), learned(0.1)], False)
    assert verdict.chosen.way.name == "example weights"
    assert verdict.reason == "the guard is off"
    assert verdict.honest == pytest.approx(0.1)
    tuned = score("example weights, tuned", 0.2, simple=False)
    assert chosen(score("a", 0.9), learned(0.1), tuned, guard=False) == "example weights, tuned"


def nan(name, simple=True):
    nans = np.full(2 * PAIRS, math.nan)
    return WayScore(Way(name, simple, None), None, 0.99, nans, nans, nans)


def test_a_way_without_an_honest_score_never_wins_against_one_with():
    assert chosen(nan("a"), score("b", 0.1), nan("example weights", False)) == "b"
    assert chosen(score("a", 0.1), nan("b"), learned(0.05)) == "a"
    assert chosen(score("a", 0.1), nan("b"), learned(0.9)) == "example weights"
    undefined = [nan("a"), nan("example weights", False)]
    assert chosen(*undefined) == "a"
    assert math.isnan(decide(undefined, True).honest)
    tuned = score("example weights, tuned", 0.9, simple=False)
    assert chosen(score("a", 0.1), nan("example weights", False), tuned) == "example weights, tuned"


def test_a_way_differs_from_itself_by_nothing():
    one = score("a", 0.5, moved=0.1, optimism=0.3)
    assert gain_error(one, one) == 0.0
    assert math.isnan(gain_error(one, nan("b")))


@given(shared=st.floats(0, 1), own=st.floats(0, 1), optimism=st.floats(-1, 1))
def test_errors_that_two_ways_share_cancel(shared, own, optimism):
    one = score("a", 0.5, moved=shared)
    other = score("b", 0.7, moved=shared + own, optimism=optimism)
    assert gain_error(one, other) == pytest.approx(math.hypot(own, optimism), abs=1e-9)
    assert gain_error(one, other) == gain_error(other, one)


SCORES = st.lists(st.tuples(st.floats(-1, 1), st.floats(0, 0.3), st.floats(0, 0.3)), min_size=2, max_size=5)


@given(made=SCORES)
def test_what_is_handed_out_is_never_clearly_worse_than_any_way(made):
    ways = [score(str(k), h, moved=m, optimism=o) for k, (h, m, o) in enumerate(made[:-1])]
    ways.append(learned(made[-1][0], moved=made[-1][1], optimism=made[-1][2]))
    chosen = decide(ways, True).chosen
    best = max(ways[:-1], key=lambda way: way.honest)
    if chosen is ways[-1]:
        assert chosen.honest >= best.honest
    else:
        assert best.honest - chosen.honest <= SIMPLER * gain_error(best, chosen) + 1e-9
        assert ways[-1].honest - best.honest <= CERTAIN * gain_error(ways[-1], best) + 1e-9


def test_the_honest_value_counts_the_guards_own_choice():
    # Two ways, each the better on every second half by chance: choosing between them flatters.
    moves = 0.1 * np.tile([1.0, -1.0], PAIRS)
    one, other = (
        WayScore(Way(name, True, None), None, 0.5, 0.5 + m, 0.5 + m, 0.5 + m)
        for name, m in (("a", moves), ("b", -moves))
    )
    verdict = decide([one, other, learned(0.0)], True)
    assert one.honest == other.honest == pytest.approx(0.5)
    # On each half the guard takes the way that is better there, which is the worse on the other half.
    assert verdict.honest == pytest.approx(0.4)
    assert verdict.optimism == pytest.approx(0.1)


def test_with_one_way_that_is_always_best_the_guard_adds_nothing():
    best = score("b", 0.8, moved=0.01, optimism=0.05)
    verdict = decide([score("a", 0.2), best, learned(0.1)], True)
    assert verdict.chosen is best
    assert verdict.honest == pytest.approx(best.honest)
    assert verdict.optimism == pytest.approx(0.05)


def scored(judge, candidates, effort_seed=0, finalists=None):
    ways = list_ways(judge, candidates, averages=True)
    same = finalists or (lambda chosen: (judge, dict(chosen)))
    strata = strata_of(judge.rows.y, "classification")
    return score_ways(ways, judge, same, strata, np.random.default_rng(effort_seed))


def test_scores_of_ways_are_made_of_halves_that_they_did_not_choose_on():
    judge = judge_of("balanced_accuracy", m=5)
    scores = {one.way.name: one for one in scored(judge, {UNWEIGHTED: [0], WEIGHTS: [1, 2, 3, 4]})}
    plain = scores[UNWEIGHTED]
    # The unweighted model is not chosen: what it scores is what it scores.
    np.testing.assert_array_equal(plain.crossed, plain.chosen)
    assert plain.optimism == 0
    assert plain.best == pytest.approx(judge.values(judge.every)[0])
    assert len(plain.crossed) == 2 * judge.effort.pairs
    assert scores["tuned decisions"].best >= plain.best
    assert scores[WEIGHTS].best >= judge.values(judge.every).max()


def test_choosing_among_candidates_of_pure_chance_is_seen_through():
    rng = np.random.default_rng(0)
    gaps, honest = [], []
    for seed in range(12):
        judge = judge_of("accuracy", m=30, seed=seed, n=100)
        y = rng.permutation(judge.rows.y)  # labels that no candidate knows
        judge = Judge(
            judge.evaluator,
            type(judge.rows)(judge.rows.X, y),
            "classification",
            judge.predictions,
            np.array([np.mean(p.arrays["predict"] == y) for p in judge.predictions]),
            judge.effort,
        )
        scores = {s.way.name: s for s in scored(judge, {UNWEIGHTED: [0], WEIGHTS: list(range(1, 30))})}
        gaps.append(scores[WEIGHTS].best - 0.5)
        honest.append(scores[WEIGHTS].honest - 0.5)
    assert np.mean(gaps) > 0.08
    assert abs(np.mean(honest)) < 0.06
