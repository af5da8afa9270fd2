"""scikit-learn scorers replayed on recorded predictions give what they give on the model."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import sklearn
from sklearn import config_context
from sklearn.datasets import make_classification, make_regression
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import accuracy_score, f1_score, get_scorer, make_scorer, mean_absolute_error
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.fixes import parse_version

from moew.data import LabelledRows
from moew.exceptions import InvalidInputError
from moew.metrics import Predictions, rehearse, resolve_metric
from moew.metrics._fast import FAST_FORMS

ROWS = np.arange(0, 120, 2)


@pytest.fixture(scope="module")
def binary():
    return make_classification(120, random_state=1)


def _check(scorer, model, X, y):
    metric = resolve_metric(scorer)
    outputs = metric.respond(model, LabelledRows(X, y))
    direct = get_scorer(scorer)(model, X[ROWS], y[ROWS])
    assert metric.value(outputs.take(ROWS), LabelledRows(X[ROWS], y[ROWS])) == pytest.approx(
        direct, rel=1e-12
    )
    assert metric.greater_is_better
    assert len(outputs) == len(X)


@pytest.mark.parametrize(
    "model", [LogisticRegression(), LinearSVC(), RandomForestClassifier(5, random_state=0)]
)
@pytest.mark.parametrize("name", ["accuracy", "f1", "roc_auc", "average_precision", "matthews_corrcoef"])
def test_scorers_of_two_classes(model, name, binary):
    _check(name, model.fit(*binary), *binary)


@pytest.mark.parametrize("name", ["neg_log_loss", "neg_brier_score"])
def test_scorers_of_probabilities(name, binary):
    _check(name, make_pipeline(StandardScaler(), LogisticRegression()).fit(*binary), *binary)


@pytest.mark.parametrize(
    "name", ["accuracy", "f1_macro", "roc_auc_ovr", "roc_auc_ovo_weighted", "neg_log_loss"]
)
def test_scorers_of_more_classes(name):
    X, y = make_classification(120, n_classes=3, n_informative=5, random_state=0)
    _check(name, LogisticRegression().fit(X, y), X, y)


@pytest.mark.parametrize("name", ["r2", "neg_mean_absolute_error", "neg_max_error"])
def test_scorers_of_regression(name):
    X, y = make_regression(120, noise=3.0, random_state=0)
    _check(name, LinearRegression().fit(X, y), X, y)


def test_positive_label_of_the_scorer(binary):
    X, y = binary
    y = np.array(["bad", "good"])[y]
    for response in ("predict_proba", "decision_function"):
        model = LogisticRegression().fit(X, y)

        def share(y_true, score, pos_label="bad"):
            return np.mean(score[y_true == pos_label]) - np.mean(score[y_true != pos_label])

        scorer = make_scorer(share, response_method=response, pos_label="bad")
        assert scorer(model, X, y) > 0
        _check(scorer, model, X, y)


def test_scorer_written_as_a_function(binary):
    X, y = binary
    model = LogisticRegression().fit(X, y)

    def both(estimator, X, y):
        return accuracy_score(y, estimator.predict(X)) + estimator.predict_proba(X)[:, 1].mean()

    metric = resolve_metric(both)
    assert metric.name == "both"
    outputs = metric.respond(model, LabelledRows(X, y))
    assert set(outputs.arrays) == {"predict", "predict_proba"}
    got = metric.value(outputs.take(ROWS), LabelledRows(X[ROWS], y[ROWS]))
    assert got == pytest.approx(both(model, X[ROWS], y[ROWS]))


def test_outputs_do_not_hold_the_model(binary):
    outputs = resolve_metric("roc_auc").respond(LogisticRegression().fit(*binary), LabelledRows(*binary))
    again = pickle.loads(pickle.dumps(outputs))
    assert isinstance(again, Predictions)
    assert b"LogisticRegression" not in pickle.dumps(outputs)
    assert resolve_metric("roc_auc").value(again, LabelledRows(*binary)) > 0.9


def test_decisions_of_a_rule_stand_in_for_predict(binary):
    X, y = binary
    model = LogisticRegression().fit(X, y)
    metric = resolve_metric("accuracy")
    outputs = metric.respond(model, LabelledRows(X, y), decided=y)
    assert metric.value(outputs, LabelledRows(X, y)) == 1.0
    assert metric.value(outputs, LabelledRows(X, y), decided=1 - y) == 0.0
    assert "predict" in outputs.arrays
    ranking = resolve_metric("roc_auc")
    outputs = ranking.respond(model, LabelledRows(X, y))
    assert "predict" not in outputs.arrays
    assert ranking.value(outputs, LabelledRows(X, y), decided=1 - y) == ranking.value(
        outputs, LabelledRows(X, y)
    )


def weighted_cost(y_true, y_pred, cost, *, sample_weight=None):
    return np.average(cost * (y_true != y_pred), weights=sample_weight)


@pytest.mark.parametrize("routing", [False, True])
def test_columns_and_weights_reach_a_scorer(routing, binary):
    X, y = binary
    model = LogisticRegression(C=0.001).fit(X, y)
    rng = np.random.default_rng(0)
    cost, weight = rng.random(120), rng.random(120)
    scorer = make_scorer(weighted_cost, greater_is_better=False)
    with config_context(enable_metadata_routing=routing):
        if routing:
            scorer = scorer.set_score_request(cost="price", sample_weight=True)
        name = "price" if routing else "cost"
        metric = resolve_metric(scorer)
        columns = {name: cost, "group": np.zeros(120)}
        given = LabelledRows(X, y, weight, columns)
        metric.check_columns(given)
        outputs = metric.respond(model, given)
        for w in (None, weight):
            got = metric.value(outputs.take(ROWS), replace(given, sample_weight=w).take(ROWS))
            direct = weighted_cost(
                y[ROWS], model.predict(X[ROWS]), cost[ROWS], sample_weight=None if w is None else w[ROWS]
            )
            assert got == pytest.approx(-direct)
        with pytest.raises(InvalidInputError, match=rf"\['{name}'\].*columns={{'{name}'.*validation=Rows"):
            metric.check_columns(LabelledRows(X, y, columns={"group": cost}))
        with pytest.raises(InvalidInputError, match="each of the 7 rows"):
            metric.check_columns(LabelledRows(X, y[:7], columns=columns))


def test_weights_go_only_to_scorers_that_take_them(binary):
    X, y = binary
    model = LogisticRegression(C=0.001).fit(X, y)
    weight = np.random.default_rng(0).random(120)
    plain = resolve_metric(make_scorer(lambda y, p: np.mean(y == p)))
    taking = resolve_metric("accuracy")
    for metric, expected in [
        (plain, accuracy_score(y, model.predict(X))),
        (taking, accuracy_score(y, model.predict(X), sample_weight=weight)),
    ]:
        outputs = metric.respond(model, LabelledRows(X, y))
        assert metric.value(outputs, LabelledRows(X, y, weight)) == pytest.approx(expected)


@pytest.mark.skipif(parse_version(sklearn.__version__) < parse_version("1.8"), reason="it takes no notice")
def test_routing_without_a_request_is_an_error_that_says_how(binary):
    X, y = binary
    model = LogisticRegression().fit(X, y)
    weight = np.ones(120)
    with config_context(enable_metadata_routing=True):
        metric = resolve_metric("accuracy")
        outputs = metric.respond(model, LabelledRows(X, y))
        with pytest.raises(InvalidInputError, match=r"set_score_request\(sample_weight=True\)"):
            metric.value(outputs, LabelledRows(X, y, weight))
        silent = resolve_metric(get_scorer("accuracy").set_score_request(sample_weight=False))
        assert silent.value(outputs, LabelledRows(X, y, weight * 0 + np.arange(120))) == pytest.approx(
            accuracy_score(y, model.predict(X))
        )
        with pytest.raises(InvalidInputError, match=r"set_score_request\(cost=True\)"):
            resolve_metric(make_scorer(weighted_cost)).check_columns(LabelledRows(X, y))


def test_arguments_fixed_in_make_scorer_are_not_columns(binary):
    X, y = binary
    model = LogisticRegression().fit(X, y)
    metric = resolve_metric(make_scorer(f1_score, average="macro"))
    columns = {"average": np.zeros(120)}
    rows = LabelledRows(X, y, columns=columns)
    assert metric.value(metric.respond(model, rows), rows) == f1_score(y, model.predict(X), average="macro")


def test_what_a_model_lacks_is_named(binary):
    model = make_pipeline(StandardScaler(), LinearSVC()).fit(*binary)
    with pytest.raises(
        InvalidInputError,
        match=r"'neg_log_loss' asks the model for predict_proba, which Pipeline of LinearSVC does not have.*"
        r"\(predict, decision_function\)",
    ):
        resolve_metric("neg_log_loss").respond(model, LabelledRows(*binary))
    regressor = LinearRegression().fit(*binary)
    with pytest.raises(InvalidInputError, match="decision_function or predict_proba, which LinearRegression"):
        resolve_metric("roc_auc").respond(regressor, LabelledRows(*binary))


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("f1", r"make_scorer\(f1_score, pos_label=…\), the label one of '(good|bad)'"),
        (
            "average_precision",
            r"make_scorer\(average_precision_score, response_method=\('decision_function', ",
        ),
    ],
)
def test_a_scorer_that_does_not_know_the_positive_label_is_told(name, advice, binary):
    X, y = binary[0], np.array(["bad", "good"])[binary[1]]
    model = LogisticRegression().fit(X, y)
    metric = resolve_metric(name)
    with pytest.raises(InvalidInputError, match=rf"pos_label=1 is not a valid label.*{advice}"):
        metric.respond(model, LabelledRows(X, y))
    with pytest.raises(InvalidInputError, match=rf"pos_label=1 is not a valid label.*{advice}"):
        rows = LabelledRows(X, y)
        chance = np.random.default_rng(0)
        rehearse(metric, model, rows, y, classes=np.unique(y), pos_label=None, decided=None, rng=chance)


def test_scorers_that_cannot_be_replayed_say_so(binary):
    X, y = binary
    model = LogisticRegression().fit(X, y)
    for scorer, message in [
        (lambda estimator, X, y: estimator.score(X, y), "asked the model for 'score'"),
        (lambda estimator, X, y: estimator.coef_.sum(), "asked the model for 'coef_'"),
        (lambda estimator, X, y: estimator.predict(X + 1).mean(), "other rows than it was given"),
        (lambda estimator, X, y: estimator.predict(X[:5]).mean(), "other rows than it was given"),
        (lambda estimator, X, y: 1.0, "asked the model for none"),
    ]:
        with pytest.raises(InvalidInputError, match=message):
            resolve_metric(scorer).respond(model, LabelledRows(X, y))


def test_a_scorer_that_looks_for_a_method_gets_an_honest_answer(binary):
    X, y = binary

    def either(estimator, X, y):
        method = "predict_proba" if hasattr(estimator, "predict_proba") else "decision_function"
        return float(np.sum(getattr(estimator, method)(X)))

    for model, method in [(LinearSVC(), "decision_function"), (LogisticRegression(), "predict_proba")]:
        outputs = resolve_metric(either).respond(model.fit(X, y), LabelledRows(X, y))
        assert list(outputs.arrays) == [method]
        replayed = resolve_metric(either).value(outputs, LabelledRows(X, y))
        assert replayed == pytest.approx(either(model, X, y))


def test_a_copy_of_the_rows_counts_as_the_rows(binary):
    X, y = binary
    X = X.copy()
    X[3, 2] = np.nan
    model = RandomForestClassifier(5, random_state=0).fit(X, y)
    metric = resolve_metric(lambda estimator, X, y: accuracy_score(y, estimator.predict(X.copy())))
    outputs = metric.respond(model, LabelledRows(X, y))
    assert metric.value(outputs, LabelledRows(X, y)) == accuracy_score(y, model.predict(X))


def test_a_scorer_must_return_one_number(binary):
    model = LogisticRegression().fit(*binary)
    metric = resolve_metric(lambda estimator, X, y: {"mae": mean_absolute_error(y, estimator.predict(X))})
    outputs = metric.respond(model, LabelledRows(*binary))
    with pytest.raises(InvalidInputError, match=r"must return one number.*dict"):
        metric.value(outputs, LabelledRows(*binary))


def test_data_frames_stay_data_frames(binary):
    pd = pytest.importorskip("pandas")
    X, y = pd.DataFrame(binary[0]).add_prefix("x"), binary[1]
    model = LogisticRegression().fit(X, y)
    metric = resolve_metric("roc_auc")
    outputs = metric.respond(model, LabelledRows(X, y))
    got = metric.value(outputs.take(ROWS), LabelledRows(X.iloc[ROWS], y[ROWS]))
    assert got == get_scorer("roc_auc")(model, X.iloc[ROWS], y[ROWS])


@pytest.mark.parametrize("name", sorted(FAST_FORMS))
def test_a_scorer_of_scikit_learn_is_the_same_by_name_and_as_an_object(name):
    scorer, by_name = get_scorer(name), resolve_metric(name)
    made = make_scorer(
        scorer._score_func,
        response_method=scorer._response_method,
        greater_is_better=scorer._sign > 0,
        **scorer._kwargs,
    )
    for one in (scorer, made):
        by_object = resolve_metric(one)
        assert (by_object.known, by_object.bounds) == (name, by_name.bounds)


def test_a_scorer_that_differs_from_a_named_one_is_called_itself():
    requested = make_scorer(accuracy_score)
    with config_context(enable_metadata_routing=True):
        requested.set_score_request(sample_weight="mine")
    others = [make_scorer(f1_score, average="macro"), make_scorer(accuracy_score, normalize=False), requested]
    others.append(make_scorer(accuracy_score, greater_is_better=False))
    assert [resolve_metric(one).known for one in others] == [""] * 4
    assert resolve_metric(make_scorer(f1_score)).known == "f1"
