"""Decisions tuned for the metric: thresholds, by group too, class offsets and adjusted predictions."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score
from sklearn.model_selection import TunedThresholdClassifierCV

from moew._util.state import load_state
from moew.decision import (
    AdjustedPredictions,
    ClassOffsets,
    GroupThresholds,
    Tuned,
    TunedThreshold,
    resolve_decision,
    rule_examples,
)
from moew.exceptions import InvalidInputError, UndefinedMetricError
from moew.types import DecisionRule


def f1(positive, decided):
    selected = positive.sum() + decided.sum()
    return 2 * (positive & decided).sum() / selected if selected else 0.0


def accuracy(positive, decided):
    return (positive == decided).mean()


def cost(positive, decided):
    return -(5 * (positive & ~decided) + (decided & ~positive)).mean()


METRICS = {"accuracy": accuracy, "f1": f1, "cost": cost}


class Counted:
    """A metric of decisions that counts its calls and remembers what it was asked."""

    def __init__(self, value):
        self.value = value
        self.asked = []

    def __call__(self, decisions):
        self.asked.append(decisions.tobytes())
        return self.value(decisions)


def _binary(seed, n, share=0.3, apart=1.5):
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < share
    return rng.standard_normal(n) + apart * positive, positive


def _brute_force(score, positive, metric):
    """The best threshold of all, and its value."""
    thresholds = np.concatenate(([-np.inf], np.unique(score)))
    values = [metric(positive, score > t) for t in thresholds]
    return thresholds[int(np.argmax(values))], max(values)


def _tuned(score, positive, metric, rule=None, columns=None, **options):
    options = {"task": "binary", **options}
    return (rule or Tuned()).tune(score, lambda d: metric(positive, d), columns or {}, **options)


# One threshold


@pytest.mark.parametrize("name", METRICS)
def test_close_to_the_best_threshold_on_new_rows(name):
    metric = METRICS[name]
    score, positive = _binary(0, 4000)
    new_score, new_positive = _binary(1, 4000)
    rule = _tuned(score, positive, metric, own_threshold=3.0)
    found = metric(new_positive, rule.decide(new_score, {}))
    _, best = _brute_force(new_score, new_positive, metric)
    assert best - found < 0.015
    assert found > metric(new_positive, new_score > 3.0) + 0.05


@pytest.mark.parametrize("name", METRICS)
def test_as_good_as_brute_force_on_average_of_new_rows(name):
    metric = METRICS[name]
    new_score, new_positive = _binary(99, 20_000)
    lead = []
    for seed in range(30):
        score, positive = _binary(seed, 80)
        rule = _tuned(score, positive, metric, own_threshold=3.0)
        lucky, _ = _brute_force(score, positive, metric)
        tuned = metric(new_positive, rule.decide(new_score, {}))
        lead.append(tuned - metric(new_positive, new_score > lucky))
    assert np.mean(lead) > -0.003


def test_rare_classes_have_thresholds_among_the_few_highest_scores():
    score, positive = _binary(3, 20_000, share=0.004, apart=4.0)
    rule = _tuned(score, positive, f1, own_threshold=10.0)
    _, best = _brute_force(score, positive, f1)
    assert f1(positive, rule.decide(score, {})) > best - 0.03


def test_separable_classes_are_separated():
    score, positive = _binary(4, 3000, apart=12.0)
    rule = _tuned(score, positive, accuracy, own_threshold=0.0)
    assert accuracy(positive, rule.decide(score, {})) > 0.997


def test_a_lucky_peak_is_avoided():
    score = np.linspace(0, 1, 200)

    def value(decided):
        return 1.2 if decided.sum() == 31 else 1 - (decided.mean() - 0.6) ** 2

    assert max(value(score > t) for t in (-1.0, *score)) == 1.2
    counted = Counted(value)
    rule = Tuned().tune(score, counted, {}, task="binary", own_threshold=2.0, most_calls=400)
    assert (score > score[168]).tobytes() in counted.asked  # it met the peak
    assert abs(rule.decide(score, {}).mean() - 0.6) < 0.02


def test_of_a_plateau_the_middle_is_taken():
    score = np.arange(40.0)
    rule = Tuned().tune(
        score,
        lambda d: float(10 <= d.sum() <= 30),
        {},
        task="binary",
        own_threshold=100.0,
    )
    assert abs(rule.decide(score, {}).sum() - 20) <= 1


def test_the_own_threshold_is_kept_unless_another_is_better():
    score, _ = _binary(5, 100)
    for value in (lambda d: 1.0, lambda d: np.nan, lambda d: np.inf, lambda d: -abs(d.sum() - 37)):
        own = np.sort(score)[-38] + 1e-9
        rule = Tuned().tune(score, value, {}, task="binary", own_threshold=own)
        assert rule == TunedThreshold(own)


def test_thresholds_without_a_value_are_left_out():
    score, positive = _binary(6, 300)

    def precision(decided):
        if decided.sum() < 10:
            raise UndefinedMetricError("nothing is selected")
        return float("nan") if decided.all() else positive[decided].mean()

    rule = Tuned().tune(score, precision, {}, task="binary", own_threshold=100.0)
    assert np.isfinite(precision(rule.decide(score, {})))
    assert precision(rule.decide(score, {})) > 0.8


def test_other_errors_of_the_metric_are_shown():
    def broken(decided):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Tuned().tune(np.arange(5.0), broken, {}, task="binary")


@pytest.mark.parametrize(("share", "decided"), [(0.9, True), (0.1, False)])
def test_equal_scores_are_decided_alike(share, decided):
    positive = np.arange(50) < 50 * share
    for own in (0.0, 2.0):
        rule = _tuned(np.ones(50), positive, accuracy, own_threshold=own)
        assert set(rule.decide(np.ones(50), {})) == {decided}


def test_similar_to_the_threshold_of_scikit_learn():
    rng = np.random.default_rng(7)
    X = rng.standard_normal((6000, 3))
    y = (X[:, 0] + X[:, 1] + 1.5 * rng.standard_normal(6000) > 2.2).astype(int)
    theirs = TunedThresholdClassifierCV(LogisticRegression(), scoring="f1", thresholds=200).fit(X, y)
    probability = LogisticRegression().fit(X, y).predict_proba(X)[:, 1]
    ours = Tuned().tune(probability, lambda d: f1_score(y, d), {}, task="binary", own_threshold=0.5)
    assert abs(ours.threshold - theirs.best_threshold_) < 0.06
    assert (
        f1_score(y, probability > ours.threshold) > f1_score(y, probability > theirs.best_threshold_) - 0.01
    )


rows = st.lists(
    st.tuples(
        st.one_of(st.integers(-3, 3).map(float), st.floats(-1e6, 1e6)), st.booleans(), st.integers(0, 3)
    ),
    min_size=1,
    max_size=60,
)


@given(
    rows,
    st.sampled_from(sorted(METRICS)),
    st.integers(8, 70),
    st.booleans(),
    st.sampled_from([-1.0, 0.0, 0.5]),
)
def test_within_its_calls_and_never_worse_than_the_own_decision(rows, name, most_calls, by, own):
    score, positive, group = (np.array(part) for part in zip(*rows, strict=True))
    counted = Counted(lambda d: METRICS[name](positive, d))
    rule = Tuned("group" if by else None)
    columns = {"group": group}
    options = {"task": "binary", "own_threshold": own, "most_calls": most_calls}
    fitted = rule.tune(score, counted, columns, **options)
    assert len(counted.asked) <= most_calls
    assert len(set(counted.asked)) == len(counted.asked)
    assert counted.value(fitted.decide(score, columns)) >= counted.value(score > own)
    assert rule.tune(score, counted, columns, **options) == fitted


@given(st.lists(st.tuples(st.integers(-4, 4), st.booleans()), min_size=1, max_size=80))
def test_the_start_is_left_only_for_a_higher_smoothed_value(rows):
    """Against the smoothed curve by its definition, on scores so few that all thresholds are tried."""
    score, positive = np.array([float(s) for s, _ in rows]), np.array([p for _, p in rows])
    rule = _tuned(score, positive, accuracy, own_threshold=-0.5)
    cuts = sorted({int((score > t).sum()) for t in (-np.inf, *score)})
    of_cut = {int((score > t).sum()): accuracy(positive, score > t) for t in (-np.inf, *score)}
    reach = max(3, len(score) / 20)

    def smoothed(cut):
        i = cuts.index(cut)
        near = [j for j in range(max(i - 3, 0), min(i + 4, len(cuts))) if abs(cuts[j] - cut) <= reach]
        return np.average([of_cut[cuts[j]] for j in near], weights=[4 - abs(i - j) for j in near])

    own, chosen = int((score > -0.5).sum()), int(rule.decide(score, {}).sum())
    assert smoothed(chosen) >= smoothed(own) - 1e-9
    at_top = max(map(smoothed, cuts))
    assert chosen == own or smoothed(chosen) >= at_top - 1e-9


# Groups


def _grouped(seed, n=3000):
    """The best threshold is 0 in group "a", 2 in group "b" and −1 in group "c"."""
    rng = np.random.default_rng(seed)
    group = rng.choice(["a", "b", "c"], n)
    score = rng.normal(0.4, 2, n)
    best = np.select([group == "a", group == "b"], [0.0, 2.0], -1.0)
    return score, rng.random(n) < 1 / (1 + np.exp(-4 * (score - best))), {"group": group}


def test_group_thresholds_beat_the_common_one():
    score, positive, columns = _grouped(0)
    new_score, new_positive, new_columns = _grouped(1)
    common = _tuned(score, positive, accuracy)
    by_group = _tuned(score, positive, accuracy, Tuned(by="group"), columns)
    assert isinstance(by_group, GroupThresholds)
    for group, best in (("a", 0.0), ("b", 2.0), ("c", -1.0)):
        assert abs(dict(by_group.thresholds)[group] - best) < 0.5
    by_common = accuracy(new_positive, common.decide(new_score, {}))
    assert accuracy(new_positive, by_group.decide(new_score, new_columns)) > by_common + 0.05


def test_group_thresholds_for_a_metric_of_no_sum_over_rows():
    score, positive, columns = _grouped(2)

    def worst_group(positive, decided):
        return min(accuracy(positive[columns["group"] == g], decided[columns["group"] == g]) for g in "abc")

    by_group = _tuned(score, positive, worst_group, Tuned(by="group"), columns)
    common = _tuned(score, positive, worst_group)
    by_group, common = (r.decide(score, columns) for r in (by_group, common))
    assert worst_group(positive, by_group) > worst_group(positive, common) + 0.1


def test_an_unseen_group_gets_the_common_threshold():
    score, positive, columns = _grouped(3)
    rule = _tuned(score, positive, accuracy, Tuned(by="group"), columns)
    new = np.linspace(-3, 3, 50)
    decided = rule.decide(new, {"group": np.full(50, "z")})
    assert np.array_equal(decided, new > rule.common)
    with pytest.raises(InvalidInputError, match="needs the column 'group'"):
        rule.decide(new, {})
    with pytest.raises(InvalidInputError, match="needs the column 'group'"):
        _tuned(score, positive, accuracy, Tuned(by="group"), {"other": score})


def test_more_groups_than_calls_keep_the_common_threshold():
    score, positive, _ = _grouped(4)
    columns = {"group": np.arange(len(score)) % 500}
    rule = _tuned(score, positive, accuracy, Tuned(by="group"), columns, most_calls=40)
    assert sum(t != rule.common for _, t in rule.thresholds_by_group) <= 3


# Several classes


def _shifted_classes(seed, priors, n=6000):
    """Exact log-probabilities under equal priors, of rows drawn with other priors."""
    rng = np.random.default_rng(seed)
    C = len(priors)
    y = rng.choice(C, n, p=priors)
    centres = 1.6 * np.eye(C)
    x = centres[y] + rng.standard_normal((n, C))
    log_p = x @ centres.T
    return log_p - np.log(np.exp(log_p).sum(axis=1, keepdims=True)), y


@pytest.mark.parametrize("priors", [(0.8, 0.15, 0.05), (0.5, 0.2, 0.2, 0.07, 0.03)])
def test_class_offsets_recover_a_shift_of_priors(priors):
    priors = np.array(priors)
    equal, y = _shifted_classes(0, priors)
    new, new_y = _shifted_classes(1, priors)
    for scores, new_scores, metric, offsets in (
        (equal + np.log(priors), new + np.log(priors), balanced_accuracy_score, -np.log(priors)),
        (equal, new, accuracy_score, np.log(priors)),
    ):
        rule = Tuned().tune(scores, lambda d, m=metric: m(y, d), {}, task="classes")
        exact = metric(new_y, np.argmax(new_scores + offsets, axis=1))
        own = metric(new_y, np.argmax(new_scores, axis=1))
        found = metric(new_y, rule.decide(new_scores, {}))
        assert found > exact - 0.02
        assert found > own + 0.6 * (exact - own)


def test_class_offsets_do_not_depend_on_the_scale_of_scores():
    scores, y = _shifted_classes(2, (0.7, 0.2, 0.1), n=800)
    rules = [
        Tuned().tune(scale * scores, lambda d: accuracy_score(y, d), {}, task="classes")
        for scale in (1.0, 1000.0)
    ]
    values = [accuracy_score(y, r.decide(s * scores, {})) for r, s in zip(rules, (1, 1000), strict=True)]
    assert min(values) > accuracy_score(y, scores.argmax(axis=1)) + 0.02
    assert abs(values[0] - values[1]) < 0.02


@given(st.integers(0, 10_000), st.integers(2, 40), st.integers(1, 40), st.integers(8, 60), st.booleans())
def test_classes_within_their_calls_and_never_worse(seed, n_classes, n, most_calls, impossible):
    rng = np.random.default_rng(seed)
    scores, y = rng.integers(-3, 3, (n, n_classes)).astype(float), rng.integers(0, n_classes, n)
    if impossible:
        scores[:, 1:][rng.random((n, n_classes - 1)) < 0.3] = -np.inf
    counted = Counted(lambda d: (d == y).mean())
    rule = Tuned().tune(scores, counted, {}, task="classes", most_calls=most_calls)
    assert len(counted.asked) <= most_calls
    assert len(set(counted.asked)) == len(counted.asked)
    assert counted.value(rule.decide(scores, {})) >= counted.value(scores.argmax(axis=1))
    chosen = scores[np.arange(n), rule.decide(scores, {})]
    assert np.isfinite(chosen).all()  # an impossible class is never decided


@given(st.integers(0, 10_000))
def test_tied_rows_are_decided_alike_whatever_their_last_digits(seed):
    """As those of a small tree: at a tie, the digits that rounding drops would decide."""
    rng = np.random.default_rng(seed)
    leaves = np.log(rng.dirichlet(np.ones(3), 3))
    scores, y = leaves[rng.integers(0, 3, 24)], rng.integers(0, 3, 24)
    rule = Tuned().tune(scores, lambda d: f1_score(y, d, average="macro"), {}, task="classes")
    sums = np.sort(leaves + rule.offsets, axis=1)
    untouched = rule == ClassOffsets((0.0, 0.0, 0.0))
    assert untouched or np.all(sums[:, 2] - sums[:, 1] > 1e-9)


def test_classes_without_a_better_decision_keep_zero_offsets():
    scores, _ = _shifted_classes(3, (0.5, 0.5), n=50)
    assert Tuned().tune(scores, lambda d: 1.0, {}, task="classes") == ClassOffsets((0.0, 0.0))


# Regression


def _relative(y, predictions):
    """Relative error, worse where a prediction is too high."""
    off = (predictions - y) / y
    return -np.mean(np.where(off > 0, 3 * off, -off))


def _brute_force_line(y, predictions, log):
    best = -np.inf
    line = np.log(predictions) if log else predictions
    for factor in np.linspace(0.4, 2.5, 85):
        for offset in np.linspace(-3, 3, 241):
            adjusted = offset + factor * line
            best = max(best, _relative(y, np.exp(adjusted) if log else adjusted))
    return best


@pytest.mark.parametrize("log", [False, True])
def test_regression_recovers_a_planted_distortion(log):
    rng = np.random.default_rng(0)
    y = np.exp(rng.normal(1.0, 0.5, 600))
    noisy = y * np.exp(0.1 * rng.standard_normal(600))
    predictions = np.exp(0.4 + 0.7 * np.log(noisy)) if log else 1.0 + 0.7 * noisy
    counted = Counted(lambda d: _relative(y, d))
    rule = Tuned().tune(predictions, counted, {}, task="regression")
    assert len(counted.asked) <= 120
    found = _relative(y, rule.decide(predictions, {}))
    own, best = _relative(y, predictions), _brute_force_line(y, predictions, log)
    assert found > own + 0.95 * (best - own)
    assert rule.log is log
    assert abs(rule.factor - 1 / 0.7) < 0.2


def test_a_constant_prediction_is_moved_to_the_median():
    y = np.random.default_rng(1).normal(7, 1, 300)
    rule = Tuned().tune(np.full(300, -4.0), lambda d: -np.abs(d - y).mean(), {}, task="regression")
    assert abs(rule.decide(np.array([-4.0]), {})[0] - np.median(y)) < 0.1


@given(
    st.lists(st.tuples(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3)), min_size=1, max_size=30),
    st.integers(8, 130),
    st.booleans(),
)
def test_regression_within_its_calls_and_never_worse(rows, most_calls, positive):
    predictions, y = (np.array(part) for part in zip(*rows, strict=True))
    if positive:
        predictions = np.abs(predictions) + 0.1
    counted = Counted(lambda d: -np.abs(d - y).mean())
    rule = Tuned().tune(predictions, counted, {}, task="regression", most_calls=most_calls)
    assert len(counted.asked) <= most_calls
    assert len(set(counted.asked)) == len(counted.asked)
    assert counted.value(rule.decide(predictions, {})) >= counted.value(predictions)


def test_predictions_as_good_as_they_get_are_left_alone():
    y = np.random.default_rng(2).lognormal(size=50)
    rule = Tuned().tune(y, lambda d: -np.abs(d - y).mean(), {}, task="regression")
    assert rule == AdjustedPredictions()
    assert np.array_equal(rule.decide(y, {}), y)


def test_predictions_of_other_signs_on_the_log_scale():
    rule = AdjustedPredictions(np.log(2.0), 2.0, log=True)
    np.testing.assert_allclose(rule.decide(np.array([3.0, 0.0, -3.0]), {}), [18.0, 0.0, -18.0])


# The rules


FITTED = [
    TunedThreshold(0.3),
    TunedThreshold(-np.inf, "probability"),
    GroupThresholds("g", (("a", 0.1), ("b", np.inf)), 0.2),
    GroupThresholds("g", ((1, 0.1), (2.5, -0.3)), -np.inf, "probability"),
    ClassOffsets((0.0, 0.1, -3.5)),
    AdjustedPredictions(0.1, 1.5),
    AdjustedPredictions(-0.1, 0.5, log=True),
]


@pytest.mark.parametrize("rule", [*FITTED, Tuned(), Tuned("race")])
def test_state_goes_through_json(rule):
    again = load_state(json.loads(json.dumps(rule.state(), allow_nan=False)))
    assert again == rule
    assert isinstance(rule, DecisionRule)


@given(st.integers(0, 10_000), st.sampled_from(["binary", "groups", "classes", "regression"]), st.booleans())
def test_a_loaded_rule_decides_as_before(seed, kind, numbers):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, 60)
    scores = rng.standard_normal((60, 3)) if kind == "classes" else rng.standard_normal(60)
    columns = {"g": rng.integers(0, 3, 60) if numbers else rng.choice(["a", "b", "c"], 60)}
    task = "binary" if kind == "groups" else kind
    rule = Tuned("g" if kind == "groups" else None)
    fitted = rule.tune(scores, lambda d: -np.abs(d - y).mean(), columns, task=task, most_calls=40)
    again = load_state(json.loads(json.dumps(fitted.state(), allow_nan=False)))
    new = rng.standard_normal(scores.shape)
    assert again == fitted
    assert np.array_equal(again.decide(new, columns), fitted.decide(new, columns))


@pytest.mark.parametrize("rule", FITTED)
def test_a_fitted_rule_has_nothing_to_fit(rule):
    assert rule.fit_on is None
    assert not rule.needs_labels
    assert rule.fit(np.zeros(2), np.zeros(2, dtype=bool), {}) is rule


def test_thresholds_are_shown():
    assert TunedThreshold(0.3).thresholds == (("all rows", 0.3),)
    assert FITTED[2].thresholds == (("a", 0.1), ("b", np.inf))
    assert FITTED[2].columns == ("g",)


def test_by_name():
    assert resolve_decision("tuned") == Tuned()
    assert resolve_decision("tuned=group") == Tuned(by="group")
    assert "tuned" in rule_examples()
    for wrong, message in (("tuned=group@train", "none of"), ("tuned@train", "leave out @train")):
        with pytest.raises(InvalidInputError, match=message):
            resolve_decision(wrong)


def test_the_rule_that_is_not_tuned():
    rule = Tuned("race")
    assert (rule.fit_on, rule.needs_labels, rule.columns, rule.thresholds) == (
        "validation",
        True,
        ("race",),
        (),
    )
    assert Tuned().columns == ()
    with pytest.raises(InvalidInputError, match="needs the metric"):
        rule.fit(np.zeros(2), np.zeros(2, dtype=bool), {})
    with pytest.raises(InvalidInputError, match="not tuned yet"):
        rule.decide(np.zeros(2), {})


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: Tuned(by=""), "by"),
        (lambda: Tuned(by=3), "by"),
        (lambda: TunedThreshold("0"), "threshold"),
        (lambda: TunedThreshold(np.nan), "threshold"),
        (lambda: TunedThreshold(0.5, "logit"), "of"),
        (lambda: GroupThresholds("", (), 0.0), "column"),
        (lambda: ClassOffsets((0.0,)), "offsets"),
        (lambda: ClassOffsets((0.0, np.inf)), "offsets"),
        (lambda: AdjustedPredictions(np.inf), "offset"),
        (lambda: AdjustedPredictions(0.0, -1.0), "factor"),
        (lambda: AdjustedPredictions(log=1), "log"),
    ],
)
def test_wrong_settings_are_refused(make, argument):
    with pytest.raises(InvalidInputError) as caught:
        make()
    assert caught.value.argument == argument


@pytest.mark.parametrize(
    ("scores", "options", "message"),
    [
        (np.zeros(3), {"task": "binary", "most_calls": 7}, "at least 8"),
        (np.zeros(3), {"task": "binary", "most_calls": True}, "at least 8"),
        (np.zeros(3), {"task": "ranking"}, "task must be one of"),
        (np.zeros(3), {"task": "binary", "own_threshold": np.nan}, "own_threshold must be a number"),
        (np.zeros(0), {"task": "binary"}, "no rows"),
        (np.zeros((0, 2)), {"task": "classes"}, "no rows"),
        (np.zeros((3, 2)), {"task": "regression"}, "one dimension"),
        (np.zeros(3), {"task": "classes"}, "a column for each class"),
        (np.array([[0.0, np.nan]]), {"task": "classes"}, "diverged"),
        (np.array([[-np.inf, -np.inf]]), {"task": "classes"}, "diverged"),
        (np.array([["a", "b"]]), {"task": "classes"}, "must be numbers"),
        (np.array([0.0, np.nan]), {"task": "binary"}, "NaN or infinite"),
    ],
)
def test_wrong_input_is_refused(scores, options, message):
    with pytest.raises(InvalidInputError, match=message):
        Tuned().tune(scores, lambda d: 0.0, {}, **options)


def test_other_refusals():
    with pytest.raises(InvalidInputError, match="need two classes"):
        Tuned("g").tune(np.zeros((3, 2)), lambda d: 0.0, {"g": [1, 2, 3]}, task="classes")
    with pytest.raises(InvalidInputError, match="offsets for 3 classes, got scores of 2"):
        ClassOffsets((0.0, 0.0, 0.0)).decide(np.zeros((4, 2)), {})
