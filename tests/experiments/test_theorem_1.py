"""Theorem 1: the weights it promises, against brute force over all classifiers of a discrete distribution."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import f1_score, fbeta_score, jaccard_score, precision_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from experiments.theory import (
    ConcaveMeasure,
    Losses,
    RatioMeasure,
    class_errors,
    confusion_cells,
    expected_cost,
    f_measure,
    g_mean,
    h_mean,
    jaccard,
    optimal_class_weights,
    optimal_example_weights,
    optimal_weights,
    precision,
    q_mean,
)
from moew.exceptions import InvalidInputError

CONCAVE = [g_mean(), h_mean(), q_mean(), expected_cost([1.0, 3.0])]


def all_classifiers(joint):
    """The class errors (N, C) of every classifier of a joint distribution (m points of x, C classes)."""
    m, n_classes = joint.shape
    errors = [
        1 - np.array([joint[np.array(h) == c, c].sum() for c in range(n_classes)]) / joint.sum(axis=0)
        for h in product(range(n_classes), repeat=m)
    ]
    return np.array(errors)


def random_joint(seed, m=6, n_classes=2):
    joint = np.random.default_rng(seed).dirichlet(np.full(m * n_classes, 0.7)).reshape(m, n_classes)
    joint += 1e-3
    return joint / joint.sum()


def best_of_mixtures_of_two(measure, errors):
    """Two classes: the best mixture is one of two classifiers."""
    front = errors[np.lexsort(errors.T)]
    best = max(measure(one) for one in errors)
    for k in range(len(front)):
        for j in range(k):
            found = minimize_scalar(
                lambda s, a=front[k], b=front[j]: -measure(s * a + (1 - s) * b),
                bounds=(0, 1),
                method="bounded",
            )
            best = max(best, -found.fun)
    return best


@pytest.mark.parametrize("measure", CONCAVE, ids=lambda m: m.name)
@pytest.mark.parametrize("seed", range(3))
def test_concave_metrics_agree_with_brute_force_over_classifiers_and_their_mixtures(measure, seed):
    errors = all_classifiers(random_joint(seed, m=4))
    found = optimal_weights(measure, errors)
    assert found.value == pytest.approx(best_of_mixtures_of_two(measure, errors), abs=1e-6)
    assert found.best_value == max(measure(one) for one in errors)
    # The theorem: the members of the best mixture minimise the weighted loss, among all classifiers.
    weighted = errors @ found.weights
    assert weighted[found.members] == pytest.approx(weighted.min(), abs=1e-6)
    assert found.shares.sum() == pytest.approx(1)
    assert found.losses == pytest.approx(found.shares @ errors)
    assert found.gap < 1e-8
    assert (found.weights > 0).all()
    assert found.weights.mean() == pytest.approx(1)


@pytest.mark.parametrize("make", [f_measure, precision, jaccard, lambda share: f_measure(share, 2.0)])
@pytest.mark.parametrize("seed", range(5))
def test_ratios_agree_with_the_best_of_all_classifiers(make, seed):
    joint = random_joint(seed)
    measure, errors = make(joint[:, 1].sum()), all_classifiers(joint)
    found = optimal_weights(measure, errors)
    brute = np.nanmax([measure(one) for one in errors])
    # A ratio of linear functions is best at a single classifier: no mixture is better.
    assert found.value == pytest.approx(brute, rel=1e-9)
    assert found.best_value == pytest.approx(brute, rel=1e-9)
    weighted = errors @ found.weights
    assert weighted[found.best] == pytest.approx(weighted.min(), abs=1e-7)


@pytest.mark.parametrize("measure", [g_mean(), h_mean(), q_mean()], ids=lambda m: m.name)
def test_three_classes_agree_with_a_general_optimiser(measure):
    errors = all_classifiers(random_joint(1, m=4, n_classes=3))
    found = optimal_weights(measure, errors)
    front = errors[found.members]
    start = np.full(len(errors), 1 / len(errors))
    slsqp = minimize(
        lambda shares: -measure(shares @ errors),
        start,
        bounds=[(0, 1)] * len(errors),
        constraints={"type": "eq", "fun": lambda shares: shares.sum() - 1},
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert found.value == pytest.approx(-slsqp.fun, abs=1e-5)
    assert found.value >= -slsqp.fun - 1e-9
    assert (front @ found.weights) == pytest.approx((errors @ found.weights).min(), abs=1e-6)


@pytest.mark.parametrize("measure", [*CONCAVE, f_measure(0.3), precision(0.3)], ids=lambda m: m.name)
def test_an_oracle_needs_few_of_the_classifiers(measure):
    errors = all_classifiers(random_joint(3, m=8))
    called = []

    def train(weights):
        called.append(weights)
        return errors[(errors @ weights).argmin()]

    found = optimal_weights(measure, train, start=[1.0, 1.0])
    assert found.value == pytest.approx(optimal_weights(measure, errors).value, abs=1e-7)
    assert found.gap < 1e-8
    assert len(called) <= 15
    two = optimal_weights(measure, train, start=[1.0, 1.0], max_models=1)
    assert len(two.achieved) == 1
    assert np.isnan(two.gap)


@pytest.mark.parametrize("measure", [g_mean(), q_mean(), f_measure(0.3)], ids=lambda m: m.name)
def test_strictly_convex_losses_have_one_best_model_that_the_weights_find(measure):
    # φ_k(θ) = |θ − c_k|²/10: weighted training gives the weighted mean of the centres.
    centres = np.array([[0.0, 0.0], [2.0, 1.0]])

    def losses(theta):
        return ((theta - centres) ** 2).sum(axis=-1) / 10

    def train(weights):
        return losses(weights @ centres / weights.sum())

    found = optimal_weights(measure, train, start=[1.0, 1.0], max_models=200, tolerance=1e-10)
    brute = max(measure(losses(s * centres[1])) for s in np.linspace(0, 1, 20_001))
    assert measure(train(found.weights)) == pytest.approx(brute, abs=1e-6)
    assert found.value == pytest.approx(brute, abs=1e-5)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), k=st.integers(0, 2))
def test_no_achieved_losses_and_no_mixture_are_better(seed, k):
    rng = np.random.default_rng(seed)
    errors = rng.random((12, 3)) * 0.95
    measure = (g_mean(), h_mean(), q_mean())[k]
    found = optimal_weights(measure, errors)
    mixtures = rng.dirichlet(np.full(12, 0.3), 300) @ errors
    assert max(map(measure, mixtures)) <= found.value + 1e-7
    assert found.best_value <= found.value + 1e-9


def test_a_ratio_of_a_concave_and_a_convex_function_that_are_not_linear():
    rng = np.random.default_rng(0)
    errors = rng.random((30, 2)) * 0.9
    measure = RatioMeasure(lambda z: np.sqrt((1 - z[0]) * (1 - z[1])), lambda z: 1 + z[0] ** 2 + z[1] ** 2)
    found = optimal_weights(measure, errors)
    brute = max(measure(s * a + (1 - s) * b) for a in errors for b in errors for s in np.linspace(0, 1, 51))
    assert brute - 1e-9 <= found.value <= brute + 1e-3


def test_numerical_differences_and_gradients_agree():
    errors = np.array([[0.1, 0.5, 0.2], [0.4, 0.1, 0.3], [0.2, 0.3, 0.6]])
    for measure in (g_mean(), h_mean(), q_mean()):
        by_differences = ConcaveMeasure(measure.function)
        for one in errors:
            assert by_differences.slope(one) == pytest.approx(measure.slope(one), abs=1e-7)
        with_gradient, without = (optimal_weights(m, errors).weights for m in (measure, by_differences))
        assert without == pytest.approx(with_gradient, abs=1e-4)
    at_the_edge = ConcaveMeasure(lambda z: -np.sqrt(z[0]) - z[1])  # undefined below 0
    assert np.isfinite(at_the_edge.slope(np.array([0.0, 0.5]))).all()


def test_measures_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    y, decided = (rng.random((2, 200)) < 0.3).astype(int)
    errors = class_errors(y).of(decided)
    for measure, theirs in (
        (f_measure(y.mean()), f1_score(y, decided)),
        (f_measure(y.mean(), 2.0), fbeta_score(y, decided, beta=2.0)),
        (precision(y.mean()), precision_score(y, decided)),
        (jaccard(y.mean()), jaccard_score(y, decided)),
    ):
        assert measure(errors) == pytest.approx(theirs)


def test_losses_with_weights_are_those_of_repeated_rows():
    y, decided, times = np.array(list("abcab")), np.array(list("abbba")), np.array([1, 2, 3, 1, 2])
    for make in (class_errors, confusion_cells):
        weighted = make(y, times.astype(float)).of(decided)
        assert weighted == pytest.approx(make(np.repeat(y, times)).of(np.repeat(decided, times)))


def test_a_fairness_gap_is_refused():
    errors = all_classifiers(random_joint(0))
    gap = ConcaveMeasure(lambda z: -(z.max() - z.min()), name="gap")
    with pytest.raises(InvalidInputError, match="decreases in every loss"):
        optimal_weights(gap, errors)


def test_a_convex_metric_is_refused():
    with pytest.raises(InvalidInputError, match="needs a concave metric"):
        optimal_weights(
            ConcaveMeasure(lambda z: float(((1 - z) ** 2).sum())), [[0.0, 1.0], [0.6, 0.4], [1.0, 0.0]]
        )


@pytest.mark.parametrize(
    ("achievable", "message"),
    [
        ([0.1, 0.2], r"finite losses \(N, K\)"),
        ([[np.nan, 0.2]], r"finite losses \(N, K\)"),
        (lambda weights: weights, "needs start"),
    ],
)
def test_what_cannot_be_achieved_is_refused(achievable, message):
    with pytest.raises(InvalidInputError, match=message):
        optimal_weights(g_mean(), achievable)


def test_other_arguments_that_are_refused():
    with pytest.raises(InvalidInputError, match="must be a ConcaveMeasure"):
        optimal_weights(lambda z: 0.0, [[0.1, 0.2]])
    with pytest.raises(InvalidInputError, match="between 0 and 1, got 1.5"):
        f_measure(1.5)
    with pytest.raises(InvalidInputError, match="positive number for each loss"):
        expected_cost([1.0, 0.0])
    with pytest.raises(InvalidInputError, match="at least two classes"):
        class_errors([1, 1])
    with pytest.raises(InvalidInputError, match="3 finite numbers"):
        class_errors([0, 1, 1], [1.0, -1.0, 1.0])
    with pytest.raises(InvalidInputError, match=r"K = 1 names, at least 2 kinds of rows and C = 2"):
        Losses(np.array([0, 1]), np.array([0, 1]), np.zeros((1, 1, 2)), ("one",))
    with pytest.raises(InvalidInputError, match="'c' is not one of the classes"):
        class_errors(["a", "b"]).of(["a", "c"])
    with pytest.raises(InvalidInputError, match=r"shape \(n, 2\) or \(n,\) for 2 rows"):
        optimal_class_weights(g_mean(), [0, 1], [0.1])


def rows_of(joint, n, seed):
    """n rows of a discrete distribution, x as indicators, so that a linear model is any classifier."""
    m, n_classes = joint.shape
    cells = np.random.default_rng(seed).choice(joint.size, n, p=joint.ravel())
    x, y = np.divmod(cells, n_classes)
    return np.eye(m)[x], x, y


@pytest.mark.parametrize("name", ["G-mean", "Q-mean", "F-measure", "Jaccard index"])
def test_training_finds_the_best_of_all_classifiers(name):
    X, x, y = rows_of(random_joint(2, m=5), 600, 0)
    measures = (g_mean(), q_mean(), f_measure(y.mean()), jaccard(y.mean()))
    measure = next(m for m in measures if m.name == name)
    losses = class_errors(y)
    every = [losses.of(np.array(h)[x]) for h in product([0, 1], repeat=5)]
    found = optimal_example_weights(measure, losses, DecisionTreeClassifier(random_state=0), X, y)
    assert found.theorem.value == pytest.approx(optimal_weights(measure, every).value, abs=1e-6)
    assert found.value == pytest.approx(measure(losses.of(found.estimator.predict(X))))
    assert found.value <= max(measure(one) for one in every) + 1e-9
    if name in ("F-measure", "Jaccard index"):
        assert found.value == pytest.approx(max(measure(one) for one in every))
    assert found.sample_weight is not None
    assert found.sample_weight.mean() == pytest.approx(1)
    by_class = [found.sample_weight[y == c] for c in (0, 1)]
    ratio = by_class[1][0] / by_class[0][0]
    wanted = found.weights[1] / y.mean() / (found.weights[0] / (1 - y.mean()))
    assert ratio == pytest.approx(wanted)


def test_cells_of_several_classes_are_weighted_one_by_one():
    # Three classes; calling a "0" a "2" costs 20 times as much as any other confusion.
    X, x, y = rows_of(random_joint(5, m=5, n_classes=3), 900, 1)
    losses = confusion_cells(y)
    costs = np.array([20.0 if name == "0 as 2" else 1.0 for name in losses.names])
    measure = expected_cost(costs)
    every = max(measure(losses.of(np.array(h)[x])) for h in product(range(3), repeat=5))
    found = optimal_example_weights(measure, losses, DecisionTreeClassifier(random_state=0), X, y)
    assert found.value == pytest.approx(every)
    assert found.sample_weight is None
    assert found.costs.shape == (900, 3)
    assert found.costs[y == 0][0, 2] == pytest.approx(20 * found.costs[y == 0][0, 1])
    assert found.costs[y == 0][0, 0] == 0


def test_a_density_ratio_moves_the_optimum_to_the_distribution_that_matters():
    # The training rows hold both kinds of x as often; those that matter hold the second four times as often.
    X, x, y = rows_of(random_joint(4, m=4), 2000, 2)
    ratio = np.where(x < 2, 0.4, 1.6)
    measure, losses = g_mean(), class_errors(y, ratio)
    every = [losses.of(np.array(h)[x]) for h in product([0, 1], repeat=4)]
    found = optimal_example_weights(measure, losses, DecisionTreeClassifier(random_state=0), X, y)
    assert found.theorem.value == pytest.approx(optimal_weights(measure, every).value, abs=1e-6)
    same_class = y == 1
    heavy, light = found.sample_weight[same_class & (x >= 2)], found.sample_weight[same_class & (x < 2)]
    assert heavy[0] / light[0] == pytest.approx(4)


def test_losses_out_of_fold():
    X, _, y = rows_of(random_joint(2, m=5), 300, 0)
    found = optimal_example_weights(g_mean(), class_errors(y), LogisticRegression(), X, y, cv=3)
    assert 0 < found.value <= 1
    again = optimal_example_weights(g_mean(), class_errors(y), LogisticRegression(), X, y, cv=3)
    np.testing.assert_array_equal(found.sample_weight, again.sample_weight)


def test_estimators_and_rows_that_are_refused():
    X, _, y = rows_of(random_joint(2, m=5), 50, 0)
    with pytest.raises(InvalidInputError, match="KNeighborsClassifier could not be trained with weights"):
        optimal_example_weights(g_mean(), class_errors(y), KNeighborsClassifier(), X, y)
    with pytest.raises(InvalidInputError, match="50 rows and the losses were made of 10"):
        optimal_example_weights(g_mean(), class_errors(y[:10]), Ridge(), X, y)


@pytest.mark.parametrize(
    "measure", [g_mean(), q_mean(), f_measure(0.4), precision(0.4)], ids=lambda m: m.name
)
def test_class_weights_from_scores_are_best_of_all_thresholds(measure):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [60, 40])
    scores = np.round(rng.normal(y, 1.2), 1)  # some are equal
    found = optimal_class_weights(measure, y, scores)
    losses = class_errors(y)
    every = [losses.of((scores > t).astype(int)) for t in [-np.inf, *np.unique(scores)]]
    assert found.value == pytest.approx(optimal_weights(measure, every).value, abs=1e-7)
    two = np.stack([-scores / 2, scores / 2], axis=1)
    assert optimal_class_weights(measure, y, two).weights == pytest.approx(found.weights)


def test_class_weights_of_true_probabilities_are_the_theorem_s():
    joint = random_joint(7, m=30, n_classes=3)
    _, x, y = rows_of(joint, 20_000, 0)
    empirical = np.zeros((30, 3))
    np.add.at(empirical, (x, y), 1)
    with np.errstate(divide="ignore"):
        scores = np.log(np.maximum(empirical / empirical.sum(axis=1, keepdims=True), 1e-9))[x]
    found = optimal_class_weights(g_mean(), y, scores)
    losses = class_errors(y)
    rng = np.random.default_rng(0)
    others = [losses.of((scores + rng.normal(size=3)).argmax(axis=1)) for _ in range(300)]
    assert max(map(g_mean(), others)) <= found.value + 1e-3
