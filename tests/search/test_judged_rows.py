"""Which rows candidates are judged on, and what is said about it."""

import numpy as np
import pandas as pd
import pytest
from problems import mixed_frame, shifted_classes, skewed_target
from scipy.sparse import csr_matrix
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold, cross_val_predict

from moew import ExampleWeightSearch, make_metric
from moew.data import UserRows
from moew.exceptions import InvalidInputError
from moew.metrics import worst_class_error
from moew.search import _judged_rows
from moew.search._prepare import prepare

ROWS = shifted_classes(200)
NOTHING = UserRows(None, None)


def search_of(estimator=None, **settings):
    settings = {"n_batches": 1, "batch_size": 2, "embedding": "label", "random_state": 0, **settings}
    return ExampleWeightSearch(LogisticRegression() if estimator is None else estimator, **settings)


def judged(training, given=NOTHING, **settings):
    return prepare(search_of(**settings).settings, training, given)


def plane(n, seed, centre=0.0, share=0.4):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < share).astype(int)
    return UserRows(np.column_stack([rng.normal(centre, 1, n), rng.standard_normal(n) + y]), y)


def test_without_validation_rows_every_row_is_judged():
    data = judged(UserRows(ROWS.X, ROWS.y)).data
    assert (data.n_given_rows, len(data.validation)) == (0, len(ROWS.y))
    assert (len(data.folds), len(data.finalist_folds)) == (2, 5)
    np.testing.assert_array_equal(data.validation.X, ROWS.X)


def test_without_a_shift_all_training_rows_are_judged_beside_the_given_ones():
    prepared = judged(plane(300, 3), plane(100, 4))
    assert (prepared.data.n_given_rows, len(prepared.data.validation)) == (100, 400)
    assert prepared.notes == ("judged on 100 validation rows and 300 training rows out of fold.",)
    assert not prepared.shifted


@pytest.mark.parametrize("shift", [{"centre": 1.0}, {"share": 0.8}])
def test_with_a_shift_fewer_training_rows_are_judged_and_they_are_like_the_validation_rows(shift):
    training, validation = plane(1500, 0), plane(400, 1, **shift)
    prepared = judged(training, validation)
    data = prepared.data
    n_drawn = len(data.validation) - 400
    assert 50 < n_drawn < 1400
    assert prepared.shifted
    assert (
        f"{n_drawn:,} training rows out of fold (of 1,500, which are distributed otherwise"
        in prepared.notes[0]
    )
    drawn = data.validation.take(np.arange(400, 400 + n_drawn))
    of_all = training.X[:, 0].mean(), training.y.mean()
    for place, values, given in ((0, drawn.X[:, 0], validation.X[:, 0]), (1, drawn.y, validation.y)):
        assert abs(values.mean() - given.mean()) < 0.15 + abs(of_all[place] - given.mean()) / 3


def test_beside_enough_validation_rows_no_training_rows_are_judged(monkeypatch):
    monkeypatch.setattr(_judged_rows, "ENOUGH_GIVEN", 100)
    prepared = judged(plane(300, 3), plane(100, 4))
    assert len(prepared.data.validation) == 100
    assert not prepared.data.cross_validated
    assert prepared.notes == ("judged on the 100 validation rows alone: there are enough of them.",)


def test_of_very_many_rows_only_some_are_judged(monkeypatch):
    monkeypatch.setattr(_judged_rows, "MOST_JUDGED", 150)
    for given, n_given in ((NOTHING, 0), (plane(100, 4), 100)):
        data = judged(plane(300, 3), given).data
        assert 100 < len(data.validation) - n_given < 200
        assert sum(len(fold.scored) for fold in data.finalist_folds) == len(data.validation)


def test_columns_that_only_the_validation_rows_have_are_judged_there_alone_and_said_once():
    @make_metric
    def by_amount(y_true, decisions, amount):
        return float(np.average(y_true == decisions, weights=amount))

    amount = {"amount": np.arange(1.0, len(ROWS.y_val) + 1)}
    search = search_of(metric=by_amount)
    search.fit(ROWS.X, ROWS.y, X_val=ROWS.X_val, y_val=ROWS.y_val, metadata_val=amount)
    said = [note for note in search.result_.notes if "amount" in note]
    assert said == [
        f"judged on the {len(ROWS.y_val)} validation rows alone: the training rows do not have 'amount'."
    ]
    assert search.result_.n_out_of_fold == 0
    decided = search.unweighted_estimator_.predict(ROWS.X_val)
    assert search.unweighted_score_ == by_amount(ROWS.y_val, decided, amount)


def test_weights_that_only_the_validation_rows_have_are_judged_there_alone():
    rows = UserRows(ROWS.X_val, ROWS.y_val, np.ones(len(ROWS.y_val)))
    prepared = judged(UserRows(ROWS.X, ROWS.y), rows)
    assert prepared.notes[0].endswith("the training rows do not have sample weights.")
    both = judged(UserRows(ROWS.X, ROWS.y, np.ones(len(ROWS.y))), rows)
    assert both.data.validation.sample_weight is not None
    assert len(both.data.validation) > len(ROWS.y_val)


def test_graded_labels_are_judged_alone():
    graded = ROWS.y_val * 0.8 + 0.1

    @make_metric(response="proba")
    def closeness(y_true, probability):
        return -float(np.mean(np.abs(y_true - probability)))

    prepared = judged(UserRows(ROWS.X, ROWS.y), UserRows(ROWS.X_val, graded), metric=closeness)
    assert len(prepared.data.validation) == len(graded)
    assert prepared.notes[0].endswith("their labels are not those of the training rows.")


def test_a_class_of_one_row_is_judged_on_the_validation_rows_alone_or_refused():
    y = np.where(np.arange(len(ROWS.y)) == 0, 2, ROWS.y)
    validation = UserRows(ROWS.X_val, np.where(np.arange(len(ROWS.y_val)) < 5, 2, ROWS.y_val))
    prepared = judged(UserRows(ROWS.X, y), validation)
    assert prepared.notes[0].endswith("a class has fewer training rows than there are folds.")
    with pytest.raises(InvalidInputError, match=r"the classes \[2\] have one row each.*X_val"):
        judged(UserRows(ROWS.X, y))
    with pytest.raises(InvalidInputError, match="validation=5 cannot judge training rows .* fewer training"):
        judged(UserRows(ROWS.X, y), validation, validation=5)


def test_a_rare_class_gets_as_many_finalist_folds_as_it_has_rows():
    y = np.where(np.arange(len(ROWS.y)) < 3, 2, ROWS.y)
    data = judged(UserRows(ROWS.X, y)).data
    assert len(data.finalist_folds) == 3
    for fold in (*data.folds, *data.finalist_folds):
        assert set(y[fold.train]) == {0, 1, 2}


def test_a_number_of_folds_beside_validation_rows_is_that_many_folds():
    prepared = judged(plane(300, 3), plane(100, 4), validation=4)
    assert len(prepared.data.folds) == len(prepared.data.finalist_folds) == 4
    assert prepared.data.n_given_rows == 100
    assert len(prepared.data.validation) == 400


def test_validation_none_is_the_given_rows_alone_as_in_the_paper():
    prepared = judged(plane(300, 3), plane(100, 4), validation=None)
    assert len(prepared.data.validation) == 100
    assert prepared.notes == ()
    assert not prepared.data.cross_validated
    with pytest.raises(InvalidInputError, match="validation=None is for given validation rows: pass X_val"):
        judged(plane(300, 3), validation=None)


@pytest.mark.parametrize("validation", ["car", "", True, False, 0, 1, -3, 0.0, 1.0, 1.5, -0.2, float("nan")])
def test_values_that_say_nothing_about_validation_are_refused_before_anything_is_trained(validation):
    class Never(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            raise AssertionError("trained")

    given = {"X_val": ROWS.X_val, "y_val": ROWS.y_val}
    for rows in ({}, given):
        with pytest.raises(InvalidInputError, match="validation"):
            search_of(Never(), validation=validation).fit(ROWS.X, ROWS.y, **rows)


@pytest.mark.parametrize(
    ("setting", "value", "words"),
    [
        ("guard", "yes", "guard must be True or False, got 'yes'"),
        ("guard", 1, "guard must be True or False, got 1"),
        ("final", "mean", "final must be one of 'ensemble', 'average', 'best', got 'mean'"),
        ("final", None, "final must be one of"),
    ],
)
def test_other_wrong_settings_are_refused(setting, value, words):
    with pytest.raises(InvalidInputError, match=words):
        search_of(**{setting: value}).fit(ROWS.X, ROWS.y)


def test_more_folds_than_rows_or_groups_are_refused():
    with pytest.raises(InvalidInputError, match="validation=500 cannot split these rows.*rows"):
        judged(plane(300, 3), plane(100, 4), validation=500)
    training, validation = plane(300, 3), plane(100, 4)
    grouped = UserRows(training.X, training.y, groups=np.arange(300) % 3)
    given = UserRows(validation.X, validation.y, groups=np.arange(100) % 20 + 50)
    with pytest.raises(InvalidInputError, match="validation=5 cannot split these rows: there are 3 groups"):
        judged(grouped, given, validation=5)


@pytest.mark.parametrize("n_groups", [2, 3, 4])
def test_validation_rows_of_few_groups_are_judged_beside_training_rows(n_groups):
    training, validation = plane(300, 3), plane(100, 4)
    grouped = UserRows(training.X, training.y, groups=np.arange(300) % 60)
    given = UserRows(validation.X, validation.y, groups=np.arange(100) % n_groups + 100)
    data = judged(grouped, given).data
    assert len(data.validation) > 100
    for fold in data.finalist_folds:
        assert not set(data.training.groups[fold.train]) & set(data.validation.groups[fold.scored])


@pytest.mark.parametrize("n", [4, 6, 9])
def test_very_few_rows_are_no_reason_to_fail(n):
    y = np.arange(n) % 2
    search = search_of().fit(ROWS.X[:n], y, X_val=ROWS.X_val[:2], y_val=np.array([0, 1]))
    assert search.predict(ROWS.X).shape == ROWS.y.shape


def by_hand(estimator, X, y, folds, **how):
    return cross_val_predict(estimator, X, y, cv=[(f.train, f.scored) for f in folds], **how)


@pytest.mark.parametrize("metric", ["accuracy", worst_class_error(), "roc_auc"])
def test_the_unweighted_score_is_the_metric_of_out_of_fold_predictions(metric):
    search = search_of(metric=metric, base_weights="uniform").fit(ROWS.X, ROWS.y)
    data = judged(UserRows(ROWS.X, ROWS.y), metric=metric).data
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
    search = search_of(base_weights="uniform").fit(training.X, training.y, X_val=given.X, y_val=given.y)
    data = judged(training, given).data
    right = np.zeros(len(data.validation))
    for fold in data.finalist_folds:
        model = LogisticRegression().fit(training.X[fold.train], training.y[fold.train])
        rows = data.validation.take(fold.scored)
        right[fold.scored] = model.predict(rows.X) == rows.y
    np.testing.assert_array_equal(data.validation.X[:100], given.X)
    assert search.unweighted_score_ == pytest.approx(right.mean(), abs=1e-12)


def test_the_final_models_are_trained_on_all_rows():
    search = search_of(guard=False, final="best").fit(ROWS.X, ROWS.y)
    model = LogisticRegression().fit(ROWS.X, ROWS.y, sample_weight=search.sample_weight_)
    np.testing.assert_allclose(search.best_estimator_.coef_, model.coef_, rtol=1e-6)
    plain = LogisticRegression().fit(ROWS.X, ROWS.y)
    np.testing.assert_allclose(search.unweighted_estimator_.coef_, plain.coef_, rtol=1e-6)


def test_sparse_rows_frames_with_categories_and_numbers_are_judged_out_of_fold():
    sparse = search_of().fit(csr_matrix(ROWS.X), ROWS.y, X_val=csr_matrix(ROWS.X_val), y_val=ROWS.y_val)
    assert sparse.result_.n_out_of_fold > 0
    X, y = mixed_frame(200)
    X_val, y_val = mixed_frame(80, seed=1)
    trees = HistGradientBoostingClassifier(max_iter=5, categorical_features="from_dtype")
    frame = search_of(trees, embedding="directions").fit(X, y, X_val=X_val, y_val=y_val)
    assert frame.result_.n_out_of_fold > 0
    assert frame.predict(X_val).shape == (80,)
    rows = skewed_target(150)
    numbers = search_of(Ridge()).fit(rows.X, rows.y)
    assert numbers.result_.n_out_of_fold == 150


def test_whole_numbers_in_training_and_fractions_in_validation_are_judged_as_they_are():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.integers(0, 5, 300), "b": rng.standard_normal(300)})
    y = (X["a"] + X["b"] > 2).to_numpy().astype(int)
    X_val = pd.DataFrame({"a": rng.integers(0, 5, 100) + 0.25, "b": rng.standard_normal(100)})
    data = judged(UserRows(X, y), UserRows(X_val, (X_val["a"] + X_val["b"] > 2).to_numpy().astype(int))).data
    np.testing.assert_array_equal(data.validation.X["a"][:100], X_val["a"])


def test_a_splitter_is_used_without_validation_rows():
    splitter = KFold(3)
    search = search_of(validation=splitter, base_weights="uniform").fit(ROWS.X, ROWS.y)
    decided = cross_val_predict(LogisticRegression(), ROWS.X, ROWS.y, cv=splitter)
    assert search.unweighted_score_ == pytest.approx(np.mean(decided == ROWS.y))


def test_labels_of_another_kind_are_not_those_of_the_training_rows():
    rng = np.random.default_rng(0)
    dates = np.repeat(np.arange("2020-01-01", "2020-01-25", dtype="datetime64[D]"), 2)
    training = UserRows(rng.normal(size=(48, 2)), dates)
    given = UserRows(rng.normal(size=(8, 2)), np.arange(8, dtype=np.float32))
    with pytest.raises(InvalidInputError, match="their labels are not those of the training rows"):
        judged(training, given, validation=2, base_weights="uniform", embedding=[0])


class ConstantOfManyRows(LogisticRegression):
    """Decides for one class once it has seen most of the rows."""

    def fit(self, X, y, sample_weight=None):
        self.most_ = len(y) > 0.6 * len(ROWS.y)
        return super().fit(X, y, sample_weight)

    def predict(self, X):
        return np.repeat(self.classes_[:1], len(X)) if self.most_ else super().predict(X)


def undefined_for_one_class(y, decided):
    return np.mean(y == decided) if len(np.unique(decided)) > 1 else np.nan


def test_finalists_without_a_value_are_judged_by_the_folds_of_the_search():
    search = search_of(ConstantOfManyRows(), metric=undefined_for_one_class, guard=False, final="best")
    search.set_params(honest=None).fit(ROWS.X, ROWS.y)
    assert search.best_score_ == max(trial.value for trial in search.result_.trials)
    assert "judged by the search's folds: by theirs, the metric of" in str(search.result_)
