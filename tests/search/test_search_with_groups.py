"""Queries, patients, customers: searches that do not cut them apart, and what goes wrong in those that do."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from problems import shifted_classes
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold
from sklearn.neighbors import KNeighborsClassifier

import moew
from moew import MetricSearch, Rows, make_metric
from moew.exceptions import InvalidInputError, MoewWarning
from moew.inspection import on_test_rows
from moew.search import prepare

REPEATS = 6
PAPER = {
    "evaluate_on": "validation",
    "final": "best",
    "strategies": "example weights",
}  # one best candidate on the validation rows


def ndcg_of(without_relevant):
    """The mean NDCG of the queries; one without a relevant row counts as told, or (None) not at all."""

    def ndcg(y, score, query):
        order = np.lexsort((-score, query))
        _, start, counts = np.unique(query[order], return_index=True, return_counts=True)
        place = np.arange(len(y)) - np.repeat(start, counts)
        relevant = np.add.reduceat(y[order], start)
        gained = np.add.reduceat(y[order] / np.log2(place + 2), start)[relevant > 0]
        most = np.cumsum(1 / np.log2(np.arange(counts.max()) + 2))[relevant[relevant > 0] - 1]
        empty = [] if without_relevant is None else [without_relevant] * (relevant == 0).sum()
        return float(np.mean([*(gained / most), *empty]))

    return make_metric(ndcg, response="score", greater_is_better=True, bounds=(0, 1))


def queries(draw, n):
    """n queries of ten rows: the features X, whether a row is relevant, and the query's number."""
    query = np.repeat(np.arange(n), 10)
    X = draw.standard_normal((10 * n, 2))
    leaning = draw.standard_normal(n)[query]
    y = (X[:, 0] + leaning * X[:, 1] / 2 + draw.logistic(size=10 * n) > 2).astype(int)
    return X, y, query


def small_search(metric, seed, estimator=None, **settings):
    small = {"embedding": [0, 1], "n_candidates": 5, "batch_size": 5, "sampler": "random"}
    return MetricSearch.from_settings(
        LogisticRegression() if estimator is None else estimator,
        metric=metric,
        random_state=seed,
        **{**small, **settings},
    )


@pytest.mark.parametrize(("without_relevant", "wrong_side"), [(None, -1), (0.0, 1)])
def test_the_honest_score_of_a_metric_by_query(without_relevant, wrong_side):
    """Half a query has another NDCG than a query: a better one, or none where its relevant row is missing.

    What the validation rows make of the unweighted model, which was not chosen, is luck of theirs; it is
    taken off.
    """
    metric, errors = ndcg_of(without_relevant), []
    for seed in range(REPEATS):
        draw = np.random.default_rng(seed)
        (X, y, _), (X_val, y_val, query), (X_new, y_new, of_new) = (queries(draw, n) for n in (30, 40, 300))
        whole, cut = (
            small_search(metric, seed, **PAPER).fit(
                X, y, validation=Rows(X_val, y_val, columns={"query": query}, groups=groups)
            )
            for groups in (query, None)
        )
        assert whole.best_score_ == cut.best_score_
        truth = whole.metric_value(X_new, y_new, columns={"query": of_new})
        plain = whole.unweighted_estimator_.decision_function(X_new)
        luck = whole.unweighted_score_ - metric(y_new, plain, {"query": of_new})
        errors.append([search.honest_score_ - truth - luck for search in (whole, cut)])
    of_whole, of_cut = np.mean(errors, axis=0)
    assert wrong_side * (of_cut - of_whole) > 0.05
    assert abs(of_whole) < 0.02


def patients(draw, n):
    """n patients of eight rows, which are near each other and mostly have the patient's own label."""
    patient = np.repeat(np.arange(n), 8)
    X = (3 * draw.standard_normal((n, 2)))[patient] + 0.1 * draw.standard_normal((8 * n, 2))
    own = draw.random(n)[patient] < 0.5
    order = draw.permutation(8 * n)
    X, own, patient = X[order], own[order], patient[order]
    return X, np.where(draw.random(8 * n) < 0.8, own, ~own).astype(int), patient


@pytest.mark.parametrize("validation", [0.3, 3])
def test_a_model_that_knows_patients_by_heart_looks_good_only_if_they_are_cut_apart(validation):
    model, scores = LogisticByHeart(), []
    for seed in range(8):
        draw = np.random.default_rng(seed)
        X, y, patient = patients(draw, 60)
        cut, whole = (
            small_search("accuracy", seed, model, evaluate_on=validation, honest="halves").fit(X, y, **given)
            for given in ({}, {"groups": patient})
        )
        X_new, y_new, _ = patients(draw, 300)
        scores.append([cut.honest_score_, whole.honest_score_, whole.metric_value(X_new, y_new)])
    of_cut, of_whole, truth = np.mean(scores, axis=0)
    assert of_cut > truth + 0.15
    assert abs(of_whole - truth) < 0.07


class LogisticByHeart(LogisticRegression):
    """The nearest training rows decide; weights choose among them."""

    def fit(self, X, y, sample_weight=None):
        self.classes_, self.coef_ = np.unique(y), np.zeros((1, X.shape[1]))
        weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight)
        self.nearest_ = KNeighborsClassifier(3).fit(X, y)
        self.y_, self.weight_ = np.asarray(y), weight
        return self

    def predict_proba(self, X):
        rows = self.nearest_.kneighbors(X, return_distance=False)
        share = (self.weight_[rows] * self.y_[rows]).sum(axis=1) / self.weight_[rows].sum(axis=1)
        return np.column_stack([1 - share, share])

    def predict(self, X):
        return self.classes_[(self.predict_proba(X)[:, 1] > 0.5).astype(int)]


def test_the_error_of_a_gain_knows_that_rows_of_a_group_are_alike():
    """Every row eight times: as many different rows as before, so the error must not become smaller. Exact
    copies are noticed, and are groups without being named; copies that differ a little are not."""
    rows = shifted_classes(60)
    X_val, y_val = np.repeat(rows.X_val, 8, axis=0), np.repeat(rows.y_val, 8)
    groups = np.repeat(np.arange(len(rows.y_val)), 8)
    moved = X_val + np.tile(1e-5 * np.arange(8), len(rows.y_val))[:, None]
    given = ((rows.X_val, rows.y_val), (moved, y_val), (X_val, y_val), Rows(moved, y_val, groups=groups))
    errors = [
        [small_search("accuracy", seed, **PAPER).fit(rows.X, rows.y, validation=one).result_ for one in given]
        for seed in range(6)
    ]
    once, cut, noticed, whole = np.mean([[one.honest.standard_error for one in of] for of in errors], axis=0)
    assert [whole, noticed] == pytest.approx([once, once], rel=0.25)
    assert cut < 0.5 * once


ROWS = shifted_classes(60)
OF_ROWS = np.arange(len(ROWS.y)) // 3
OF_VALIDATION = 1000 + np.arange(len(ROWS.y_val)) // 3
VALIDATION = {"validation": (ROWS.X_val, ROWS.y_val)}


def validation(groups):
    return {"validation": Rows(ROWS.X_val, ROWS.y_val, groups=groups)}


class Untrained(LogisticRegression):
    """Fails the test if it is ever trained."""

    def fit(self, X, y, sample_weight=None):
        pytest.fail("a model was trained before the input was checked")


@pytest.mark.parametrize(
    ("words", "data", "settings"),
    [
        (
            "of the training rows, such as row 9, .* have no group",
            {"groups": np.where(OF_ROWS == 3, np.nan, OF_ROWS)},
            {},
        ),
        (
            "1 of the validation rows, such as row 0,",
            validation([None, *OF_VALIDATION[1:]]),
            {},
        ),
        ("groups has 2", {"groups": [1, 2]}, {}),
        ("validation rows have .* groups has 2", validation([1, 2]), {}),
        (
            "validation has .* groups, and no rows X",
            {"validation": Rows(None, None, groups=OF_VALIDATION)},
            {},
        ),
        ("all rows belong to one group", {"groups": np.zeros(len(OF_ROWS))}, {}),
        (
            "all validation rows belong to one group.*no honest score with honest",
            validation(["a"] * len(OF_VALIDATION)),
            {},
        ),
        (
            "all rows belong to one group",
            validation(["a"] * len(OF_VALIDATION)),
            {"honest": "holdout"},
        ),
        ("belong to 4 groups", {"groups": OF_ROWS % 4}, {"evaluate_on": 5}),
        ("cuts .* groups apart", {"groups": OF_ROWS}, {"evaluate_on": KFold(3, shuffle=True)}),
        ("all validation rows belong to one group", {"groups": OF_ROWS % 4}, {"evaluate_on": 0.25}),
    ],
)
def test_bad_groups_are_refused_before_training(words, data, settings):
    search = small_search("accuracy", 0, Untrained(), **{"embedding": "label", **settings})
    with pytest.raises(InvalidInputError, match=words):
        search.fit(ROWS.X, ROWS.y, **data)


def test_one_group_is_enough_where_nothing_is_split():
    search = small_search("accuracy", 0, honest=None)
    search.fit(ROWS.X, ROWS.y, **validation(["b"] * len(ROWS.y_val)), groups=["a"] * len(ROWS.y))
    assert np.isfinite(search.best_score_) and np.isnan(search.result_.gain_error)


def test_warnings():
    with pytest.warns(MoewWarning, match="1 groups have both training and validation rows"):
        small_search("accuracy", 0).fit(
            ROWS.X,
            ROWS.y,
            **validation(OF_VALIDATION % 1000 + len(set(OF_ROWS)) - 1),
            groups=OF_ROWS,
        )
    with pytest.warns(MoewWarning, match="Give groups to the validation rows, too"):
        small_search("accuracy", 0).fit(ROWS.X, ROWS.y, **VALIDATION, groups=OF_ROWS)


def test_a_given_splitter_and_scikit_learns_own_searches_get_groups():
    search = small_search("accuracy", 0, evaluate_on=GroupKFold(3)).fit(ROWS.X, ROWS.y, groups=OF_ROWS)
    assert np.isfinite(search.honest_score_)
    grid = GridSearchCV(small_search("accuracy", 0), {"n_candidates": [5, 10]}, cv=GroupKFold(2))
    assert grid.fit(ROWS.X, ROWS.y, groups=OF_ROWS).best_params_["n_candidates"] in (5, 10)


def test_a_regression_keeps_groups_whole():
    y = ROWS.X[:, 0] + OF_ROWS
    for settings in ({}, {"evaluate_on": 3}, {"honest": "holdout", "evaluate_on": 0.4}):
        search = small_search("r2", 0, Ridge(), **settings).fit(
            ROWS.X, y, groups=pd.Series(OF_ROWS.astype(str))
        )
        assert np.isfinite(search.honest_score_)


def test_a_stored_study_knows_its_groups(own_folder):
    def fit(groups, n_candidates=5):
        search = small_search("accuracy", 0, storage="study.db", n_candidates=n_candidates)
        return search.fit(ROWS.X, ROWS.y, **validation(groups))

    fit(OF_VALIDATION)
    assert len(fit(OF_VALIDATION, 10).result_.trials) == 9  # two of the ten are class weights
    for other in (OF_VALIDATION // 2, None):
        with pytest.raises(InvalidInputError, match="study"):
            fit(other)


@pytest.mark.heavy
def test_test_rows_of_a_group_are_drawn_together():
    """Every test row eight times: the margin is as with the rows once."""
    search = small_search("accuracy", None, honest=None, strategies="example weights")
    times = np.repeat(np.arange(len(ROWS.y_test)), 8)
    margins = [
        moew.compare(search, ROWS.X, ROWS.y, **VALIDATION, repeats=2, **test).test_rows_margin
        for test in (
            {"test": (ROWS.X_test, ROWS.y_test)},
            {"test": (ROWS.X_test[times], ROWS.y_test[times])},
            {"test": Rows(ROWS.X_test[times], ROWS.y_test[times], groups=times)},
        )
    ]
    assert margins[2] == pytest.approx(margins[0], rel=0.25)
    assert margins[1] < 0.5 * margins[0]


def test_a_query_that_is_drawn_twice_counts_twice():
    """The margin of a mean over queries is that of the mean of their differences."""
    draw = np.random.default_rng(0)
    (X, y, _), (X_val, y_val, of_val), (X_test, y_test, query) = (queries(draw, n) for n in (30, 40, 120))

    def share(y, decision, query):
        right = np.bincount(query, y == decision)
        return float((right[np.unique(query)] / np.bincount(query)[np.unique(query)]).mean())

    settings = {"honest": None, "radius": 6.0, "n_candidates": 20, **PAPER}
    search = small_search(make_metric(share), None, **settings)
    by_query = moew.compare(
        search,
        X,
        y,
        validation=Rows(X_val, y_val, columns={"query": of_val}, groups=of_val),
        test=Rows(X_test, y_test, columns={"query": query}, groups=query),
        repeats=2,
    )
    # All queries have ten rows, so the mean over queries is the mean over rows.
    plain = small_search("accuracy", None, **settings)
    by_row = moew.compare(
        plain,
        X,
        y,
        validation=Rows(X_val, y_val, groups=of_val),
        test=Rows(X_test, y_test, groups=query),
        repeats=2,
    )
    assert by_query.test_rows_margin == pytest.approx(by_row.test_rows_margin)
    assert by_query.test_rows_margin > 0


def test_test_rows_of_one_group_have_no_margin():
    search = small_search("accuracy", 0, honest=None)
    one = np.zeros(len(ROWS.y_test))
    test = {"test": Rows(ROWS.X_test, ROWS.y_test, groups=one)}
    with pytest.warns(MoewWarning, match="all test rows belong to one group"):
        table = moew.compare(search, ROWS.X, ROWS.y, **VALIDATION, **test, repeats=2)
    assert np.isnan(table.test_rows_margin) and np.isfinite(table["moew"].test).all()
    fitted = search.fit(ROWS.X, ROWS.y, **VALIDATION).fitted_
    tested = on_test_rows(fitted, Rows(ROWS.X_test, ROWS.y_test, groups=one))
    assert np.isnan(tested.gain_error) and np.isfinite(tested.moew)
    apart = on_test_rows(fitted, Rows(ROWS.X_test, ROWS.y_test, groups=np.arange(len(one)) // 2))
    assert np.isfinite(apart.gain_error)


def test_prepared_rows_have_their_groups():
    settings = small_search("accuracy", 0).settings
    names = np.array([f"patient {i}" for i in OF_ROWS])
    data = prepare(settings, Rows(ROWS.X, ROWS.y, groups=names), Rows(None, None)).data
    _, expected = np.unique(names, return_inverse=True)
    assert np.array_equal(data.training.groups, expected[data.training_rows])
    for folds in (data.folds, data.finalist_folds):
        for fold in folds:
            assert not set(data.training.groups[fold.train]) & set(data.validation.groups[fold.scored])
        assert sorted(np.concatenate([fold.scored for fold in folds])) == list(range(len(ROWS.y)))
    held = prepare(
        replace(settings, evaluate_on=0.2), Rows(ROWS.X, ROWS.y, groups=names), Rows(None, None)
    ).data
    assert np.array_equal(held.training.groups, expected[held.training_rows])
    assert not set(held.training.groups) & set(held.validation.groups)


@pytest.mark.parametrize("n_groups", [2, 3])
def test_few_groups_of_validation_rows_are_evaluated_beside_training_rows(n_groups):
    search, rows = small_search("accuracy", 0, base_weights="uniform"), shifted_classes(120)
    X_val, y_val = rows.X[1::2], rows.y[1::2]  # of one kind
    of_validation = 1000 + np.arange(len(y_val)) % n_groups
    search.fit(
        rows.X[::2],
        rows.y[::2],
        groups=np.arange(len(rows.y[::2])),
        validation=Rows(X_val, y_val, groups=of_validation),
    )
    assert search.result_.n_out_of_fold > 0 and np.isfinite(search.honest_score_)
