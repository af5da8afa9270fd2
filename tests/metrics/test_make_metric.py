"""make_metric, resolve_metric and the answers of models."""

from decimal import Decimal
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, Perceptron
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    d2_log_loss_score,
    f1_score,
    get_scorer,
    hamming_loss,
    log_loss,
    make_scorer,
    mean_absolute_error,
    mean_poisson_deviance,
    mean_squared_error,
    ndcg_score,
    roc_auc_score,
)
from sklearn.svm import LinearSVC
from sklearn.utils._response import _get_response_values

from moew.data import LabelledRows
from moew.exceptions import InvalidInputError
from moew.metrics import (
    Metric,
    Predictions,
    ScorerMetric,
    decided_labels,
    make_metric,
    precision_at_recall,
    resolve_metric,
    respond,
)


def test_columns_are_read_from_the_signature():
    def cost(y_true, decision, price, discount=0.0, *, region, pos_label=1, sample_weight=None, **more):
        assert not more
        return np.sum(price * (decision != y_true)) + discount + region[0]

    metric = make_metric(cost, greater_is_better=False)
    assert metric.required_columns == ("price", "region")
    assert metric.optional_columns == ("discount",)
    assert metric.takes_pos_label
    assert metric.takes_sample_weight
    assert metric.name == "cost"
    y, decision = np.array([0, 1]), np.array([1, 1])
    columns = {"price": np.array([3.0, 5.0]), "region": np.array([1, 1]), "group": np.zeros(2)}
    assert metric(y, decision, columns) == 4.0
    assert metric(y, decision, {**columns, "discount": 10}) == 14.0
    with pytest.raises(
        InvalidInputError, match=r"needs \['region'\].*only \['price'\].*columns=\{'region'.*validation=Rows"
    ):
        metric(y, decision, {"price": y})
    metric.check_columns(LabelledRows(None, y, columns=columns))
    with pytest.raises(InvalidInputError, match=r"\['price', 'region'\].*are none"):
        metric.check_columns(LabelledRows(None, y))
    with pytest.raises(InvalidInputError, match=r"'price' for each of the 3 rows.*got 2 values"):
        metric.check_columns(LabelledRows(None, np.zeros(3), columns=columns))
    with pytest.raises(InvalidInputError, match=r"'discount'.*a single value"):
        metric.check_columns(LabelledRows(None, y, columns={**columns, "discount": 1.0}))


def test_the_positive_label_and_the_weights_reach_the_function():
    seen = {}

    @make_metric(response="score", name="mine")
    def metric(y_true, score, pos_label="default", sample_weight=None):
        seen.update(pos_label=pos_label, sample_weight=sample_weight)
        return 1

    assert isinstance(metric, Metric)
    assert (metric.name, metric.response) == ("mine", "score")
    metric([0], [0])
    assert seen == {"pos_label": "default", "sample_weight": None}
    metric([0], [0], pos_label="b", sample_weight=[2])
    assert seen == {"pos_label": "b", "sample_weight": [2]}
    make_metric(metric.function, pos_label="own")([0], [0], pos_label="b")
    assert seen["pos_label"] == "own"
    assert make_metric(lambda y, p: 1.0)([0], [0], pos_label=1, sample_weight=[1]) == 1.0


def test_scikit_learns_functions_are_metrics():
    y, decision = np.array(["a", "b", "b", "a"]), np.array(["a", "b", "a", "a"])
    assert make_metric(f1_score)(y, decision, pos_label="b") == f1_score(y, decision, pos_label="b")
    macro = make_metric(partial(f1_score, average="macro"))
    assert "average" not in macro.optional_columns
    assert macro(y, decision) == f1_score(y, decision, average="macro")


@pytest.mark.parametrize(
    ("result", "number"),
    [
        (1, 1.0),
        (True, 1.0),
        (np.float32(0.5), 0.5),
        (np.array([2]), 2.0),
        (np.array(3.0), 3.0),
        (Fraction(1, 4), 0.25),
        (Decimal("0.5"), 0.5),
        (np.inf, np.inf),
    ],
)
def test_anything_that_is_one_number_is_a_value(result, number):
    value = make_metric(lambda y, p: result)([0], [0])
    assert value == number
    assert type(value) is float


def test_undefined_values_pass_through():
    assert np.isnan(make_metric(lambda y, p: np.nan)([0], [0]))


@pytest.mark.parametrize("result", [None, "0.5", 1j, np.zeros(2), [], {"a": 1}, np.array(["a"]), (1, 2)])
def test_a_metric_that_returns_no_number_is_named(result):
    with pytest.raises(
        InvalidInputError, match=rf"metric 'odd' must return one number.*{type(result).__name__}"
    ):
        make_metric(lambda y, p: result, name="odd")([0], [0])


def test_what_is_not_a_metric_is_refused():
    for bad in (lambda: 1, lambda y: 1, lambda y, *, p: 1):
        with pytest.raises(InvalidInputError, match=r"function of \(y_true, output"):
            make_metric(bad)
    with pytest.raises(InvalidInputError, match=r"\['price'\] only by position"):
        make_metric(lambda y, decision, price, /: 0.0)
    with pytest.raises(InvalidInputError, match="response must be"):
        make_metric(f1_score, response="predict_proba")
    for bad in (None, 3, ["f1"], {"a": f1_score}, LogisticRegression):
        with pytest.raises(InvalidInputError, match="metric must be"):
            resolve_metric(bad)
    with pytest.raises(InvalidInputError, match="decorator"):
        resolve_metric(make_metric(response="score"))
    with pytest.raises(InvalidInputError, match=r"pass precision_at_recall\(…\)"):
        resolve_metric(precision_at_recall)


def test_resolve_metric():
    metric = precision_at_recall()
    assert resolve_metric(metric) is metric
    by_name = resolve_metric("roc_auc")
    assert isinstance(by_name, ScorerMetric)
    assert by_name.name == "roc_auc"
    assert resolve_metric(by_name) is by_name
    assert isinstance(resolve_metric(get_scorer("r2")), ScorerMetric)
    assert isinstance(resolve_metric(lambda estimator, X, y: 1.0), ScorerMetric)
    assert isinstance(resolve_metric(lambda m, X, y: 1.0), ScorerMetric)
    plain = resolve_metric(f1_score)
    assert isinstance(plain, Metric)
    assert plain.response == "decision"
    with pytest.raises(InvalidInputError, match=r"roc_auc.*get_scorer_names"):
        resolve_metric("rocauc")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            mean_absolute_error,
            r"smaller.*\(mean_absolute_error, greater_is_better=False\).*'neg_mean_absolute_error'",
        ),
        (partial(mean_squared_error, multioutput="uniform_average"), "'neg_mean_squared_error'"),
        (hamming_loss, r"make_metric\(hamming_loss, greater_is_better=False\)\.$"),
        (mean_poisson_deviance, "'neg_mean_poisson_deviance'"),
        (log_loss, r"smaller.*and takes prob.*greater_is_better=False, response='proba'\).*'neg_log_loss'"),
        (roc_auc_score, r"takes scores.*make_metric\(roc_auc_score, response='score'\).*'roc_auc'"),
        (average_precision_score, "'average_precision'"),
        (d2_log_loss_score, "response='proba'"),
        (ndcg_score, r"response='score'\)\.$"),
    ],
)
def test_bare_functions_that_would_be_misread_are_refused(function, message):
    with pytest.raises(InvalidInputError, match=message):
        resolve_metric(function)
    chosen = make_metric(function, response="score", greater_is_better=False)
    assert resolve_metric(chosen) is chosen


def test_names_like_scikit_learns_are_fine_elsewhere():
    def my_error(y_true, decision):
        return 0.0

    for function in (my_error, accuracy_score, partial(f1_score, average="macro"), max):
        assert isinstance(resolve_metric(function), Metric)


def test_sample_weights_without_a_default_must_be_given():
    metric = make_metric(lambda y, p, sample_weight: np.average(y == p, weights=sample_weight), name="mine")
    scorer = resolve_metric(make_scorer(metric.function))
    optional = make_metric(lambda y, p, sample_weight=None: 0.0)
    assert metric.requires_sample_weight
    assert scorer.requires_sample_weight
    assert not optional.requires_sample_weight
    assert not resolve_metric("accuracy").requires_sample_weight
    for needing in (metric, scorer):
        needing.check_columns(LabelledRows(None, np.zeros(2), np.ones(2)))
        with pytest.raises(
            InvalidInputError, match=r"without sample weights.*sample_weight=…, and in validation=Rows"
        ):
            needing.check_columns(LabelledRows(None, np.zeros(2)))
    optional.check_columns(LabelledRows(None, np.zeros(2)))
    with pytest.raises(InvalidInputError, match="'mine' cannot do without sample weights"):
        metric([0, 1], np.array([0, 1]))
    assert metric([0, 1], np.array([0, 0]), sample_weight=[3, 1]) == 0.75


def test_bounds_and_the_need_for_two_classes():
    metric = make_metric(lambda y, p: 0.0, bounds=(0, np.inf))
    assert metric.bounds == (0, np.inf)
    assert not metric.needs_two_classes
    assert precision_at_recall().needs_two_classes
    assert precision_at_recall(0.9) == precision_at_recall(0.9)
    assert not resolve_metric("f1").needs_two_classes
    for bad in ((1, 0), (0,), [0, 1], (0, np.nan), ("a", "b"), 3):
        with pytest.raises(InvalidInputError, match=r"bounds must be None or \(lowest, highest\)"):
            make_metric(lambda y, p: 0.0, bounds=bad)


@pytest.fixture(scope="module")
def two_classes():
    X, y = make_classification(200, random_state=0)
    return X, np.array(["no", "yes"])[y]


@pytest.fixture(scope="module")
def three_classes():
    return make_classification(200, n_classes=3, n_informative=4, random_state=0)


@pytest.mark.parametrize(
    "model", [LogisticRegression(), LinearSVC(), RandomForestClassifier(10, random_state=0)]
)
@pytest.mark.parametrize("pos_label", [None, "no", "yes"])
def test_scores_are_of_the_positive_class(model, pos_label, two_classes):
    X, y = two_classes
    model = model.fit(X, y)
    method = "decision_function" if hasattr(model, "decision_function") else "predict_proba"
    expected, _ = _get_response_values(model, X, method, pos_label=pos_label)
    scores = respond(model, X, "score", pos_label)
    assert np.array_equal(scores, expected)
    assert roc_auc_score(y == (pos_label or "yes"), scores) > 0.9
    if hasattr(model, "predict_proba"):
        expected, _ = _get_response_values(model, X, "predict_proba", pos_label=pos_label)
        assert np.array_equal(respond(model, X, "proba", pos_label), expected)


def test_responses_of_more_classes_and_of_regressors(three_classes):
    X, y = three_classes
    model = LogisticRegression().fit(X, y)
    assert np.array_equal(respond(model, X, "decision"), model.predict(X))
    assert np.array_equal(respond(model, X, "score"), model.decision_function(X))
    assert np.array_equal(respond(model, X, "proba"), model.predict_proba(X))
    with pytest.raises(InvalidInputError, match="pos_label=1 needs two classes"):
        respond(model, X, "score", 1)
    regressor = LinearRegression().fit(X, y)
    assert np.array_equal(respond(regressor, X, "decision"), regressor.predict(X))
    assert np.array_equal(respond(regressor, X, "score"), regressor.predict(X))
    with pytest.raises(InvalidInputError, match="is a regressor"):
        respond(regressor, X, "proba")


def test_models_that_cannot_answer_are_refused(two_classes):
    X, y = two_classes
    with pytest.raises(
        InvalidInputError, match=r"Perceptron cannot give them \(no predict_proba\).*response='score'"
    ):
        respond(Perceptron().fit(X, y), X, "proba")
    with pytest.raises(InvalidInputError, match="'maybe' is not one of the classes"):
        respond(LogisticRegression().fit(X, y), X, "score", "maybe")

    class OnlyPredicts(BaseEstimator):
        classes_ = np.array([0, 1])

        def predict(self, X):
            return np.zeros(len(X) - 1)

    with pytest.raises(InvalidInputError, match="no decision_function, no predict_proba"):
        respond(OnlyPredicts(), X, "score")
    with pytest.raises(InvalidInputError, match=r"shape \(199,\) for 200 rows"):
        respond(OnlyPredicts(), X, "decision")


def test_metric_on_recorded_outputs_of_some_rows(two_classes):
    X, y = two_classes
    model = LogisticRegression().fit(X, y)
    metric = make_metric(
        lambda y, score, pos_label: average_precision_score(y, score, pos_label=pos_label), response="score"
    )
    outputs = metric.respond(model, LabelledRows(X, y), pos_label="no")
    rows = np.arange(0, 200, 3)
    got = metric.value(outputs.take(rows), LabelledRows(X[rows], y[rows]), pos_label="no")
    assert got == average_precision_score(y[rows], -model.decision_function(X[rows]), pos_label="no")
    assert "decision" not in outputs.arrays


def test_decisions_of_a_rule_stand_in_for_predict(two_classes):
    X, y = two_classes
    model = LogisticRegression().fit(X, y)
    metric = make_metric(lambda y, decision: np.mean(decision == "yes"))
    decided = decided_labels(np.arange(200) < 50, model.classes_)
    outputs = metric.respond(model, LabelledRows(X, y), decided=decided)
    assert "decision" in outputs.arrays
    assert metric.value(outputs, LabelledRows(X, y)) == 0.25
    all_yes = decided_labels(np.ones(200, bool), model.classes_)
    assert metric.value(outputs, LabelledRows(X, y), decided=all_yes) == 1.0
    assert set(decided_labels(np.array([True, False]), model.classes_, "no")) == {"no", "yes"}
    assert decided_labels(np.array([True]), model.classes_, "no")[0] == "no"


def test_out_of_fold_outputs_come_back_in_order():
    rows = [np.array([4, 0]), np.array([2, 1, 3])]
    classes = np.array([0, 1])
    parts = [Predictions({"score": r * 10.0}, classes) for r in rows]
    pooled = Predictions.pooled(parts, rows)
    assert pooled.arrays["score"].tolist() == [0.0, 10.0, 20.0, 30.0, 40.0]
    assert len(pooled) == 5
    with pytest.raises(InvalidInputError, match="stratified"):
        Predictions.pooled([parts[0], Predictions({"score": np.zeros(3)}, np.array([0, 1, 2]))], rows)


@pytest.mark.parametrize(("name", "response"), [("score", "score"), ("y_proba", "proba")])
def test_a_bare_function_of_scores_is_refused_with_what_to_write(name, response):
    space = {}
    exec(f"def hits(y_true, {name}): return 1.0", space)
    with pytest.raises(InvalidInputError, match=rf"hits takes '{name}'.*response=.{response}"):
        resolve_metric(space["hits"])
    assert resolve_metric(make_metric(space["hits"], response=response)).response == response
