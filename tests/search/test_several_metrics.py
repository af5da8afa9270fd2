"""Several metrics: what is recorded for them, the front, and bounds that the selected model keeps."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, recall_score, roc_auc_score

import moew
from moew import MetricSearch, make_metric
from moew.data import LabelledRows
from moew.decision import GroupThresholds, Tuned, TunedThreshold
from moew.exceptions import InvalidInputError, MoewWarning
from moew.metrics import Predictions, accuracy, fpr_gap, precision_at_recall, resolve_metric
from moew.metrics._resolve import Constraint, resolve_constraints, resolve_metrics
from moew.report import about_marks, marked_name
from moew.report._collect import strategies_of
from moew.search._choices import Chooser, Effort
from moew.search._evaluate import PLAINLY_TUNED, Evaluator
from moew.search._front import undominated

RNG = np.random.default_rng(0)
N = 900
GROUP = RNG.integers(2, size=N)
X = RNG.normal(size=(N, 3))
X[:, 0] += 0.8 * GROUP
Y = (X[:, 0] + 0.5 * X[:, 1] + RNG.normal(size=N) > 0.7).astype(int)
TRAIN, TEST = slice(0, 500), slice(500, N)
SETTINGS = {"n_candidates": 5, "batch_size": 5, "random_state": 0}


def recall(y_true, decision):
    return recall_score(y_true, decision, zero_division=0)


def fitted(metric, estimator=None, **settings):
    search = MetricSearch.from_settings(
        estimator or LogisticRegression(), metric=metric, **{**SETTINGS, **settings}
    )
    metrics = metric if isinstance(metric, list) else [metric]
    of_groups = isinstance(settings.get("decision"), Tuned) or fpr_gap() in metrics
    return search.fit(X[TRAIN], Y[TRAIN], columns={"group": GROUP[TRAIN]} if of_groups else None)


@pytest.fixture(scope="module")
def bounded():
    return fitted(["accuracy", fpr_gap()], constraints="fpr_gap <= 0.1")


def test_metrics_have_the_names_that_the_user_gave():
    assert list(resolve_metrics(None, "classification")) == ["accuracy"]
    assert list(resolve_metrics(["f1", fpr_gap(), recall], "classification")) == ["f1", "fpr_gap", "recall"]
    assert list(resolve_metrics({"gap": fpr_gap(), "a": "accuracy"}, "classification")) == ["gap", "a"]
    twice = resolve_metrics([precision_at_recall(0.9), precision_at_recall(0.95)], "classification")
    assert len(twice) == 2


@pytest.mark.parametrize("given", [[], ["f1", "f1"], {1: "f1"}, {"": "f1"}])
def test_metrics_without_names_are_refused(given):
    with pytest.raises(InvalidInputError):
        resolve_metrics(given, "classification")


def test_strategies_that_break_the_bounds_are_marked_in_the_tables(bounded):
    front = bounded.result_.pareto
    broken = {model.strategy for model in front.models if model.keeps is False}
    assert broken and front.selected.strategy not in broken
    for line in str(bounded.result_).splitlines():
        name = line[:28].rstrip()
        if name in {strategy.name for strategy in bounded.result_.strategies}:
            assert line.endswith("does not keep the bounds") == (name in broken)
    assert "does not keep the bounds" in bounded.result_._repr_html_()
    marked = {marked_name(strategy) for strategy in strategies_of(bounded.result_)}
    assert {f"{strategy} ✗" for strategy in broken} <= marked and front.selected.strategy in marked
    assert about_marks(strategies_of(bounded.result_)) and not about_marks(
        strategies_of(fitted("accuracy").result_)
    )


def test_the_front_says_that_what_is_selected_may_be_off_it(bounded):
    front = bounded.result_.pareto
    off = [replace(model, on_front=model.on_front and not model.selected) for model in front.models]
    assert "is not on the front" in str(replace(front, models=tuple(off)))
    on = [replace(model, on_front=model.on_front or model.selected) for model in front.models]
    assert "is not on the front" not in str(replace(front, models=tuple(on)))


def test_constraints_are_read():
    metrics = resolve_metrics(["accuracy", fpr_gap(), "precision_at_recall=0.9"], "classification")
    found = resolve_constraints(["fpr_gap<=5e-2", " precision_at_recall=0.9 >= .5 "], metrics)
    assert found == (
        Constraint("fpr_gap", True, 0.05),
        Constraint("precision_at_recall=0.9", False, 0.5),
    )
    assert resolve_constraints("false-positive rate gap <= 0.1", metrics)[0].name == "fpr_gap"
    assert [found[0].excess(0.07), found[1].excess(0.7)] == pytest.approx([0.02, -0.2])


@pytest.mark.parametrize(
    "given", ["fpr_gap < 0.1", "fpr_gap <= much", "recall >= 0.5", "fpr_gap <= nan", 3, [0.1], ("fpr_gap", 1)]
)
def test_other_constraints_are_refused_before_training(given):
    with pytest.raises(InvalidInputError, match="constraint"):
        fitted(["accuracy", fpr_gap()], constraints=given)


def test_the_first_metric_alone_decides_without_constraints():
    one, several = fitted("accuracy"), fitted(["accuracy", "roc_auc", make_metric(recall)])
    assert one.result_.pareto is None
    assert [t.value for t in one.result_.trials] == [t.value for t in several.result_.trials]
    assert replace(several.result_, trials=(), pareto=None) == replace(one.result_, trials=())
    assert (one.predict(X) == several.predict(X)).all()


def test_other_metrics_are_those_of_the_same_models_on_new_rows():
    search = fitted(["accuracy", "roc_auc", make_metric(recall), "neg_log_loss"])
    found = search.metric_values(X[TEST], Y[TEST])
    decided, shares = search.predict(X[TEST]), search.predict_proba(X[TEST])[:, 1]
    assert found["accuracy"] == pytest.approx(accuracy_score(Y[TEST], decided))
    assert found["recall"] == pytest.approx(recall_score(Y[TEST], decided))
    assert found["roc_auc"] == pytest.approx(roc_auc_score(Y[TEST], shares))
    assert list(found) == list(search.result_.pareto.metrics)


def test_candidates_have_all_metrics_from_predictions_that_were_recorded_once():
    """With validation rows alone and one model, sklearn's values of that model."""
    search = MetricSearch.from_settings(
        LogisticRegression(), metric=["accuracy", "roc_auc"], evaluate_on="validation", **SETTINGS
    ).fit(X[TRAIN], Y[TRAIN], validation=(X[TEST], Y[TEST]))
    plain = LogisticRegression().fit(X[TRAIN], Y[TRAIN])
    wanted = (
        accuracy_score(Y[TEST], plain.predict(X[TEST])),
        roc_auc_score(Y[TEST], plain.decision_function(X[TEST])),
    )
    found = [m.values for m in search.result_.pareto.models if m.strategy == "unweighted"]
    assert len(found) == 2  # as a candidate, and as a strategy
    assert np.allclose(found, wanted)


def test_the_front_is_what_no_other_beats():
    values = np.random.default_rng(1).integers(6, size=(60, 3)).astype(float)
    values[3, 1] = np.nan
    found = undominated(values)
    for k, value in enumerate(values):
        beaten = any((other >= value).all() and (other > value).any() for other in values)
        assert found[k] == (not beaten and not np.isnan(value).any())


def test_smaller_can_be_better_on_the_front(bounded):
    pareto = bounded.result_.pareto
    assert pareto.metrics == ("accuracy", "fpr_gap")
    front = [model.values for model in pareto.front]
    assert front == sorted(front, reverse=True)  # less accurate, and with a smaller gap
    best = max(model.values[0] for model in pareto.models)
    assert front[0][0] == best
    assert "on the front" in str(pareto)


def test_what_is_selected_keeps_the_bound_with_its_margin(bounded):
    free = fitted(["accuracy", fpr_gap()])
    chosen, before = bounded.result_.pareto.selected, free.result_.pareto.selected
    assert before.values[1] > 0.1  # so that the bound costs something
    assert chosen.keeps
    assert chosen.values[1] < chosen.limits[0] <= 0.1
    assert before.keeps is None
    assert "fpr_gap <= 0.1: kept" in str(bounded.result_)
    here = bounded.metric_values(X[TEST], Y[TEST], columns={"group": GROUP[TEST]})
    assert here["fpr_gap"] < 0.1


def test_the_margin_is_that_of_bootstrap_resamples(bounded):
    """The limit of the unweighted model against a bootstrap of its own."""
    from sklearn.model_selection import cross_val_predict

    decided = cross_val_predict(LogisticRegression(), X[TRAIN], Y[TRAIN], cv=5)
    rng, metric = np.random.default_rng(5), fpr_gap()
    draws = [rng.integers(500, size=500) for _ in range(300)]
    y, group = Y[TRAIN], GROUP[TRAIN]
    values = [metric(y[rows], decided[rows], {"group": group[rows]}) for rows in draws]
    found = next(m for m in bounded.result_.pareto.models if m.strategy == "unweighted" and m.number is None)
    margin = found.limits[0] - found.values[1]
    assert margin == pytest.approx(1.645 * np.std(values), rel=0.25)
    assert not found.keeps


def test_rows_of_one_group_are_resampled_together():
    """Every row four times: the margin of groups is twice that of rows that count as independent."""
    four = np.tile(np.arange(200), 4)
    evaluator = Evaluator(
        accuracy(), None, np.array([0, 1]), constraints=(Constraint("accuracy", False, 0.5),), name="accuracy"
    )
    decided = np.where(np.arange(200) % 4 == 0, 1 - Y[:200], Y[:200])
    margins = []
    for groups in (None, four):
        rows = LabelledRows(X[:200][four], Y[:200][four], groups=groups)
        chooser = Chooser(
            evaluator, rows, "classification", [Predictions({"decision": decided[four]})], None, Effort()
        )
        bounds = chooser.bounds(chooser.single(0, chooser.every))
        margins.append(0.75 - bounds.limits["accuracy"])
    assert margins[0] == pytest.approx(1.645 * np.sqrt(0.75 * 0.25 / 800), rel=0.2)
    assert 1.6 < margins[1] / margins[0] < 2.4


def test_a_bound_that_nothing_keeps_is_said():
    few = {"final": "best", "n_candidates": 2, "batch_size": 2}
    with pytest.warns(MoewWarning, match=r"nothing that was tried keeps accuracy >= 0.99"):
        search = fitted(["accuracy", fpr_gap()], constraints=["accuracy >= 0.99", "fpr_gap <= 0.2"], **few)
    assert any("accuracy >= 0.99" in note for note in search.result_.notes)
    assert "comes closest" in search.result_.reason
    assert search.result_.pareto.selected.keeps is False


def test_example_weights_alone_keep_the_bound():
    search = fitted(
        ["accuracy", fpr_gap()], constraints="fpr_gap <= 0.1", strategies="example weights", honest=None
    )
    assert search.selected_.startswith("example weights")
    assert search.result_.pareto.selected.limits[0] <= 0.1


def test_a_bound_works_in_regression():
    def bias(y_true, decision):
        return abs(float(np.mean(decision - y_true)))

    target = X[:300, 0] ** 2
    search = MetricSearch.from_settings(
        Ridge(),
        metric=["r2", make_metric(bias, greater_is_better=False)],
        constraints="bias <= 1",
        **SETTINGS,
    ).fit(X[:300], target)
    assert search.result_.pareto.selected.keeps


def test_a_saved_search_knows_its_metrics(bounded, tmp_path):
    bounded.save(tmp_path / "search.moew")
    again = moew.load(tmp_path / "search.moew")
    columns = {"columns": {"group": GROUP[TEST]}}
    assert again.result_.pareto == bounded.result_.pareto
    assert again.constraints == "fpr_gap <= 0.1"
    assert again.metric_values(X[TEST], Y[TEST], **columns) == bounded.metric_values(
        X[TEST], Y[TEST], **columns
    )


def test_a_stored_search_goes_on_with_what_was_recorded_for_others(tmp_path):
    settings = {"storage": tmp_path / "study.db", "honest": None}
    first = fitted(["accuracy", "roc_auc"], **settings)
    again = fitted(["accuracy", "roc_auc"], **settings)
    assert again.result_.pareto == first.result_.pareto
    with pytest.raises(InvalidInputError, match="other settings"):
        fitted("accuracy", **settings)


def test_further_predictions_are_packed_pooled_and_averaged():
    rng = np.random.default_rng(0)

    def made():
        return Predictions(
            {"decision": rng.integers(2, size=6)}, np.array([0, 1]), further={"proba": rng.random(6)}
        )

    one, two = made(), made()
    assert Predictions.unpacked(one.packed()).equals(one)
    assert one.compact().take(np.array([4, 1])).equals(one.take(np.array([4, 1])))
    mean = Predictions.averaged([one, two], [1, 3], task="classification", classes=np.array([0, 1]))
    assert mean.further["proba"] == pytest.approx((one.further["proba"] + 3 * two.further["proba"]) / 4)
    rows = [np.array([1, 3, 5]), np.array([0, 2, 4])]
    pooled = Predictions.pooled([one.take(rows[0]), one.take(rows[1])], rows)
    assert pooled.equals(one)
    assert one.for_all_metrics().arrays.keys() == {"decision", "proba"}


def test_another_metric_that_fails_is_noted_and_loses_nothing():
    def broken(y_true, decision):
        raise RuntimeError("no connection")

    search = MetricSearch.from_settings(
        LogisticRegression(),
        metric=[accuracy(), make_metric(broken)],
        honest=None,
        n_candidates=1,
        batch_size=1,
        random_state=0,
    ).fit(X[:200], Y[:200])
    assert np.isnan(search.result_.pareto.selected.values[1])
    assert any("broken" in note and "no connection" in note for note in search.result_.notes)


def test_scores_of_two_positive_classes_are_refused():
    metric = [precision_at_recall(0.9, pos_label=1), precision_at_recall(0.8, pos_label=0)]
    search = MetricSearch.from_settings(LogisticRegression(), metric=metric, **SETTINGS)
    with pytest.raises(InvalidInputError, match="pos_label"):
        search.fit(X[TRAIN], Y[TRAIN])


def test_columns_of_all_metrics_are_needed():
    search = MetricSearch.from_settings(LogisticRegression(), metric=["accuracy", fpr_gap()], **SETTINGS)
    with pytest.raises(InvalidInputError, match="group"):
        search.fit(X[TRAIN], Y[TRAIN])


@pytest.mark.heavy
@pytest.mark.parametrize("decision", ["tuned", Tuned(by="group")])
def test_tuned_decisions_of_every_candidate_keep_the_bound(decision):
    """Precision alone is best for a model that selects next to nobody."""
    search = fitted(["precision", "recall"], constraints="recall >= 0.8", decision=decision)
    chosen = search.result_.pareto.selected
    assert chosen.keeps
    assert search.selected_ != "constant prediction"
    assert type(search.decision_) is (TunedThreshold if decision == "tuned" else GroupThresholds)
    here = search.metric_values(X[TEST], Y[TEST], columns={"group": GROUP[TEST]})
    assert here["recall"] > 0.75
    assert here["precision"] > np.mean(Y[TEST]) + 0.1
    # What every candidate is worth to the search is within the bound, too.
    free = fitted(["precision", "recall"], decision=decision)
    assert max(t.value for t in search.result_.trials) < max(t.value for t in free.result_.trials)


def test_the_rule_that_is_selected_is_the_one_that_was_evaluated():
    search = fitted(["precision", "recall"], constraints="recall >= 0.8", decision="tuned")
    scores = search.fitted_.evaluation_predictions.predictions.scores
    by_hand = (scores > search.decision_.threshold_).astype(int)
    np.testing.assert_array_equal(search.fitted_.evaluation_decisions.after, by_hand)
    values = search.result_.pareto.selected.values
    assert values[1] == pytest.approx(recall_score(search.fitted_.evaluation_decisions.y, by_hand))


def test_tuned_decisions_that_no_threshold_can_save_come_closer():
    y, scores = np.tile([0, 1], 50), np.arange(100.0)
    evaluator = always_tuned(Constraint("recall", False, 1.0), Constraint("precision", False, 0.9))
    predictions, rows = predictions_of(scores, 97.5), LabelledRows(np.zeros((100, 1)), y)
    beyond = [evaluator.excess(predictions, rows, (scores > t).astype(int)) for t in np.arange(-0.5, 98.0)]
    decided = evaluator.decided(predictions, rows)
    assert 0 < evaluator.excess(predictions, rows, decided) < min(beyond) + 0.05 < beyond[-1]


@given(st.integers(0, 2**32 - 1), st.floats(0.1, 1.0), st.integers(5, 200))
def test_decisions_tuned_under_a_bound_keep_it_where_one_can(seed, least, n):
    rng = np.random.default_rng(seed)
    y = np.r_[0, 1, rng.integers(2, size=n - 2)]
    scores, group = rng.normal(size=n).round(1), rng.integers(3, size=n)
    rows = LabelledRows(np.zeros((n, 1)), y, columns={"group": group})
    for tuned in (Tuned(), Tuned(by="group")):
        evaluator = always_tuned(Constraint("recall", False, least), tuned=tuned)
        assert recall(y, evaluator.decided(predictions_of(scores, 1.0), rows)) >= least


def always_tuned(*bounds, tuned=PLAINLY_TUNED):
    others = {"recall": resolve_metric("recall")}
    return Evaluator(
        resolve_metric("precision"), None, np.array([0, 1]), tuned, True, others, "precision", bounds
    )


def predictions_of(scores, own):
    decided = (scores > own).astype(int)
    return Predictions({"predict": decided}, np.array([0, 1]), "classifier", scores, own)
