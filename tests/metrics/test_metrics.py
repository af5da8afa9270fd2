"""The paper's metrics against scikit-learn and brute force."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    confusion_matrix,
    mean_absolute_percentage_error,
    precision_recall_curve,
    r2_score,
)

from moew.data import LabelledRows
from moew.exceptions import InvalidInputError, UndefinedMetricError
from moew.metrics import (
    accuracy,
    fpr_gap,
    g_mean,
    mean_of_selected,
    precision_at_recall,
    q_mean,
    r_squared,
    resolve_metric,
    value_per_harm,
    worst_band_relative_error,
    worst_class_error,
)

seeds = st.integers(0, 100_000)


def _curve(y, score, recall, weight=None):
    """scikit-learn's precision at its highest threshold whose recall is enough."""
    precision, recalls, thresholds = precision_recall_curve(y, score, sample_weight=weight)
    return precision[:-1][recalls[:-1] >= recall][np.argmax(thresholds[recalls[:-1] >= recall])]


@given(seeds, st.integers(1, 60), st.sampled_from([0.05, 0.3, 0.5, 0.8, 0.9, 0.95, 1.0]), st.booleans())
def test_precision_at_recall(seed, n, recall, with_ties):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    y[0] = 1
    score = rng.integers(0, 5, n) if with_ties else rng.standard_normal(n)
    metric = precision_at_recall(recall)
    assert metric(y, score) == pytest.approx(_curve(y, score, recall), abs=1e-12)
    labels = np.array(["spam", "ham"])[y]
    assert metric(labels, score, pos_label="ham") == metric(y, score)
    assert precision_at_recall(recall, pos_label="ham")(labels, score, pos_label="spam") == metric(y, score)


@given(seeds, st.integers(1, 40), st.sampled_from([0.3, 0.77, 0.951]))
def test_precision_at_recall_with_weights(seed, n, recall):
    rng = np.random.default_rng(seed)
    y, weight = rng.integers(0, 2, n), rng.integers(0, 4, n).astype(float)
    y[0], weight[0] = 1, 1.0
    score = rng.integers(0, 6, n)
    got = precision_at_recall(recall)(y, score, sample_weight=weight)
    assert got == pytest.approx(_curve(y, score, recall, weight), abs=1e-12)
    repeated = np.repeat(np.arange(n), weight.astype(int))
    assert got == pytest.approx(precision_at_recall(recall)(y[repeated], score[repeated]), abs=1e-12)


def test_equal_weights_reach_a_recall_as_none_do():
    y, score = [1, 1, 1, 1, 0, 1], [0.0, -1.0, -2.0, -3.0, -4.0, -5.0]
    metric = precision_at_recall(0.8)
    assert metric(y, score, sample_weight=[0.3] * 6) == metric(y, score) == 1.0


def test_precision_at_recall_takes_the_highest_threshold_not_the_highest_precision():
    y, score = np.array([1, 0, 1, 1]), np.array([4, 3, 2, 1])
    assert precision_at_recall(0.3)(y, score) == 1.0
    assert precision_at_recall(0.5)(y, score) == pytest.approx(2 / 3)  # one more row would give 3/4


def test_precision_at_recall_refuses_what_it_cannot_rank():
    metric = precision_at_recall()
    with pytest.raises(UndefinedMetricError, match=r"needs a positive row: .*none is \S+; the labels are"):
        metric(np.zeros(3), np.arange(3))
    with pytest.raises(UndefinedMetricError, match="weight above 0"):
        metric(np.array([1, 0]), np.arange(2), sample_weight=np.array([0, 1]))
    with pytest.raises(InvalidInputError, match="NaN"):
        metric(np.array([0, 1]), np.array([0, np.nan]))
    with pytest.raises(InvalidInputError, match="one score for each row"):
        metric(np.array([0, 1]), np.zeros((2, 3)))
    with pytest.raises(InvalidInputError, match="pos_label"):
        metric(np.array(["a", "b"]), np.arange(2))
    for bad in (0, 1.5, "0.9", np.nan, True):
        with pytest.raises(InvalidInputError, match="recall must be"):
            precision_at_recall(bad)


KINDS = {
    "digits": np.arange(5),
    "negative": np.array([-1, 1, 3, -4, 70]),
    "far apart": np.array([0, 10**9, 5, -(10**12), 2]),
    "floats": np.array([0.5, 1.5, -2.0, 3.0, 4.0]),
    "strings": np.array(["a", "bb", "c", "d", "e"]),
    "objects": np.array(["a", "bb", "c", "d", "e"], dtype=object),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighted", [False, True])
def test_errors_of_classes_and_accuracy(kind, weighted):
    rng = np.random.default_rng(0)
    for _ in range(20):
        n = int(rng.integers(1, 40))
        true, decided = rng.integers(0, 4, n), rng.integers(0, 5, n)
        y, decision = KINDS[kind][true], KINDS[kind][decided]
        weight = rng.random(n) + 0.1 if weighted else None
        matrix = confusion_matrix(true, decided, labels=range(5), sample_weight=weight)
        present = np.unique(true)
        worst = np.max(1 - np.diag(matrix)[present] / matrix.sum(axis=1)[present])
        assert worst_class_error()(y, decision, sample_weight=weight) == pytest.approx(worst)
        recalls = np.diag(matrix)[present] / matrix.sum(axis=1)[present]
        geometric, quadratic = np.prod(recalls) ** (1 / len(recalls)), np.sqrt(np.mean((1 - recalls) ** 2))
        assert g_mean()(y, decision, sample_weight=weight) == pytest.approx(geometric, abs=1e-7)
        assert q_mean()(y, decision, sample_weight=weight) == pytest.approx(1 - quadratic)
        expected = accuracy_score(true, decided, sample_weight=weight)
        assert accuracy()(y, decision, sample_weight=weight) == pytest.approx(expected)


def test_worst_class_of_two_bounds_the_balanced_accuracy():
    rng = np.random.default_rng(1)
    y, decision = rng.integers(0, 2, 100), rng.integers(0, 2, 100)
    assert 1 - worst_class_error()(y, decision) <= balanced_accuracy_score(y, decision)
    assert worst_class_error().greater_is_better is False


@given(seeds, st.integers(2, 30), st.booleans())
def test_r_squared(seed, n, weighted):
    rng = np.random.default_rng(seed)
    y, predicted = rng.integers(0, 3, n).astype(float), rng.integers(0, 3, n).astype(float)
    weight = rng.random(n) + 0.1 if weighted and np.ptp(y) else None
    expected = r2_score(y, predicted, sample_weight=weight)
    assert r_squared()(y, predicted, sample_weight=weight) == pytest.approx(expected)
    assert r_squared()(y, y) == 1.0
    assert np.isnan(r_squared()(y[:1], y[:1]))
    with pytest.raises(UndefinedMetricError, match="weight above 0"):
        r_squared()(y, predicted, sample_weight=np.zeros(n))


@given(seeds, st.integers(1, 60), st.sampled_from([None, "exp"]))
def test_worst_band_relative_error(seed, n, inverse):
    rng = np.random.default_rng(seed)
    price, predicted = rng.integers(1, 80, n).astype(float), rng.lognormal(3, 0.7, n)
    bands = [price <= 17, (price > 17) & (price <= 25), (price > 25) & (price <= 42), price > 42]
    expected = max(mean_absolute_percentage_error(price[b], predicted[b]) for b in bands if b.any())
    given_as = (price, predicted) if inverse is None else (np.log(price), np.log(predicted))
    assert worst_band_relative_error(inverse=inverse)(*given_as) == pytest.approx(expected)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_rows_at_a_threshold_belong_to_the_band_below_it_on_both_scales(kind):
    rng = np.random.default_rng(0)
    for threshold in range(2, 200):  # among them 42, where exp(log(42)) is above 42
        metric, of_logs = (
            worst_band_relative_error((threshold,), inverse=strategy) for strategy in (None, "exp")
        )
        price = np.array([threshold - 1.0, threshold, threshold + 1.0])
        predicted = price * rng.uniform(0.5, 1.5, 3)
        logs, predicted_logs = np.log(price.astype(kind)), np.log(predicted.astype(kind))
        assert of_logs(logs, predicted_logs) == pytest.approx(metric(price, predicted), rel=1e-4)
    assert worst_band_relative_error((-1, 0, 5), inverse="exp")([0.0, 2.0], [0.0, 2.0]) == 0


def test_worst_band_with_weights_other_bands_and_bad_input():
    y, predicted = np.array([1.0, 2.0, 10.0]), np.array([1.0, 4.0, 11.0])
    metric = worst_band_relative_error(thresholds=[5])
    assert metric(y, predicted) == pytest.approx(0.5)
    assert metric(y, predicted, sample_weight=[3, 1, 1]) == pytest.approx(0.25)
    assert worst_band_relative_error(inverse="exp")([0.0], [1e4]) == np.inf  # no warning either
    with pytest.raises(InvalidInputError, match="y is 0"):
        metric(np.array([0.0]), np.array([1.0]))
    with pytest.raises(UndefinedMetricError):
        metric(np.array([]), np.array([]))
    for bad in ((3, 2), (1, 1), ("a",), (np.inf,), 3):
        with pytest.raises(InvalidInputError, match="thresholds"):
            worst_band_relative_error(bad)
    with pytest.raises(InvalidInputError, match="inverse"):
        worst_band_relative_error(inverse="log")


@pytest.mark.parametrize(
    "names", [np.arange(4), np.array(["n", "e", "s", "w"]), np.array([0.63, 0.84, 0.94, 1])]
)
def test_fpr_gap(names):
    rng = np.random.default_rng(2)
    for _ in range(20):
        y, decision, group = rng.integers(0, 2, 80), rng.integers(0, 2, 80), rng.integers(0, 4, 80)
        y[:4], group[:4] = 0, np.arange(4)
        rates = []
        for g in range(4):
            tn, fp, _, _ = confusion_matrix(y[group == g], decision[group == g], labels=[0, 1]).ravel()
            rates.append(fp / (fp + tn))
        assert fpr_gap()(y, decision, {"group": names[group]}) == pytest.approx(max(rates) - min(rates))


def test_fpr_gap_names_the_group_without_negatives():
    y, decision, group = np.array([0, 1, 1]), np.array([0, 1, 0]), np.array([3, 3, 8])
    with pytest.raises(UndefinedMetricError, match="group 8"):
        fpr_gap()(y, decision, {"group": group})
    assert fpr_gap()(y[:2], decision[:2], {"group": group[:2]}) == 0.0


def test_value_per_harm_by_hand():
    y = np.array([1, 1, 0, 0, 0])
    columns = {"value": np.array([10.0, 4, 99, 99, 99]), "harm": np.array([99.0, 99, 5, 2, 0])}
    metric = value_per_harm()
    assert metric(y, np.array([1, 1, 1, 0, 0]), columns) == 14 / 5
    assert metric(y, np.array([1, 0, 1, 1, 0]), columns) == 10 / 7
    assert metric(y, np.array([1, 0, 0, 0, 0]), columns) == 10 / 2  # no harm: the least possible harm
    assert metric(y, np.array([1, 0, 0, 0, 1]), columns) == 10 / 2  # harmed a row without impressions
    assert metric(y, np.zeros(5, dtype=int), columns) == 0.0
    assert metric(y, np.array([0, 0, 1, 0, 0]), columns) == 0.0
    with pytest.raises(UndefinedMetricError, match="no negative row can be harmed"):
        metric(y[:2], np.array([1, 0]), {name: c[:2] for name, c in columns.items()})
    for bad in (-1.0, np.nan):
        with pytest.raises(InvalidInputError, match="harm must be 0 or more"):
            metric(y, y, {**columns, "harm": np.array([1, 1, 1, 1, bad])})


@given(seeds)
def test_doing_less_harm_is_never_worth_less(seed):
    rng = np.random.default_rng(seed)
    y, decision = rng.integers(0, 2, 12), rng.integers(0, 2, 12)
    y[0] = 0
    columns = {"value": rng.random(12), "harm": rng.integers(0, 3, 12) + (np.arange(12) == 0)}
    before = value_per_harm()(y, decision, columns)
    spared = np.where(y == 0, np.where(rng.random(12) < 0.5, 0, decision), decision)
    assert value_per_harm()(y, spared, columns) >= before


def test_mean_of_selected():
    grades, decision = np.array([0.2, 0.9, 0.5]), np.array(["low", "high", "high"])
    metric = mean_of_selected(pos_label="high")
    assert metric(grades, decision) == pytest.approx(0.7)
    assert metric(grades, decision, sample_weight=[9, 3, 1]) == pytest.approx(
        np.average([0.9, 0.5], weights=[3, 1])
    )
    with pytest.raises(
        UndefinedMetricError,
        match=r"nothing was selected among 1 .*none is decided 'high', the decisions are 'low'",
    ):
        metric(grades[:1], decision[:1])
    with pytest.raises(InvalidInputError, match="numbers"):
        metric(decision, decision)


@pytest.mark.parametrize(
    "make",
    [
        accuracy,
        fpr_gap,
        g_mean,
        mean_of_selected,
        precision_at_recall,
        q_mean,
        r_squared,
        value_per_harm,
        worst_class_error,
        worst_band_relative_error,
    ],
)
def test_our_metrics_can_be_pickled_and_compared(make):
    assert pickle.loads(pickle.dumps(make())) == make()


@pytest.mark.parametrize("metric", [accuracy(), g_mean(), q_mean(), worst_class_error()])
@pytest.mark.parametrize("names", [np.arange(-1, 3), np.array(["a", "bc", "d", "e"]), np.arange(4) / 2])
@given(seeds, st.booleans())
def test_many_candidates_at_once_get_the_value_each_gets_alone(metric, names, seed, weighted):
    rng = np.random.default_rng(seed)
    y, decisions = rng.choice(names, 30), rng.choice(names, (7, 30))
    weight = rng.integers(0, 3, 30) * rng.random(30) if weighted else None
    alone = [metric(y, decision, sample_weight=weight) for decision in decisions]
    np.testing.assert_array_equal(metric.values(decisions, LabelledRows(None, y, weight)), alone)


def test_a_metric_that_takes_one_candidate_at_a_time_says_so():
    metric = precision_at_recall()
    assert not metric.takes_many and metric.values(np.zeros((2, 3)), LabelledRows(None, np.ones(3))) is None


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(0, 1)), min_size=1, max_size=12), st.floats(0.01, 1))
def test_the_mean_of_a_top_share_is_what_drawing_lots_among_ties_gives(rows, share):
    scores, grades = np.array([float(s) for s, _ in rows]), np.array([g for _, g in rows])
    count = max(1, int(np.floor(share * len(rows) + 0.5)))
    rng = np.random.default_rng(0)
    drawn = []
    for _ in range(400):
        order = np.lexsort((rng.random(len(rows)), -scores))
        drawn.append(grades[order[:count]].mean())
    value = mean_of_selected(share=share)(grades, scores)
    assert value == pytest.approx(np.mean(drawn), abs=4 * np.std(drawn) / 20 + 1e-9)


def test_metrics_by_name():
    assert resolve_metric("precision_at_recall=0.8").name == "precision at 80% recall"
    assert resolve_metric("mean_of_selected=0.4") == mean_of_selected(share=0.4)
    assert resolve_metric("worst_band_relative_error=1,2") == worst_band_relative_error((1.0, 2.0))
    for wrong, message in (("r_squared=3", "takes no number"), ("precision_at_recall=high", "needs numbers")):
        with pytest.raises(InvalidInputError, match=message) as caught:
            resolve_metric(wrong)
        assert caught.value.argument == "metric"
