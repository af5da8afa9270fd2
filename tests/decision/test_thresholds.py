"""Rules with one threshold, and what all rules have in common."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, recall_score

from moew._util.state import load_state
from moew.decision import (
    EqualFalsePositiveRates,
    FixedThreshold,
    MostAccurate,
    RecallReached,
    ShareSelected,
    resolve_decision,
)
from moew.exceptions import InvalidInputError, UndefinedMetricError
from moew.types import DecisionRule

# Few distinct values, so that ties are common, beside any finite float.
scores = st.one_of(st.integers(-3, 3).map(float), st.floats(allow_nan=False, allow_infinity=False, width=64))
labelled = st.lists(st.tuples(scores, st.booleans()), min_size=1, max_size=12)


def _arrays(rows):
    return np.array([s for s, _ in rows]), np.array([p for _, p in rows])


def _possible_decisions(score):
    """Every decision that some threshold makes, fewest rows first."""
    return [score > t for t in (np.inf, *np.unique(score)[::-1], -np.inf)]


def test_fixed_threshold_is_strict_and_needs_no_fit():
    rule = FixedThreshold(0.5)
    assert rule.decide(np.array([0.4, 0.5, 0.6]), {}).tolist() == [False, False, True]
    assert rule.fit_on is None
    assert rule.fit(np.array([1.0]), np.array([True]), {}) is rule


@given(labelled)
def test_most_accurate_is_as_good_as_any_threshold(rows):
    score, positive = _arrays(rows)
    decided = MostAccurate().fit(score, positive, {}).decide(score, {})
    by_brute_force = [accuracy_score(positive, d) for d in _possible_decisions(score)]
    assert accuracy_score(positive, decided) == max(by_brute_force)
    fewest = _possible_decisions(score)[int(np.argmax(by_brute_force))]
    assert np.array_equal(decided, fewest)


def test_most_accurate_lies_midway_between_scores():
    rule = MostAccurate(on="train").fit(np.array([0.0, 1.0, 3.0]), np.array([False, False, True]), {})
    assert rule.threshold_ == 2.0
    assert rule.fit_on == "train"


@given(labelled, st.floats(0.01, 1.0))
def test_share_selected_is_the_nearest_possible_share(rows, share):
    score, _ = _arrays(rows)
    decided = ShareSelected(share).fit(score, None, {}).decide(score, {})
    wanted = max(1, np.floor(share * len(score) + 0.5))
    off = min(abs(d.sum() - wanted) for d in _possible_decisions(score)[1:] if d.any())
    assert abs(decided.sum() - wanted) == off
    assert score[decided].min() > max(score[~decided], default=-np.inf)


@given(labelled, st.floats(0.01, 1.0))
def test_share_of_each_set_is_exact_in_spite_of_ties(rows, share):
    score, _ = _arrays(rows)
    rule = ShareSelected(share, on="each")
    decided = rule.decide(score, {})
    assert decided.sum() == max(1, np.floor(share * len(score) + 0.5))
    assert score[decided].min() >= max(score[~decided], default=-np.inf)
    assert rule.fit_on is None


def test_share_of_the_paper_is_the_percentile_of_the_scores():
    score = np.random.default_rng(0).standard_normal(1000)
    rule = ShareSelected(0.278, on="train").fit(score, None, {})
    assert rule.decide(score, {}).sum() == 278
    assert abs(rule.threshold_ - np.quantile(score, 0.722)) < 0.01


@given(labelled.filter(lambda rows: any(p for _, p in rows)), st.floats(0.01, 1.0))
def test_recall_reached_by_the_fewest_rows(rows, recall):
    score, positive = _arrays(rows)
    decided = RecallReached(recall).fit(score, positive, {}).decide(score, {})
    enough = [d for d in _possible_decisions(score) if recall_score(positive, d) >= recall]
    assert np.array_equal(decided, enough[0])


def test_recall_needs_a_positive_row():
    with pytest.raises(UndefinedMetricError, match="none of the 2 rows"):
        RecallReached(0.9).fit(np.array([0.0, 1.0]), np.array([False, False]), {})


def test_neighbouring_floats_and_huge_scores_are_parted():
    low = 1.0
    high = np.nextafter(low, 2)
    for pair in ([low, high], [-1.5e308, 1.7e308]):
        rule = ShareSelected(0.5).fit(np.array(pair), None, {})
        assert rule.decide(np.array(pair), {}).tolist() == [False, True]


FITTED = [
    FixedThreshold(0.1),
    FixedThreshold(0.1, of="probability"),
    MostAccurate(),
    ShareSelected(0.3),
    ShareSelected(1.0, on="train"),  # its threshold is minus infinity
    ShareSelected(0.3, on="each"),
    RecallReached(0.8),
    EqualFalsePositiveRates(0.3),
    EqualFalsePositiveRates(0.3, on="validation", group="race"),
]


@pytest.mark.parametrize("rule", FITTED)
@pytest.mark.parametrize("group_kind", [int, str, float, bool])
def test_state_goes_through_json_bit_for_bit(rule, group_kind):
    rng = np.random.default_rng(1)
    score, positive = rng.standard_normal(200), rng.random(200) < 0.4
    group = rng.integers(0, 2, 200).astype(group_kind)
    columns = {"group": group, "race": group}
    fitted = rule.fit(score, positive, columns)
    again = load_state(json.loads(json.dumps(fitted.state(), allow_nan=False)))
    assert again == fitted
    new = rng.standard_normal(500)
    columns = {name: rng.permutation(np.resize(c, 500)) for name, c in columns.items()}
    assert np.array_equal(again.decide(new, columns), fitted.decide(new, columns))
    assert load_state(json.loads(json.dumps(rule.state()))) == rule  # unfitted too


@pytest.mark.parametrize("rule", [MostAccurate(), ShareSelected(0.3), RecallReached(0.5)])
def test_deciding_before_fitting_is_an_error(rule):
    with pytest.raises(InvalidInputError, match="call fit"):
        rule.decide(np.zeros(2), {})


@pytest.mark.parametrize("rule", FITTED[:6])
def test_scores_that_cannot_be_ordered_are_refused(rule):
    fitted = rule.fit(np.arange(4.0), np.array([False, True, False, True]), {})
    for bad, message in [
        (np.array([0.0, np.nan]), "1 of 2 scores are NaN"),
        (np.array([0.0, np.inf]), "NaN or infinite"),
        (np.zeros((2, 2)), "one dimension"),
        (np.array(["a", "b"]), "must be numbers"),
    ]:
        with pytest.raises(InvalidInputError, match=message):
            fitted.decide(bad, {})


def test_labels_must_fit_the_scores():
    with pytest.raises(InvalidInputError, match=r"\(3,\)"):
        MostAccurate().fit(np.zeros(3), np.array([True]), {})
    with pytest.raises(InvalidInputError, match="True or False"):
        MostAccurate().fit(np.zeros(2), np.array([0.3, 1.0]), {})
    with pytest.raises(InvalidInputError, match="no rows"):
        MostAccurate().fit(np.zeros(0), np.zeros(0, dtype=bool), {})


@pytest.mark.parametrize("bad", [0, -0.1, 1.01, np.nan, "half", None, True])
def test_shares_outside_their_range_are_refused(bad):
    for make in (ShareSelected, RecallReached, EqualFalsePositiveRates):
        with pytest.raises(InvalidInputError, match="above 0 and at most 1"):
            make(bad)


def test_other_wrong_settings_are_refused():
    for make in (
        lambda: MostAccurate(on="test"),
        lambda: RecallReached(0.5, on="each"),
        lambda: ShareSelected(0.5, on="all"),
        lambda: EqualFalsePositiveRates(0.5, group=""),
        lambda: FixedThreshold(np.inf),
        lambda: FixedThreshold("0"),
        lambda: FixedThreshold(0.5, of="logit"),
        lambda: FixedThreshold(1.5, of="probability"),
    ):
        with pytest.raises(InvalidInputError):
            make()


def test_resolve_decision():
    assert resolve_decision(None) is None
    assert resolve_decision(0.5) == FixedThreshold(0.5, of="probability")
    assert resolve_decision(np.float32(0.5)) == FixedThreshold(0.5, of="probability")
    with pytest.raises(InvalidInputError, match="must be None, a number"):
        resolve_decision(10**400)
    rule = ShareSelected(0.1)
    assert resolve_decision(rule) is rule
    for bad in (True, object(), lambda s: s > 0):
        with pytest.raises(InvalidInputError, match="decision must be"):
            resolve_decision(bad)
    with pytest.raises(InvalidInputError, match=r"did you mean MostAccurate\(…\)"):
        resolve_decision(MostAccurate)


@pytest.mark.parametrize("rule", FITTED)
def test_every_rule_keeps_the_protocol(rule):
    assert isinstance(rule, DecisionRule)
    assert rule.fit_on in ("train", "validation", None)


def test_rules_by_name():
    assert resolve_decision("select=0.05@train") == ShareSelected(0.05, on="train")
    assert resolve_decision("threshold=0.4") == FixedThreshold(0.4, of="probability")
    assert resolve_decision("accurate") == MostAccurate()
    for wrong, message in (
        ("median", "none of threshold=0.5"),
        ("accurate=3", "none of"),
        ("select", "none of"),
        ("score=0@train", "not fitted"),
        ("recall=0.9@each", "say @train or @validation"),
        ("select=few", "needs a number"),
        ("select=2", "decision='select=2': share must be a number above 0"),
    ):
        with pytest.raises(InvalidInputError, match=message) as caught:
            resolve_decision(wrong)
        assert caught.value.argument == "decision"
