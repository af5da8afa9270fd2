"""Which rows candidates are evaluated on, and what is said about it."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from problems import mixed_frame, shifted_classes, skewed_target
from scipy.sparse import csr_matrix
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import make_scorer
from sklearn.model_selection import KFold, cross_val_predict

import moew
from moew import MetricSearch, Rows, make_metric
from moew.decision import GroupThresholds, ShareSelected, Tuned
from moew.exceptions import InvalidInputError, MoewWarning
from moew.metrics import worst_class_error
from moew.search import _prepare
from moew.search._prepare import prepare

ROWS = shifted_classes(200)
NOTHING = Rows(None, None)


def search_of(estimator=None, **settings):
    settings = {"n_candidates": 2, "batch_size": 2, "embedding": "label", "random_state": 0, **settings}
    return MetricSearch.from_settings(LogisticRegression() if estimator is None else estimator, **settings)


def evaluated(training, given=NOTHING, **settings):
    return prepare(search_of(**settings).settings, training, given)


def plane(n, seed, centre=0.0, share=0.4):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < share).astype(int)
    return Rows(np.column_stack([rng.normal(centre, 1, n), rng.standard_normal(n) + y]), y)


def test_without_validation_rows_every_row_is_evaluated():
    data = evaluated(Rows(ROWS.X, ROWS.y)).data
    assert (data.n_given_rows, len(data.validation)) == (0, len(ROWS.y))
    assert (len(data.folds), len(data.finalist_folds)) == (2, 5)
    np.testing.assert_array_equal(data.validation.X, ROWS.X)


def test_without_a_shift_all_training_rows_are_evaluated_beside_the_given_ones():
    prepared = evaluated(plane(300, 3), plane(100, 4))
    assert (prepared.data.n_given_rows, len(prepared.data.validation)) == (100, 400)
    assert prepared.notes == ("evaluated on 100 validation rows and 300 training rows out of fold.",)


@pytest.mark.parametrize("shift", [{"centre": 1.0}, {"share": 0.8}])
def test_with_a_shift_fewer_training_rows_are_evaluated_and_they_are_like_the_validation_rows(shift):
    training, validation = plane(1500, 0), plane(400, 1, **shift)
    prepared = evaluated(training, validation)
    data = prepared.data
    n_drawn = len(data.validation) - 400
    assert 50 < n_drawn < 1400
    assert (
        f"{n_drawn:,} training rows out of fold (of 1,500, which are distributed otherwise"
        in prepared.notes[0]
    )
    drawn = data.validation.take(np.arange(400, 400 + n_drawn))
    of_all = training.X[:, 0].mean(), training.y.mean()
    for place, values, given in ((0, drawn.X[:, 0], validation.X[:, 0]), (1, drawn.y, validation.y)):
        assert abs(values.mean() - given.mean()) < 0.15 + abs(of_all[place] - given.mean()) / 3


def test_beside_enough_validation_rows_no_training_rows_are_evaluated(monkeypatch):
    monkeypatch.setattr(_prepare, "ENOUGH_GIVEN", 100)
    prepared = evaluated(plane(300, 3), plane(100, 4))
    assert len(prepared.data.validation) == 100
    assert not prepared.data.cross_validated
    assert prepared.notes == ("evaluated on the 100 validation rows alone: there are enough of them.",)


def test_of_very_many_rows_only_some_are_evaluated(monkeypatch):
    monkeypatch.setattr(_prepare, "MOST_EVALUATED", 150)
    for given, n_given in ((NOTHING, 0), (plane(100, 4), 100)):
        data = evaluated(plane(300, 3), given).data
        assert 100 < len(data.validation) - n_given < 200
        assert sum(len(fold.scored) for fold in data.finalist_folds) == len(data.validation)


@make_metric
def by_amount(y_true, decisions, amount):
    return float(np.average(y_true == decisions, weights=amount))


def with_amounts(n, seed):
    rows = plane(n, seed)
    X = pd.DataFrame(rows.X, columns=["a", "amount"])
    X["amount"] = np.exp(X["amount"])
    return replace(rows, X=X)


def test_a_column_that_was_passed_is_not_taken_from_the_features():
    training, given = with_amounts(200, 0), with_amounts(100, 1)
    passed = {"amount": np.arange(1.0, 101.0)}
    prepared = evaluated(training, replace(given, columns=passed), metric=by_amount)
    assert prepared.notes == (
        "evaluated on the 100 validation rows alone: the training rows do not have 'amount'.",
    )
    np.testing.assert_array_equal(prepared.data.validation.columns["amount"], passed["amount"])
    with pytest.raises(InvalidInputError, match=r"needs \['amount'\] .* pass columns=.* in validation=Rows"):
        evaluated(replace(training, columns={"amount": np.ones(200)}), given, metric=by_amount)
    from_X = evaluated(training, given, metric=by_amount).data.validation
    np.testing.assert_array_equal(from_X.columns["amount"], from_X.X["amount"])


def test_a_column_that_was_passed_in_fit_must_be_passed_for_new_rows_even_after_loading(tmp_path):
    training, given = with_amounts(200, 0), with_amounts(100, 1)
    search = search_of(metric="balanced_accuracy", decision=Tuned(by="amount"))
    side = {"amount": np.arange(100) % 2}
    search.fit(training.X, training.y, validation=Rows(given.X, given.y, columns=side))
    search.save(tmp_path / "search.moew")
    for one in (search, moew.load(tmp_path / "search.moew")):
        assert len(one.predict(given.X, columns=side)) == 100
        with pytest.raises(InvalidInputError, match="amount"):
            one.predict(given.X)
        with pytest.raises(InvalidInputError, match="amount"):
            one.metric_value(given.X, given.y)


@pytest.mark.parametrize("nothing", [np.nan, None])
def test_missing_values_of_a_column_are_named_before_training(nothing):
    amount = np.ones(100, dtype=object)
    amount[[3, 5]] = nothing
    words = r"needs 'amount' for each row, but it is missing \(NaN or None\) in 2 of the 100 rows"
    known, missing = {"amount": np.ones(100)}, {"amount": amount}
    rows, scorer = plane(100, 0), make_scorer(lambda y, p, amount: 1.0)
    for metric in (by_amount, scorer):
        with pytest.raises(InvalidInputError, match=words):
            evaluated(replace(rows, columns=missing), metric=metric)
        with pytest.raises(InvalidInputError, match=words):
            evaluated(replace(rows, columns=known), replace(plane(100, 1), columns=missing), metric=metric)
        prepared = evaluated(
            replace(rows, columns=missing), replace(plane(100, 1), columns=known), metric=metric
        )
        (note,) = prepared.notes
        assert re.search("evaluated on the 100 validation rows alone: of the training rows .*" + words, note)


def test_training_columns_that_nothing_uses_are_named():
    rows = replace(plane(100, 0), columns={"amount": np.ones(100), "amuont": np.ones(100)})
    with pytest.warns(MoewWarning, match=r"takes the columns \['amuont'\]"):
        evaluated(rows, metric=by_amount)
    evaluated(rows, metric=by_amount, embedding=["amuont"])  # used


@pytest.mark.heavy
def test_a_feature_that_the_metric_takes_gives_no_thresholds_by_group():
    """Not for two classes, and several classes and numbers are searched as ever."""

    @make_metric
    def least_right(y_true, decisions, side):
        right = np.abs(y_true - decisions) < 0.5
        return float(min(right[side == one].mean() for one in np.unique(side)))

    def framed(X):
        return pd.DataFrame(X, columns=["a", "b"]).assign(side=(X[:, 0] > 0.5).astype(int))

    two, three, numbers = ROWS, shifted_classes(200, 3), skewed_target(150)
    for rows, estimator in ((two, None), (three, None), (numbers, Ridge())):
        search = search_of(estimator, metric=least_right)
        search.fit(framed(rows.X), rows.y, validation=(framed(rows.X_val), rows.y_val))
        assert "GroupThresholds" not in repr(search.fitted_.simple_models)
        assert "GroupThresholds" not in repr(search.decision_)
    asked = search_of(metric=least_right, decision=Tuned(by="side"))
    asked.fit(framed(two.X), two.y, validation=(framed(two.X_val), two.y_val))
    assert isinstance(asked.decision_, GroupThresholds)


def test_columns_that_only_the_validation_rows_have_are_evaluated_there_alone_and_said_once():
    amount = {"amount": np.arange(1.0, len(ROWS.y_val) + 1)}
    search = search_of(metric=by_amount)
    search.fit(ROWS.X, ROWS.y, validation=Rows(ROWS.X_val, ROWS.y_val, columns=amount))
    said = [note for note in search.result_.notes if "amount" in note]
    assert said == [
        f"evaluated on the {len(ROWS.y_val)} validation rows alone: the training rows do not have 'amount'."
    ]
    assert search.result_.n_out_of_fold == 0
    decided = search.unweighted_estimator_.predict(ROWS.X_val)
    assert search.unweighted_score_ == by_amount(ROWS.y_val, decided, amount)


@pytest.mark.parametrize("sides", [(None, 2.0), (2.0, None), (2.0, 2.0)])
def test_missing_weights_are_ones(sides):
    training, given = (
        replace(rows, sample_weight=None if weight is None else np.full(len(rows.y), weight))
        for rows, weight in zip((plane(300, 3), plane(100, 4)), sides, strict=True)
    )
    data = evaluated(training, given).data
    assert len(data.validation) == 400
    np.testing.assert_array_equal(data.validation.sample_weight, np.full(400, sides[1] or 1.0))


def wrong_labels(n, n_wrong, seed=0):
    """n rows, and as many as n_wrong with wrong labels and weight 0."""
    right, wrong = plane(n, seed), plane(n_wrong, seed + 1)
    weight = np.repeat([1.0, 0.0], [n, n_wrong])
    return Rows(np.vstack([right.X, wrong.X]), np.r_[right.y, 1 - wrong.y], weight)


@make_metric
def share_right(y_true, decisions):
    return float(np.mean(y_true == decisions))


@pytest.mark.parametrize("metric", ["accuracy", share_right], ids=["weights", "no weights"])
@pytest.mark.parametrize(
    ("evaluate_on", "given"),
    [
        ("auto", True),
        (3, True),
        ("validation", True),
        ("auto", False),
        (3, False),
        (0.3, False),
        (KFold(3), False),
    ],
    ids=str,
)
def test_rows_of_weight_0_are_never_evaluated(metric, evaluate_on, given):
    training = wrong_labels(200, 100)
    rows = wrong_labels(80, 40, 5) if given else NOTHING
    prepared = evaluated(training, rows, metric=metric, evaluate_on=evaluate_on)
    data = prepared.data
    of_training = [] if evaluate_on == "validation" else [training.X[:200]]
    right = np.vstack([*of_training, *([rows.X[:80]] if given else [])])
    assert {tuple(x) for x in data.validation.X} <= {tuple(x) for x in right}
    if evaluate_on != 0.3:
        assert len(data.validation) == len(right)
    np.testing.assert_array_equal(data.validation.sample_weight, 1.0)
    scored = np.concatenate([fold.scored for fold in data.folds])
    np.testing.assert_array_equal(np.sort(scored), np.arange(len(data.validation)))
    assert any("have weight 0 and are not evaluated" in note for note in prepared.notes)
    for fold in data.folds:  # they are trained on, with their weight
        assert fold.train is None or (fold.train >= 200).any()


def test_rows_of_weight_0_are_not_set_aside():
    training, given = plane(200, 0), wrong_labels(100, 50, 5)
    data = evaluated(training, given, honest="holdout").data
    assert len(data.holdout) + data.n_given_rows == 100
    assert {tuple(x) for x in data.holdout.X} <= {tuple(x) for x in given.X[:100]}


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("metric", [None, share_right], ids=["weights", "no weights"])
def test_the_honest_score_is_that_of_the_rows_that_count(given, metric):
    training, test = wrong_labels(600, 600), plane(4000, 8)
    validation = plane(150, 7)
    rows = {"validation": (validation.X, validation.y)} if given else {}
    search = search_of(metric=metric).fit(training.X, training.y, training.sample_weight, **rows)
    assert search.honest_score_ == pytest.approx(search.metric_value(test.X, test.y), abs=0.04)


def test_for_a_metric_without_weights_rows_are_drawn_in_proportion():
    rng = np.random.default_rng(0)
    rows = plane(2000, 0)
    weight = np.where(rows.y == 1, 3.0, 1.0) * rng.choice([1.0, 2.0], 2000)
    training = replace(rows, sample_weight=weight)
    drawn = evaluated(training, metric=share_right)
    part = drawn.data.validation
    n = len(part)
    assert 800 < n < 1800
    assert part.y.mean() == pytest.approx(np.average(rows.y, weights=weight), abs=0.02)
    (note,) = drawn.notes
    assert note.startswith(
        f"{n:,} of the 2,000 rows are drawn in proportion to their weights, to be evaluated: "
    )
    again = evaluated(training, metric=share_right).data.validation
    np.testing.assert_array_equal(part.X, again.X)
    # One that takes weights gets them, and a second metric that takes none has rows drawn for both.
    both = evaluated(training, metric=["accuracy", share_right]).data.validation
    np.testing.assert_array_equal(both.X, part.X)
    alone = evaluated(training, metric="accuracy").data.validation
    np.testing.assert_array_equal(alone.sample_weight, weight)


def test_training_rows_are_drawn_by_their_weights_to_be_evaluated_beside_given_ones():
    training = plane(1500, 0)
    weight = np.where(training.y == 1, 4.0, 1.0)
    share = np.average(training.y, weights=weight)
    given = plane(400, 1, share=share)  # the training rows as their weights make them
    for metric in ("accuracy", share_right):
        prepared = evaluated(replace(training, sample_weight=weight), given, metric=metric)
        rows = prepared.data.validation.take(np.arange(400, len(prepared.data.validation)))
        assert not any("distributed otherwise" in note for note in prepared.notes)
        assert np.average(rows.y, weights=rows.sample_weight) == pytest.approx(share, abs=0.03)


def test_values_of_a_metric_are_of_the_rows_that_count():
    search = search_of(metric=share_right).fit(ROWS.X, ROWS.y)
    test = wrong_labels(300, 300)
    right = search.metric_value(test.X[:300], test.y[:300])
    assert search.metric_value(test.X, test.y, test.sample_weight) == right
    assert search.metric_values(test.X, test.y, test.sample_weight) == {"share_right": right}
    weight = 1.0 + 3 * test.y
    with pytest.warns(MoewWarning, match=r"takes no sample weights: \d+ of the 600 rows are"):
        value = search.metric_value(test.X, test.y, weight)
    of_all = np.average(search.predict(test.X) == test.y, weights=weight)
    assert value == pytest.approx(of_all, abs=0.05)


def test_a_rule_is_fitted_on_rows_by_their_weights():
    """Half of the weight is on rows of high scores: the best 20 % by weight are the best 10 % of those."""
    rows = plane(2000, 0)
    weight = np.where(rows.X[:, 1] > np.median(rows.X[:, 1]), 3.0, 1.0)
    for on in ("train", "validation"):
        search = search_of(
            metric="accuracy", decision=ShareSelected(0.2, on=on), strategies="example weights"
        )
        search.fit(rows.X, rows.y, weight)
        assert np.average(search.predict(rows.X), weights=weight) == pytest.approx(0.2, abs=0.03)


def test_too_few_rows_of_positive_weight_are_refused():
    given = plane(50, 4)
    weight = np.zeros(50)
    weight[7] = 1.0
    with pytest.raises(InvalidInputError, match="1 of the 50 rows to evaluate on are left"):
        evaluated(plane(100, 3), replace(given, sample_weight=weight))


def test_graded_labels_are_evaluated_alone():
    graded = ROWS.y_val * 0.8 + 0.1

    @make_metric(response="proba")
    def closeness(y_true, probability):
        return -float(np.mean(np.abs(y_true - probability)))

    prepared = evaluated(Rows(ROWS.X, ROWS.y), Rows(ROWS.X_val, graded), metric=closeness)
    assert len(prepared.data.validation) == len(graded)
    assert prepared.notes[0].endswith("their labels are not those of the training rows.")


def test_a_class_of_one_row_is_evaluated_on_the_validation_rows_alone_or_refused():
    y = np.where(np.arange(len(ROWS.y)) == 0, 2, ROWS.y)
    validation = Rows(ROWS.X_val, np.where(np.arange(len(ROWS.y_val)) < 5, 2, ROWS.y_val))
    prepared = evaluated(Rows(ROWS.X, y), validation)
    assert prepared.notes[0].endswith("a class has fewer training rows than there are folds.")
    with pytest.raises(InvalidInputError, match=r"the classes \[2\] have one row each.*pass validation"):
        evaluated(Rows(ROWS.X, y))
    with pytest.raises(
        InvalidInputError, match="evaluate_on=5 cannot evaluate training rows .* fewer training"
    ):
        evaluated(Rows(ROWS.X, y), validation, evaluate_on=5)


def test_a_rare_class_gets_as_many_finalist_folds_as_it_has_rows():
    y = np.where(np.arange(len(ROWS.y)) < 3, 2, ROWS.y)
    data = evaluated(Rows(ROWS.X, y)).data
    assert len(data.finalist_folds) == 3
    for fold in (*data.folds, *data.finalist_folds):
        assert set(y[fold.train]) == {0, 1, 2}


def test_a_number_of_folds_beside_validation_rows_is_that_many_folds():
    prepared = evaluated(plane(300, 3), plane(100, 4), evaluate_on=4)
    assert len(prepared.data.folds) == len(prepared.data.finalist_folds) == 4
    assert prepared.data.n_given_rows == 100
    assert len(prepared.data.validation) == 400


def test_validation_rows_alone_are_evaluated_as_in_the_paper():
    prepared = evaluated(plane(300, 3), plane(100, 4), evaluate_on="validation")
    assert len(prepared.data.validation) == 100
    assert prepared.notes == ()
    assert not prepared.data.cross_validated
    with pytest.raises(
        InvalidInputError, match="evaluate_on='validation' is for given validation rows: pass validation"
    ):
        evaluated(plane(300, 3), evaluate_on="validation")


@pytest.mark.parametrize(
    "evaluate_on", [None, "car", "", True, False, 0, 1, -3, 0.0, 1.0, 1.5, -0.2, float("nan")]
)
def test_values_that_say_nothing_about_rows_to_evaluate_on_are_refused_before_anything_is_trained(
    evaluate_on,
):
    class Never(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            raise AssertionError("trained")

    given = {"validation": (ROWS.X_val, ROWS.y_val)}
    for rows in ({}, given):
        with pytest.raises(InvalidInputError, match="evaluate_on"):
            search_of(Never(), evaluate_on=evaluate_on).fit(ROWS.X, ROWS.y, **rows)


@pytest.mark.parametrize(
    ("setting", "value", "words"),
    [
        ("strategies", "yes", "strategies must be 'auto', or a list of .* names among .*; got 'yes'"),
        ("strategies", 1, "strategies must be 'auto', or a list of .*; got 1"),
        ("strategies", [], r"strategies must be 'auto', or a list of .*; got \[\]"),
        ("strategies", ["auto", True], "strategies must be 'auto', or a list of .*; got True"),
        ("strategies", "class weights", "strategies must hold 'example weights'"),
        ("final", "mean", "final must be one of 'ensemble', 'smoothed', 'best', got 'mean'"),
        ("final", None, "final must be one of"),
    ],
)
def test_other_wrong_settings_are_refused(setting, value, words):
    with pytest.raises(InvalidInputError, match=words):
        search_of(**{setting: value}).fit(ROWS.X, ROWS.y)


def test_more_folds_than_rows_or_groups_are_refused():
    with pytest.raises(InvalidInputError, match="evaluate_on=500 cannot split these rows.*rows"):
        evaluated(plane(300, 3), plane(100, 4), evaluate_on=500)
    training, validation = plane(300, 3), plane(100, 4)
    grouped = Rows(training.X, training.y, groups=np.arange(300) % 3)
    given = Rows(validation.X, validation.y, groups=np.arange(100) % 20 + 50)
    with pytest.raises(InvalidInputError, match="evaluate_on=5 cannot split these rows: there are 3 groups"):
        evaluated(grouped, given, evaluate_on=5)


@pytest.mark.parametrize("n_groups", [2, 3, 4])
def test_validation_rows_of_few_groups_are_evaluated_beside_training_rows(n_groups):
    training, validation = plane(300, 3), plane(100, 4)
    grouped = Rows(training.X, training.y, groups=np.arange(300) % 60)
    given = Rows(validation.X, validation.y, groups=np.arange(100) % n_groups + 100)
    data = evaluated(grouped, given).data
    assert len(data.validation) > 100
    for fold in data.finalist_folds:
        assert not set(data.training.groups[fold.train]) & set(data.validation.groups[fold.scored])


@pytest.mark.parametrize("n", [4, 6, 9])
def test_very_few_rows_are_no_reason_to_fail(n):
    y = np.arange(n) % 2
    search = search_of().fit(ROWS.X[:n], y, validation=(ROWS.X_val[:2], np.array([0, 1])))
    assert search.predict(ROWS.X).shape == ROWS.y.shape


def by_hand(estimator, X, y, folds, **how):
    return cross_val_predict(estimator, X, y, cv=[(f.train, f.scored) for f in folds], **how)


@pytest.mark.parametrize("metric", ["accuracy", worst_class_error(), "roc_auc"])
def test_the_unweighted_score_is_the_metric_of_out_of_fold_predictions(metric):
    search = search_of(metric=metric, base_weights="uniform").fit(ROWS.X, ROWS.y)
    data = evaluated(Rows(ROWS.X, ROWS.y), metric=metric).data
    method = "decision_function" if metric == "roc_auc" else "predict"
    of_search, of_finalists = (
        by_hand(LogisticRegression(), ROWS.X, ROWS.y, folds, method=method)
        for folds in (data.folds, data.finalist_folds)
    )
    value = search.fitted_.evaluator.metric
    if metric == "roc_auc":
        from sklearn.metrics import roc_auc_score as function
    elif metric == "accuracy":
        from sklearn.metrics import accuracy_score as function
    else:
        function = value
    assert search.result_.trials[0].value == pytest.approx(function(ROWS.y, of_search), abs=1e-12)
    assert search.unweighted_score_ == pytest.approx(function(ROWS.y, of_finalists), abs=1e-12)


def test_beside_given_rows_each_is_scored_by_one_fold_model():
    training, given = plane(300, 3), plane(100, 4)
    search = search_of(base_weights="uniform").fit(training.X, training.y, validation=(given.X, given.y))
    data = evaluated(training, given).data
    right = np.zeros(len(data.validation))
    for fold in data.finalist_folds:
        model = LogisticRegression().fit(training.X[fold.train], training.y[fold.train])
        rows = data.validation.take(fold.scored)
        right[fold.scored] = model.predict(rows.X) == rows.y
    np.testing.assert_array_equal(data.validation.X[:100], given.X)
    assert search.unweighted_score_ == pytest.approx(right.mean(), abs=1e-12)


def test_the_final_models_are_trained_on_all_rows():
    search = search_of(strategies="example weights", final="best").fit(ROWS.X, ROWS.y)
    model = LogisticRegression().fit(ROWS.X, ROWS.y, sample_weight=search.sample_weight_)
    np.testing.assert_allclose(search.best_estimator_.coef_, model.coef_, rtol=1e-6)
    plain = LogisticRegression().fit(ROWS.X, ROWS.y)
    np.testing.assert_allclose(search.unweighted_estimator_.coef_, plain.coef_, rtol=1e-6)


def test_sparse_rows_frames_with_categories_and_numbers_are_evaluated_out_of_fold():
    training, given = plane(300, 3), plane(100, 4)
    sparse = search_of().fit(csr_matrix(training.X), training.y, validation=(csr_matrix(given.X), given.y))
    assert sparse.result_.n_out_of_fold > 0
    X, y = mixed_frame(200)
    X_val, y_val = mixed_frame(80, seed=1)
    trees = HistGradientBoostingClassifier(max_iter=5, categorical_features="from_dtype")
    frame = search_of(trees, embedding="directions").fit(X, y, validation=(X_val, y_val))
    assert frame.result_.n_out_of_fold > 0
    assert frame.predict(X_val).shape == (80,)
    rows = skewed_target(150)
    numbers = search_of(Ridge()).fit(rows.X, rows.y)
    assert numbers.result_.n_out_of_fold == 150


def test_whole_numbers_in_training_and_fractions_in_validation_are_evaluated_as_they_are():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.integers(0, 5, 300), "b": rng.standard_normal(300)})
    y = (X["a"] + X["b"] > 2).to_numpy().astype(int)
    X_val = pd.DataFrame({"a": rng.integers(0, 5, 100) + 0.25, "b": rng.standard_normal(100)})
    data = evaluated(Rows(X, y), Rows(X_val, (X_val["a"] + X_val["b"] > 2).to_numpy().astype(int))).data
    np.testing.assert_array_equal(data.validation.X["a"][:100], X_val["a"])


def test_a_splitter_is_used_without_validation_rows():
    splitter = KFold(3)
    search = search_of(evaluate_on=splitter, base_weights="uniform").fit(ROWS.X, ROWS.y)
    decided = cross_val_predict(LogisticRegression(), ROWS.X, ROWS.y, cv=splitter)
    assert search.unweighted_score_ == pytest.approx(np.mean(decided == ROWS.y))


def test_labels_of_another_kind_are_not_those_of_the_training_rows():
    rng = np.random.default_rng(0)
    dates = np.repeat(np.arange("2020-01-01", "2020-01-25", dtype="datetime64[D]"), 2)
    training = Rows(rng.normal(size=(48, 2)), dates)
    given = Rows(rng.normal(size=(8, 2)), np.arange(8, dtype=np.float32))
    with pytest.raises(InvalidInputError, match="their labels are not those of the training rows"):
        evaluated(training, given, evaluate_on=2, base_weights="uniform", embedding=[0])


class ConstantOfManyRows(LogisticRegression):
    """Decides for one class once it has seen most of the rows."""

    def fit(self, X, y, sample_weight=None):
        self.most_ = len(y) > 0.6 * len(ROWS.y)
        return super().fit(X, y, sample_weight)

    def predict(self, X):
        return np.repeat(self.classes_[:1], len(X)) if self.most_ else super().predict(X)


def undefined_for_one_class(y, decided):
    return np.mean(y == decided) if len(np.unique(decided)) > 1 else np.nan


def test_finalists_without_a_value_are_evaluated_by_the_folds_of_the_search():
    search = search_of(
        ConstantOfManyRows(), metric=undefined_for_one_class, strategies="example weights", final="best"
    )
    search.set_params(honest=None).fit(ROWS.X, ROWS.y)
    assert search.best_score_ == max(trial.value for trial in search.result_.trials)
    assert "evaluated by the search's folds: by theirs, the metric of" in str(search.result_)
