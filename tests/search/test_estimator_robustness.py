"""What may go wrong late must not lose what was found; what a storage holds must belong to the search."""

import warnings

import numpy as np
import pandas as pd
import pytest
from problems import mixed_frame, shifted_classes
from scipy.sparse import coo_array, csr_array
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, RepeatedStratifiedKFold, StratifiedKFold

import moew
from moew import ExampleWeights, MetricSearch, Rows
from moew.decision import ShareSelected
from moew.exceptions import InvalidInputError, MoewError, MoewWarning, UndefinedMetricError
from moew.metrics import fpr_gap, mean_of_selected, worst_class_error

SMALL = {"embedding": "label", "n_candidates": 6, "batch_size": 3, "random_state": 0}
ROWS = shifted_classes(100)
VALIDATION = {"validation": (ROWS.X_val, ROWS.y_val)}


def small(estimator=None, **settings):
    return MetricSearch.from_settings(estimator or LogisticRegression(), **{**SMALL, **settings})


def test_a_storage_is_not_reused_for_another_metric_model_or_data(tmp_path):
    first = small(storage=tmp_path / "run.db").fit(ROWS.X, ROWS.y, **VALIDATION)
    assert clone(first).fit(ROWS.X, ROWS.y, **VALIDATION).best_score_ == first.best_score_
    for settings in ({"metric": worst_class_error()}, {"metric": "balanced_accuracy"}):
        with pytest.raises(InvalidInputError, match="other settings"):
            clone(first).set_params(**settings).fit(ROWS.X, ROWS.y, **VALIDATION)
    with pytest.raises(InvalidInputError, match="other settings"):
        clone(first).set_params(estimator__C=2.0).fit(ROWS.X, ROWS.y, **VALIDATION)
    with pytest.raises(InvalidInputError, match="other settings"):
        clone(first).fit(ROWS.X + 1e-9, ROWS.y, **VALIDATION)


def test_a_metric_that_fails_on_a_half_leaves_the_search_alone():
    def fragile(y_true, decision):
        return float((decision[y_true == 7] == 7).sum() / int((y_true == 7).sum()))

    y, y_val = ROWS.y.copy(), ROWS.y_val.copy()
    y[:5], y_val[0] = 7, 7  # one validation row of that class: always missing in one half
    search = small(metric=fragile, base_weights="uniform", evaluate_on="validation")
    search.fit(ROWS.X, y, validation=(ROWS.X_val, y_val))
    assert np.isnan(search.honest_score_)
    assert "undefined" in search.result_.honest.reason
    scorer = small(metric="neg_log_loss", base_weights="uniform").fit(
        ROWS.X, y, validation=(ROWS.X_val, y_val)
    )
    assert np.isfinite(scorer.best_score_)


def test_a_metric_undefined_on_the_rows_set_aside_leaves_the_search_alone():
    negatives = np.flatnonzero(ROWS.y_val == 0)
    group = np.full(len(ROWS.y_val), "common")
    group[negatives[:3]] = "rare"
    group[ROWS.y_val == 1] = np.where(np.arange((ROWS.y_val == 1).sum()) % 2, "rare", "common")
    scores = []
    for seed in range(6):  # all negatives of the rare group may land on one side
        search = small(metric=fpr_gap(), honest="holdout", random_state=seed)
        try:
            search.fit(ROWS.X, ROWS.y, validation=Rows(ROWS.X_val, ROWS.y_val, columns={"group": group}))
        except UndefinedMetricError:  # they were set aside: the search has none, and says so before training
            continue
        scores.append(search.honest_score_)
        assert np.isfinite(search.honest_score_) or "set aside" in search.result_.honest.reason
    assert len(scores) >= 2
    assert np.isnan(scores).any()


def test_few_rows_with_string_classes():
    names = np.array(["a", "b", "c"])
    y = names[np.arange(30) % 3]
    X = np.random.default_rng(0).standard_normal((30, 2))
    rows = {"validation": (X[:4] + 0.1, np.array(["a", "b", "c", "a"]))}
    assert small(base_weights="uniform").fit(X, y, **rows).predict(X).dtype.kind == "U"


def test_sparse_validation_rows():
    for sparse in (csr_array, coo_array):
        rows = {"X": sparse(ROWS.X), "y": ROWS.y, "validation": (sparse(ROWS.X_val), ROWS.y_val)}
        assert small().fit(**rows).result_.n_out_of_fold > 0
        search = small(evaluate_on="validation").fit(**rows)
        dense = small(evaluate_on="validation").fit(ROWS.X, ROWS.y, **VALIDATION)
        assert search.best_score_ == pytest.approx(dense.best_score_, abs=0.02)
    with pytest.raises(InvalidInputError, match="have 1 columns"):
        small().fit(csr_array(ROWS.X), ROWS.y, validation=(csr_array(ROWS.X_val[:, :1]), ROWS.y_val))


def test_folds_keep_the_scale_of_the_users_weights():
    seen = []

    class Noting(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            seen.append((len(y), sample_weight.mean()))
            return super().fit(X, y, sample_weight)

    small(Noting(), evaluate_on=2).fit(ROWS.X, ROWS.y, np.full(len(ROWS.y), 1e-3))
    assert {len(ROWS.y)} < {n for n, _ in seen}
    assert np.allclose([mean for _, mean in seen], 1e-3)


def test_an_open_splitter_gets_a_seed():
    splitter = StratifiedKFold(3, shuffle=True)
    one, two = (small(evaluate_on=splitter).fit(ROWS.X, ROWS.y) for _ in range(2))
    assert [t.value for t in one.result_.trials] == [t.value for t in two.result_.trials]
    assert splitter.random_state is None


def test_same_bits_with_large_matrices_and_any_n_jobs():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 150))
    y = X @ rng.standard_normal(150) + rng.standard_normal(3000)
    one, two = (small(Ridge(), n_jobs=n_jobs).fit(X, y) for n_jobs in (None, 2))
    assert [t.value for t in one.result_.trials] == [t.value for t in two.result_.trials]


def test_columns_may_be_a_frame_and_goes_through_a_grid_search():
    X, y = mixed_frame(200)
    codes = pd.DataFrame({"number": X["number"].fillna(0), "flag": X["flag"].astype(float)})
    columns = pd.DataFrame({"group": X["group"].to_numpy()})
    search = small(metric=fpr_gap())
    search.fit(codes, y, columns=columns)
    of_radius = [["auto", ExampleWeights("label", radius=R, batch_size=3)] for R in (1.0, 2.0)]
    grid = GridSearchCV(search, {"strategies": of_radius}, cv=2, scoring="accuracy")
    assert grid.fit(codes, y, columns=columns).best_score_ > 0.5


def test_missing_columns_are_asked_for_by_the_right_name():
    with pytest.raises(InvalidInputError, match=r"pass columns=\{'group'"):
        small(metric=fpr_gap()).fit(ROWS.X, ROWS.y)
    data = {
        "validation": Rows(ROWS.X_val, ROWS.y_val, columns={"group": np.arange(len(ROWS.y_val)) % 2}),
        "test": (ROWS.X_test, ROWS.y_test),
    }
    with pytest.raises(InvalidInputError, match=r"pass columns=\{'group'.* in test=Rows"):
        moew.compare(small(metric=fpr_gap()), ROWS.X, ROWS.y, **data)


def test_a_scorer_that_returns_no_number_is_refused_before_training():
    class Untrained(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            pytest.fail("trained")

    scorer = make_scorer(lambda y, decision: None)
    with pytest.raises(InvalidInputError, match="must return one number"):
        small(Untrained(), metric=scorer).fit(ROWS.X, ROWS.y, **VALIDATION)


def test_a_class_with_one_row_is_named():
    y = ROWS.y.astype(object)
    y[:] = np.where(ROWS.y == 1, "horse", "cow")
    y[0] = "zebra"
    with pytest.raises(InvalidInputError, match="zebra"):
        small().fit(ROWS.X, y)


def test_parts_of_the_users_own_need_only_the_protocol():
    class Constant:
        def fit_weights(self, X, y, X_val, y_val, *, task):
            return self.weights(X, y)

        def weights(self, X, y):
            return np.ones(len(y))

        def state(self):
            return {}

    assert small(base_weights=Constant()).fit(ROWS.X, ROWS.y, **VALIDATION).best_score_ > 0.5


def test_random_weights_differ_between_repeats():
    search = small(Ridge(), metric="r2", honest=None)
    data = {"validation": (ROWS.X_val, ROWS.y_val * 1.0), "test": (ROWS.X_test, ROWS.y_test * 1.0)}
    result = moew.compare(search, ROWS.X, ROWS.y * 1.0, **data, repeats=3)
    assert len(set(result["random weights"].apparent)) == 3


def test_a_pos_label_that_is_no_class_is_refused():
    with pytest.raises(InvalidInputError, match=r"pos_label=2 is not one of the classes \[0, 1\]"):
        small(metric=fpr_gap(pos_label=2)).fit(
            ROWS.X, ROWS.y, validation=Rows(ROWS.X_val, ROWS.y_val, columns={"group": ROWS.y_val})
        )


def test_a_winner_that_decides_the_same_for_all_is_noted():
    group = np.arange(len(ROWS.y_val)) % 2
    constant = small(DummyClassifier(strategy="constant", constant=1), metric=fpr_gap())
    constant.fit(ROWS.X, ROWS.y, validation=Rows(ROWS.X_val, ROWS.y_val, columns={"group": group}))
    assert any("the same for every" in note for note in constant.result_.notes)


def test_columns_by_array_or_index_and_unknown_columns():
    X, y = mixed_frame(100)
    codes = pd.DataFrame({"number": X["number"].fillna(0), "flag": X["flag"].astype(float)})
    for columns in (codes.columns[:1], np.array(["number"])):
        assert len(small(embedding=columns).fit(codes, y).best_alpha_) == 2
    with pytest.warns(MoewWarning, match="neither the metric nor the decision takes"):
        small().fit(codes, y, columns={"costs": np.ones(100)})
    with pytest.raises(InvalidInputError, match="columns must be a dict or a data frame"):
        small().fit(codes, y, columns=codes["number"])
    with pytest.raises(InvalidInputError, match="one value for each row"):
        small().fit(codes, y, columns={"cost": 3.0})


def test_rows_that_were_held_out_can_be_told():
    search = small().fit(ROWS.X, ROWS.y)
    again = LogisticRegression().fit(
        ROWS.X[search.training_rows_], ROWS.y[search.training_rows_], sample_weight=search.sample_weight_
    )
    assert np.array_equal(again.coef_, search.best_estimator_.coef_)


def test_splits_may_be_lists_ranges_or_masks():
    n = len(ROWS.y)
    first = np.arange(n) % 2 == 0
    numbers = np.flatnonzero(first), np.flatnonzero(~first)
    strategies = [
        numbers,
        [side.tolist() for side in numbers],
        (range(0, n, 2), range(1, n, 2)),
        (first, ~first),
    ]
    scores = [small(evaluate_on=[(a, b), (b, a)]).fit(ROWS.X, ROWS.y).best_score_ for a, b in strategies]
    assert scores == scores[:1] * len(strategies)


@pytest.mark.parametrize(
    ("split", "message"),
    [
        (([0, 1], [10**9]), r"numbers of rows from 0 to \d+, got \[1000000000\]"),
        (([0.5], [1.0]), r"numbers of rows.*got \[0\.5\]"),
        ((1, 2), "numbers of rows.*got 1"),
        (([[0, 1], [2]], [3]), "numbers of rows"),
        (([], [1, 2]), "one side of a split without rows"),
        ((np.arange(5), np.arange(0)), "one side of a split without rows"),
    ],
)
def test_splits_that_name_no_rows_are_refused(split, message):
    with pytest.raises(InvalidInputError, match=message):
        small(evaluate_on=[split]).fit(ROWS.X, ROWS.y)


def test_splitters_that_cannot_work_are_explained():
    with pytest.raises(InvalidInputError, match="more than once"):
        small(evaluate_on=RepeatedStratifiedKFold(n_splits=2, n_repeats=2)).fit(ROWS.X, ROWS.y)
    with pytest.raises(InvalidInputError, match="groups"):
        small(evaluate_on=GroupKFold(2)).fit(ROWS.X, ROWS.y)
    with pytest.raises(InvalidInputError, match="between 0 and 1"):
        small(evaluate_on=1.5).fit(ROWS.X, ROWS.y)


def test_labels_and_columns_that_do_not_belong_together():
    names = np.array(["no", "yes"])
    with pytest.raises(InvalidInputError, match="strings"):
        small().fit(ROWS.X, names[ROWS.y], **VALIDATION)
    frame = pd.DataFrame(ROWS.X_val, columns=["a", "b"])
    with pytest.warns(MoewWarning, match="A Pipeline belongs into the search"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X has feature names")
        small().fit(ROWS.X, ROWS.y, validation=(frame, ROWS.y_val))
    search = small().fit(ROWS.X, ROWS.y)
    with pytest.raises(InvalidInputError, match="a label to each row"):
        search.example_weights(ROWS.X, ROWS.y[:5])


def test_compare_takes_a_search_and_known_methods():
    data = {"test": (ROWS.X_test, ROWS.y_test), "repeats": 2}
    with pytest.raises(InvalidInputError, match="needs a MetricSearch"):
        moew.compare(LogisticRegression(), ROWS.X, ROWS.y, **data)
    with pytest.raises(KeyError, match="unweighted"):
        moew.compare(small(n_candidates=3), ROWS.X, ROWS.y, **data)["MOEW"]


def test_a_target_value_met_once_does_not_hinder_a_split():
    rng = np.random.default_rng(0)
    ratings = np.repeat([3.0, 4.0, 5.0, 6.0, 7.0, 8.0], [1, 63, 83, 101, 40, 12])
    X = ratings[:, None] + rng.normal(size=(300, 2))
    search = MetricSearch.from_settings(
        Ridge(), embedding="label", n_candidates=2, batch_size=2, random_state=0
    )
    assert search.fit(X, ratings).best_score_ > 0.5


@pytest.mark.parametrize("names", [("high", "low"), ("yes", "no")])
def test_a_rare_positive_class_may_have_any_name(names):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1_000, 2))
    y, grades = np.where(X[:, 0] > 2.2, *names), 1 / (1 + np.exp(1 - X[:, 0]))
    for seed in range(4):
        search = MetricSearch.from_settings(
            LogisticRegression(),
            metric=mean_of_selected(pos_label=names[0]),
            decision=ShareSelected(0.1),
            embedding="label",
            base_weights="uniform",
            n_candidates=2,
            batch_size=2,
            random_state=seed,
        )
        search.fit(X[:900], y[:900], validation=(X[900:940], grades[900:940]))
        assert search.best_score_ > 0.6


@pytest.mark.parametrize("response", ["score", "proba"])
def test_folds_that_know_other_classes_are_not_pooled(response):
    X, y = np.repeat(np.eye(4), 20, axis=0), np.repeat(np.arange(4), 20)
    metric = moew.metrics.make_metric(lambda y, P: float((P.argmax(1) == y).mean()), response=response)
    search = MetricSearch.from_settings(
        LogisticRegression(),
        metric=metric,
        embedding="label",
        n_candidates=2,
        batch_size=2,
        evaluate_on=list(KFold(4).split(X)),
    )
    with pytest.raises(MoewError, match="do not answer alike"):
        search.fit(X, y)
