"""MetricSearch as people use it."""

import json
import pickle
import re
import sqlite3
from contextlib import closing

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from problems import mixed_frame, shifted_classes, skewed_target
from sklearn import config_context
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import balanced_accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from moew import ExampleWeights, MetricSearch, Rows, load_state, make_metric
from moew.decision import EqualFalsePositiveRates, FixedThreshold, MostAccurate, ShareSelected
from moew.exceptions import InvalidInputError, SearchFailedError
from moew.metrics import fpr_gap, mean_of_selected, value_per_harm, worst_class_error
from moew.models import ModelEnsemble
from moew.search import prepare

SMALL = {"embedding": "label", "n_candidates": 8, "batch_size": 4, "random_state": 0}
PAPER = {
    "evaluate_on": "validation",
    "final": "best",
    "strategies": "example weights",
}  # one best candidate on the validation rows


def small(estimator, **settings):
    return MetricSearch.from_settings(estimator, **{**SMALL, **settings})


def test_weights_beat_the_baseline_on_the_worst_class():
    gains = []
    for seed in range(3):
        rows = shifted_classes(400, 3, seed)
        search = small(
            LogisticRegression(), metric=worst_class_error(), base_weights="uniform", n_candidates=20
        )
        search.fit(rows.X, rows.y, validation=(rows.X_val, rows.y_val))
        plain = LogisticRegression().fit(rows.X, rows.y)
        errors = [
            max(np.mean(model.predict(rows.X_test)[rows.y_test == c] != c) for c in range(3))
            for model in (plain, search)
        ]
        gains.append(errors[0] - errors[1])
        assert search.best_score_ < search.alpha_zero_score_
        assert search.metric_value(rows.X_test, rows.y_test) == errors[1]
        assert search.score(rows.X_test, rows.y_test) == -errors[1]
    assert np.mean(gains) > 0.03


def test_attributes_are_what_they_say():
    rows = shifted_classes()
    search = small(LogisticRegression(), **PAPER).fit(rows.X, rows.y, validation=(rows.X_val, rows.y_val))
    again = LogisticRegression().fit(rows.X, rows.y, sample_weight=search.sample_weight_)
    assert np.array_equal(again.coef_, search.best_estimator_.coef_)
    assert search.best_score_ == np.mean(search.predict(rows.X_val) == rows.y_val)
    assert search.best_score_ == search.score(rows.X_val, rows.y_val)
    assert np.isclose(search.sample_weight_.mean(), 1)
    assert np.array_equal(search.example_weights(rows.X, rows.y), search.sample_weight_)
    assert len(search.result_.trials) == 9
    assert np.array_equal(search.predict_proba(rows.X), search.best_estimator_.predict_proba(rows.X))
    assert np.array_equal(search.decision_function(rows.X), search.best_estimator_.decision_function(rows.X))
    text = str(search.result_)
    assert "honest" in text
    assert "unweighted" in text


def test_scores_are_those_of_models_that_did_not_see_the_rows():
    rows = shifted_classes()
    search = small(LogisticRegression(), base_weights="uniform")
    search.fit(rows.X, rows.y, validation=(rows.X_val, rows.y_val))
    data = prepare(search.settings, Rows(rows.X, rows.y), Rows(rows.X_val, rows.y_val)).data
    result = search.result_
    assert (result.n_validation, result.n_out_of_fold) == (
        len(rows.y_val),
        len(data.validation) - len(rows.y_val),
    )
    assert 0 < result.n_out_of_fold < len(rows.y)  # the training rows are distributed otherwise
    for folds, score in (
        (data.folds, result.trials[0].value),
        (data.finalist_folds, search.unweighted_score_),
    ):
        right = np.zeros(len(data.validation), dtype=bool)
        for fold in folds:
            model = LogisticRegression().fit(rows.X[fold.train], rows.y[fold.train])
            evaluated = data.validation.take(fold.scored)
            right[fold.scored] = model.predict(evaluated.X) == evaluated.y
        assert score == right.mean()
    assert np.array_equal(search.unweighted_estimator_.coef_, LogisticRegression().fit(rows.X, rows.y).coef_)


@pytest.mark.parametrize("final", ["ensemble", "smoothed", "best"])
def test_what_becomes_of_example_weights(final):
    rows = shifted_classes(n_classes=3)
    settings = {
        "metric": worst_class_error(),
        "decision": None,
        "strategies": "example weights",
        "final": final,
        "n_candidates": 16,
    }
    search = small(LogisticRegression(), **settings)
    search.fit(rows.X, rows.y, validation=(rows.X_val, rows.y_val))
    assert search.selected_.startswith("example weights")
    assert np.array_equal(search.example_weights(rows.X, rows.y), search.sample_weight_)
    assert np.isclose(search.sample_weight_.mean(), 1)
    (strategy,) = [strategy for strategy in search.result_.strategies if strategy.name == search.selected_]
    if final != "ensemble":
        again = LogisticRegression().fit(rows.X, rows.y, sample_weight=search.sample_weight_)
        assert np.array_equal(again.coef_, search.best_estimator_.coef_)
        assert strategy.n_members == 1
        return
    ensemble, averaged = search.best_estimator_, search.weight_function_
    assert isinstance(ensemble, ModelEnsemble) and len(ensemble.models_) == strategy.n_members > 1
    assert np.array_equal(ensemble.votes_, averaged.votes)
    for model, weights in zip(ensemble.models_, averaged.functions, strict=True):
        again = LogisticRegression().fit(rows.X, rows.y, sample_weight=weights(rows.X, rows.y))
        assert np.array_equal(again.coef_, model.coef_)


def test_the_weight_function_is_saved_without_pickle():
    rows = shifted_classes(n_classes=3)
    search = small(LogisticRegression()).fit(rows.X, rows.y, validation=(rows.X_val, rows.y_val))
    loaded = load_state(json.loads(json.dumps(search.weight_function_.state())))
    assert np.array_equal(loaded(rows.X_test, rows.y_test), search.example_weights(rows.X_test, rows.y_test))


@pytest.mark.parametrize("weighted", [False, True])
def test_a_metric_that_scores_all_candidates_at_once_gives_the_honest_score_of_one_that_cannot(weighted):
    rows = shifted_classes(n_classes=3)
    weight = np.random.default_rng(0).integers(1, 4, len(rows.y_val)) if weighted else None

    # A metric without a form of Theorem 1: those are recognised, and their searches have other candidates.
    def worst(y, decision, sample_weight=None):
        counts = np.ones(len(y)) if sample_weight is None else sample_weight
        return max(np.average(decision[y == c] != c, weights=counts[y == c]) for c in np.unique(y))

    at_once, one_by_one = (
        small(LogisticRegression(), metric=metric).fit(
            rows.X, rows.y, validation=Rows(rows.X_val, rows.y_val, sample_weight=weight)
        )
        for metric in (
            worst_class_error(),
            make_metric(worst, greater_is_better=False, bounds=(0.0, 1.0)),
        )
    )
    assert np.array_equal(at_once.best_alpha_, one_by_one.best_alpha_)
    assert at_once.result_.honest.value == pytest.approx(one_by_one.result_.honest.value, rel=1e-12)
    assert at_once.result_.honest.apparent == pytest.approx(one_by_one.result_.honest.apparent, rel=1e-12)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_same_seed_same_bits_whatever_n_jobs(n_jobs):
    rows = shifted_classes()
    settings = {"metric": "balanced_accuracy", "n_jobs": n_jobs}
    one = small(LGBMClassifier(n_estimators=5, verbose=-1, n_jobs=1), **settings)
    two = clone(one).set_params(n_jobs=None)
    for search in (one, two):
        search.fit(rows.X, rows.y, validation=(rows.X_val, rows.y_val))
    assert np.array_equal(one.best_alpha_, two.best_alpha_)
    assert [t.value for t in one.result_.trials] == [t.value for t in two.result_.trials]
    assert one.honest_score_ == two.honest_score_
    assert np.array_equal(one.predict_proba(rows.X_test), two.predict_proba(rows.X_test))


class Stumbling(LogisticRegression):
    """Counts its fits, and is interrupted at one of them."""

    fits, stumbles_at = 0, None

    def fit(self, X, y, sample_weight=None):
        Stumbling.fits += 1
        if Stumbling.fits == Stumbling.stumbles_at:
            raise KeyboardInterrupt
        return super().fit(X, y, sample_weight)


def test_progress_after_an_interruption_knows_the_best_before(tmp_path, capsys):
    rows = shifted_classes()
    settings = {"storage": tmp_path / "run.db", "verbose": True}
    data = {"X": rows.X, "y": rows.y, "validation": (rows.X_val, rows.y_val)}
    small(LogisticRegression(), **settings).set_params(n_candidates=4).fit(**data)
    before = float(re.findall(r"best ([\d.]+)", capsys.readouterr().err)[-1])
    search = small(LogisticRegression(), **settings).fit(**data)
    after = [float(found) for found in re.findall(r"best ([\d.]+)", capsys.readouterr().err)]
    better = max if search.result_.greater_is_better else min
    assert all(better(value, before) == value for value in after)
    best = search.result_.best_trial.value  # of the example weights; other strategies are not shown
    assert after[-1] == pytest.approx(best, rel=1e-3)


@pytest.mark.parametrize(
    ("stumbles_at", "settings"),
    [
        (6, PAPER),
        pytest.param(6, {}, marks=pytest.mark.heavy),  # in the first fold, when nothing is told
        pytest.param(11, {}, marks=pytest.mark.heavy),  # in the second fold
        (21, {}),  # in the second batch
        (34, {}),  # when the finalists are trained with more folds
    ],
)
def test_an_interrupted_search_goes_on_to_the_same_bits(tmp_path, monkeypatch, stumbles_at, settings):
    rows = shifted_classes()
    data = {"X": rows.X, "y": rows.y, "validation": (rows.X_val, rows.y_val)}
    monkeypatch.setattr(Stumbling, "stumbles_at", None)
    monkeypatch.setattr(Stumbling, "fits", 0)
    straight = small(Stumbling(), **settings).fit(**data)
    fits_of_all = Stumbling.fits
    file = tmp_path / "run.db"
    stumbling = small(Stumbling(), storage=file, **settings)
    monkeypatch.setattr(Stumbling, "stumbles_at", stumbles_at)
    monkeypatch.setattr(Stumbling, "fits", 0)
    with pytest.raises(KeyboardInterrupt):
        stumbling.fit(**data)
    with closing(sqlite3.connect(file)) as database:
        ended = "SELECT count(*) FROM moew_candidates WHERE coalesce(value, error) IS NOT NULL"
        (told,) = database.execute(ended).fetchone()
    resumed = clone(stumbling).fit(**data)
    n_folds = 1 if settings else 2
    assert Stumbling.fits == stumbles_at + fits_of_all - n_folds * told  # what was told is not trained again
    assert np.array_equal(resumed.best_alpha_, straight.best_alpha_)
    assert str(resumed.result_) == str(straight.result_)
    assert resumed.honest_score_ == straight.honest_score_
    assert np.array_equal(resumed.predict_proba(rows.X_test), straight.predict_proba(rows.X_test))


def test_a_frame_with_categories_and_missing_values():
    X, y = mixed_frame(300)
    inner = HistGradientBoostingClassifier(max_iter=5, categorical_features="from_dtype")
    for embedding in ("label", ["number", "kind"]):
        search = small(inner, embedding=embedding, base_weights="covariate_shift")
        search.fit(X[:150], y[:150], validation=(X[150:], y[150:]))
        assert set(search.predict(X)) <= {"yes", "no"}
        assert list(search.feature_names_in_) == list(X.columns)


def test_regression_with_a_bare_function_and_label_shift():
    rows = skewed_target()

    def neg_median_error(y_true, predicted):
        return -float(np.median(np.abs(y_true - predicted)))

    search = small(LinearRegression(), metric=neg_median_error)
    search.fit(rows.X, rows.y, validation=(rows.X_val, rows.y_val))
    assert np.isfinite(search.honest_score_)
    search = small(LinearRegression(), metric=neg_median_error, **PAPER)
    search.fit(rows.X, rows.y, validation=(rows.X_val, rows.y_val))
    assert search.best_score_ >= search.alpha_zero_score_
    assert search.best_score_ == neg_median_error(rows.y_val, search.predict(rows.X_val))
    assert not hasattr(search, "classes_")


def test_fit_alone_holds_out_a_share_or_cross_validates():
    rows = shifted_classes(n_classes=3)
    every = small(LogisticRegression()).fit(rows.X, rows.y)
    assert len(every.sample_weight_) == len(rows.y)
    assert every.result_.n_out_of_fold == len(rows.y) and every.result_.n_validation == 0
    held = small(LogisticRegression(), evaluate_on=0.2).fit(rows.X, rows.y)
    assert len(held.sample_weight_) < len(rows.y)
    crossed = small(
        LogisticRegression(), evaluate_on=StratifiedKFold(3), final="best", strategies="example weights"
    )
    crossed.fit(rows.X, rows.y)
    assert len(crossed.sample_weight_) == len(rows.y)
    again = LogisticRegression().fit(rows.X, rows.y, sample_weight=crossed.sample_weight_)
    assert np.array_equal(again.coef_, crossed.best_estimator_.coef_)
    assert (crossed.result_.n_validation, crossed.result_.n_out_of_fold) == (0, len(rows.y))


def test_cross_validated_scores_are_pooled_out_of_fold_predictions():
    rows = shifted_classes()
    search = small(LogisticRegression(), evaluate_on=StratifiedKFold(3)).fit(rows.X, rows.y)
    hits = [
        LogisticRegression().fit(rows.X[train], rows.y[train]).predict(rows.X[test]) == rows.y[test]
        for train, test in StratifiedKFold(3).split(rows.X, rows.y)
    ]
    assert search.alpha_zero_score_ == np.mean(np.concatenate(hits))


def test_sample_weight_multiplies_the_learned_weights():
    rows = shifted_classes()
    user = np.random.default_rng(0).uniform(0.1, 3, len(rows.y))
    search = small(LogisticRegression(), base_weights="uniform")
    search.fit(rows.X, rows.y, user, validation=(rows.X_val, rows.y_val))
    learned = search.sample_weight_ / user
    assert np.isclose(np.average(learned, weights=user), 1)
    # The label embedding gives each class one weight.
    assert all(np.ptp(learned[rows.y == c]) < 1e-12 for c in (0, 1))


@pytest.mark.parametrize("routing", [False, True])
def test_inside_pipeline_grid_search_and_cross_validate(routing):
    rows = shifted_classes()
    with config_context(enable_metadata_routing=routing):
        search = small(LogisticRegression(), n_candidates=4, batch_size=2)
        fit_params = {}
        if routing:
            search.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
            fit_params = {"sample_weight": np.ones(len(rows.y))}
        of_radius = [["auto", ExampleWeights("label", radius=R, batch_size=2)] for R in (1.0, 5.0)]
        grid = GridSearchCV(search, {"strategies": of_radius}, cv=2).fit(rows.X, rows.y, **fit_params)
        assert grid.best_score_ > 0.6
        pipeline = make_pipeline(StandardScaler(), search)
        assert pipeline.fit(rows.X, rows.y).score(rows.X_test, rows.y_test) > 0.6
        scores = cross_validate(search, rows.X, rows.y, cv=2, params=fit_params or None)
        assert (scores["test_score"] > 0.6).all()


@pytest.mark.parametrize("routing", [False, True])
def test_a_pipeline_inside_takes_weights_by_its_step(routing):
    rows = shifted_classes()
    inner = make_pipeline(StandardScaler(), LogisticRegression())
    with config_context(enable_metadata_routing=routing):
        search = small(
            inner,
            sample_weight_name="logisticregression__sample_weight",
            final="best",
            strategies="example weights",
        )
        search.fit(rows.X, rows.y, validation=(rows.X_val, rows.y_val))
    coefs = {tuple(search.best_estimator_[-1].coef_[0]), tuple(inner.fit(rows.X, rows.y)[-1].coef_[0])}
    assert len(coefs) == 2


def test_scorers_by_name_and_by_object():
    rows = shifted_classes()
    validation = {"validation": (rows.X_val, rows.y_val)}
    by_name = small(LogisticRegression(), metric="balanced_accuracy").fit(rows.X, rows.y, **validation)
    scorer = make_scorer(balanced_accuracy_score)
    by_object = small(LogisticRegression(), metric=scorer).fit(rows.X, rows.y, **validation)
    assert by_name.best_score_ == by_object.best_score_
    by_name = small(LogisticRegression(), metric="balanced_accuracy", **PAPER)
    by_name.fit(rows.X, rows.y, **validation)
    assert by_name.best_score_ == balanced_accuracy_score(rows.y_val, by_name.predict(rows.X_val))


def test_decision_rules_are_fitted_for_the_winner():
    rows = shifted_classes()
    for settings in ({}, PAPER):
        search = small(LogisticRegression(), metric=worst_class_error(), decision=MostAccurate(), **settings)
        search.fit(rows.X, rows.y, validation=(rows.X_val, rows.y_val))
        above = search.decision_function(rows.X_test) > search.decision_.threshold_
        assert np.array_equal(search.predict(rows.X_test), above)
    scores = search.decision_function(rows.X_val)
    assert search.decision_ == MostAccurate().fit(scores, rows.y_val == 1, {})


@pytest.mark.parametrize("model", [LogisticRegression(), RandomForestClassifier(5)])
def test_a_number_is_a_threshold_of_the_probability_whatever_the_model(model):
    rows = shifted_classes()
    search = small(model, metric=worst_class_error(), decision=0.8)
    search.fit(rows.X, rows.y, validation=(rows.X_val, rows.y_val))
    likely = search.predict_proba(rows.X_test)[:, 1] > 0.8
    assert np.array_equal(search.predict(rows.X_test), likely.astype(int)) and 0 < likely.sum() < len(likely)


def test_a_threshold_of_the_score_for_models_without_probabilities():
    rows = shifted_classes()
    with pytest.raises(SearchFailedError, match=r"no predict_proba.*FixedThreshold"):
        small(LinearSVC(), decision=0.5).fit(rows.X, rows.y, validation=(rows.X_val, rows.y_val))
    search = small(LinearSVC(), decision=FixedThreshold(0.3))
    search.fit(rows.X, rows.y, validation=(rows.X_val, rows.y_val))
    above = search.decision_function(rows.X_test) > 0.3
    assert np.array_equal(search.predict(rows.X_test), above.astype(int))


@pytest.mark.heavy
def test_equal_rates_take_the_group_from_x_or_columns():
    X, y = mixed_frame(400)
    rule = EqualFalsePositiveRates(coverage=0.4)
    inner = HistGradientBoostingClassifier(max_iter=5, categorical_features="from_dtype")
    search = small(inner, metric=fpr_gap(), decision=rule)
    search.fit(X[:200], y[:200], validation=(X[200:], y[200:]))
    group = X["group"].to_numpy()
    without = X.drop(columns="group")
    apart = small(inner, metric=fpr_gap(), decision=rule)
    apart.fit(
        without[:200],
        y[:200],
        validation=Rows(without[200:], y[200:], columns={"group": group[200:]}),
        columns={"group": group[:200]},
    )
    apart.predict(without, columns={"group": group})
    with pytest.raises(InvalidInputError, match=r"columns=\{.group."):
        apart.predict(without)
    assert search.predict(X).shape == (400,)


def test_graded_validation_labels_and_a_share_selected():
    rows = shifted_classes()
    graded = rows.y_val + np.random.default_rng(0).random(len(rows.y_val))
    metric, rule = mean_of_selected(), ShareSelected(0.4)
    search = small(LogisticRegression(), metric=metric, decision=rule, base_weights="uniform")
    search.fit(rows.X, rows.y, validation=(rows.X_val, graded))
    chosen = search.predict(rows.X_val) == 1
    assert abs(chosen.mean() - 0.4) < 0.01
    assert np.isclose(search.best_score_, graded[chosen].mean())
    with pytest.raises(InvalidInputError, match="uniform"):
        small(LogisticRegression(), metric=metric, decision=rule, base_weights="label_shift").fit(
            rows.X, rows.y, validation=(rows.X_val, graded)
        )


def test_a_class_that_cannot_be_held_out_is_named():
    rows = shifted_classes()
    y, y_val = (np.where(part == 1, "rare", "often").astype(object) for part in (rows.y, rows.y_val))
    y_val[:] = "often"
    y_val[3] = "rare"
    search = small(LogisticRegression(), honest="holdout")
    with pytest.raises(InvalidInputError, match=r"of \['rare'\] there is one row"):
        search.fit(rows.X, y, validation=(rows.X_val, y_val))


@pytest.mark.parametrize("value", [np.inf, -1e300])
def test_columns_that_no_model_can_take_are_named(value):
    rows = shifted_classes()
    X = pd.DataFrame(rows.X, columns=[f"c{j}" for j in range(rows.X.shape[1])])
    X.loc[3, "c1"] = value
    search = small(RandomForestClassifier(3))
    with (
        pytest.raises(SearchFailedError, match=r"\(column 'c1': infinite or huge values"),
        np.errstate(over="ignore"),
    ):
        search.fit(X[50:], rows.y[50:], validation=(X[:50], rows.y[:50]))


def test_a_metric_that_raises_on_halves_is_quoted():
    rows = shifted_classes()

    def all_rows_or_nothing(y_true, decision):
        if len(y_true) < len(rows.y_val):
            raise RuntimeError("the table has gaps")
        return float(np.mean(y_true == decision))

    search = small(LogisticRegression(), metric=all_rows_or_nothing)
    search.fit(rows.X, rows.y, validation=(rows.X_val, rows.y_val))
    assert np.isnan(search.result_.honest.value)
    assert "The first failure: RuntimeError: the table has gaps" in search.result_.honest.reason


def test_metric_columns_and_holdout():
    rows = shifted_classes()
    rng = np.random.default_rng(0)
    value, harm = rng.random(len(rows.y_val)), rng.random(len(rows.y_val))
    metric, rule = value_per_harm(), ShareSelected(0.2)
    search = small(LogisticRegression(), metric=metric, decision=rule, honest="holdout")
    columns = {"value": value, "harm": harm}
    search.fit(rows.X, rows.y, validation=Rows(rows.X_val, rows.y_val, columns=columns))
    assert search.result_.n_validation < len(rows.y_val)
    assert np.isfinite(search.honest_score_)
    assert small(LogisticRegression(), honest=None).fit(rows.X, rows.y).result_.honest.reason is not None


def test_a_candidate_that_fails_is_recorded_and_skipped():
    class Fussy(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            if sample_weight.max() > 1.5:
                raise RuntimeError("weights are too far apart")
            return super().fit(X, y, sample_weight)

    rows = shifted_classes()
    search = small(Fussy(), n_candidates=12, batch_size=6, base_weights="uniform")
    search.fit(rows.X, rows.y, validation=(rows.X_val, rows.y_val))
    failed = [told for told in search.result_.trials if told.error]
    assert 0 < len(failed) < 13
    assert "too far apart" in failed[0].error
    assert any("too far apart" in note for note in search.result_.notes)


@pytest.mark.heavy
def test_a_fixed_random_state_inside_stays():
    rows = shifted_classes()
    inner = LGBMClassifier(n_estimators=3, subsample=0.5, subsample_freq=1, random_state=5, verbose=-1)
    search = small(inner, final="best").fit(rows.X, rows.y, validation=(rows.X_val, rows.y_val))
    assert search.best_estimator_.random_state == 5
    open_state = small(inner.set_params(random_state=None), final="best")
    open_state.fit(rows.X, rows.y, validation=(rows.X_val, rows.y_val))
    assert open_state.best_estimator_.random_state is not None


def test_pickles_and_sparse_rows():
    from scipy.sparse import csr_array

    rows = shifted_classes()
    search = small(LogisticRegression()).fit(csr_array(rows.X), rows.y)
    loaded = pickle.loads(pickle.dumps(search))
    assert np.array_equal(loaded.predict(csr_array(rows.X)), search.predict(csr_array(rows.X)))
