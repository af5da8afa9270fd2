"""Bad input raises at once, before any training, and says what to do."""

import numpy as np
import pandas as pd
import pytest
from problems import mixed_frame, shifted_classes, skewed_target
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from moew import ExampleWeightSearch, NetworkClassifier
from moew.decision import EqualFalsePositiveRates, MostAccurate, ShareSelected
from moew.exceptions import InvalidInputError, MoewError, SearchFailedError
from moew.metrics import fpr_gap, precision_at_recall, value_per_harm
from moew.samplers import GpBucb

ROWS = shifted_classes(60)
VALIDATION = {"X_val": ROWS.X_val, "y_val": ROWS.y_val}


class Untrained(LogisticRegression):
    """Fails the test if it is ever trained."""

    def fit(self, X, y, sample_weight=None):
        pytest.fail("a model was trained before the input was checked")


def fit(X=ROWS.X, y=ROWS.y, *, settings=None, estimator=None, **data):
    search = ExampleWeightSearch(
        Untrained() if estimator is None else estimator,
        **{"embedding": "label", "n_batches": 1, "batch_size": 2, "random_state": 0, **(settings or {})},
    )
    return search.fit(X, y, **data)


def refused(match, *args, **kwargs):
    with pytest.raises((MoewError, ValueError), match=match) as caught:
        fit(*args, **kwargs)
    assert isinstance(caught.value, MoewError)


def test_too_few_rows():
    refused("at least 2 samples", ROWS.X[:0], ROWS.y[:0])
    refused("at least 2 samples", ROWS.X[:1], ROWS.y[:1])
    refused("validation rows need at least 2", X_val=ROWS.X_val[:1], y_val=ROWS.y_val[:1])


def test_lengths_that_differ():
    refused("inconsistent numbers of samples", ROWS.X, ROWS.y[:-1])
    refused("sample_weight has 3", sample_weight=np.ones(3))
    refused("cost has 2", **VALIDATION, metadata_val={"cost": [1.0, 2.0]})


def test_validation_rows_and_labels_go_together():
    refused("go together", X_val=ROWS.X_val)
    refused("go together", y_val=ROWS.y_val)
    refused("need X_val", metadata_val={"cost": ROWS.y_val})


def test_columns_of_the_validation_rows():
    refused("have 1 columns, the training rows have 2", X_val=ROWS.X_val[:, :1], y_val=ROWS.y_val)
    X, y = mixed_frame()
    renamed = X.rename(columns={"kind": "sort"})
    refused("missing: .'kind'., extra: .'sort'.", X, y, X_val=renamed, y_val=y)


def test_labels():
    refused("NaN or infinity", y=np.where(ROWS.y == 0, np.nan, 1.0))
    refused("NaN or infinity", y=np.where(ROWS.y == 0, np.inf, 1.0), estimator=Ridge())
    refused("nothing to learn", y=np.zeros(len(ROWS.y)))
    refused("nothing to learn", y=np.ones(len(ROWS.y)), estimator=Ridge())
    refused("base_weights='uniform'", X_val=ROWS.X_val, y_val=ROWS.y_val + 1)


def test_estimators_that_cannot_take_weights():
    refused("takes no 'sample_weight'", estimator=KNeighborsClassifier())
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    refused("sample_weight_name='logisticregression__sample_weight'", estimator=pipeline)
    refused("no step 'model'", estimator=pipeline, settings={"sample_weight_name": "model__sample_weight"})
    refused("neither a classifier nor a regressor", estimator=StandardScaler())
    refused("takes no 'weight'", settings={"sample_weight_name": "weight"})


def test_metric_columns():
    settings = {"metric": value_per_harm(), "decision": ShareSelected(0.2)}
    refused("metadata_val=.*'harm'", settings=settings, **VALIDATION)
    short = {"value": np.ones(len(ROWS.y_val)), "harm": np.ones(3)}
    refused("harm has 3", settings=settings, **VALIDATION, metadata_val=short)


def test_settings():
    for name in ("n_batches", "batch_size", "alpha_zero_repeats"):
        refused(f"{name} must be a whole number", settings={name: 0})
    refused("radius must be a positive", settings={"radius": -1.0})
    refused("radius must be a positive", settings={"radius": 0.0})
    refused("honest must be", settings={"honest": "surely"})
    refused("random_state must be an integer", settings={"storage": "run.log", "random_state": None})
    refused("gp_bucb", settings={"sampler": "hill climbing"})
    refused("autoencoder", settings={"embedding": "umap"})
    refused("covariate_shift", settings={"base_weights": "balanced"}, **VALIDATION)
    refused("get_scorer_names", settings={"metric": "no such scorer"})
    with pytest.raises(InvalidInputError, match="p is in percent"):
        GpBucb(p=101)
    with pytest.raises(InvalidInputError, match="q is in percent"):
        GpBucb(q=-1)


def test_groups_without_negatives():
    group = np.where(ROWS.y_val == 1, "all positive", "mixed")
    refused("all positive", settings={"metric": fpr_gap()}, **VALIDATION, metadata_val={"group": group})
    rule = EqualFalsePositiveRates(0.5)
    both = {"metadata": {"group": np.where(ROWS.y == 1, "a", "b")}, "metadata_val": {"group": group}}
    refused("'a'", settings={"decision": rule}, **VALIDATION, **both)
    refused("group", settings={"decision": rule}, **VALIDATION)


def test_rules_need_two_classes():
    three = shifted_classes(60, 3)
    refused("two classes", three.X, three.y, settings={"decision": MostAccurate()})
    regression = skewed_target(50)
    settings = {"decision": MostAccurate()}
    refused("two classes", regression.X, regression.y, estimator=Ridge(), settings=settings)


def test_metrics_without_a_value():
    refused("must return one number", settings={"metric": lambda y, d: None}, **VALIDATION)
    refused("must return one number", settings={"metric": lambda y, d: d}, **VALIDATION)
    only_negatives = ROWS.y_val == 0
    refused(
        "positive",
        settings={"metric": precision_at_recall(), "base_weights": "uniform"},
        X_val=ROWS.X_val[only_negatives],
        y_val=ROWS.y_val[only_negatives],
    )


def test_sparse_rows_where_a_part_cannot_take_them():
    sparse = csr_array(ROWS.X)
    refused("sparse", sparse, settings={"embedding": "autoencoder"})
    refused(
        "sparse",
        sparse,
        X_val=csr_array(ROWS.X_val),
        y_val=ROWS.y_val,
        settings={"base_weights": "covariate_shift"},
    )
    with pytest.raises((InvalidInputError, SearchFailedError, TypeError), match="[Ss]parse"):
        fit(sparse, estimator=NetworkClassifier(steps=1))


def test_holdout_needs_validation_rows():
    refused("needs validation rows", settings={"honest": "holdout", "validation": 3})


def test_if_every_candidate_fails_the_first_message_is_shown():
    class Broken(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            raise RuntimeError("the disk is full")

    with pytest.raises(SearchFailedError, match="the disk is full"):
        fit(estimator=Broken())


def test_metrics_of_two_classes_and_of_weights():
    three = shifted_classes(60, 3)
    refused("is for two classes, got 3 classes", three.X, three.y, settings={"metric": precision_at_recall()})

    def weighted(y_true, decision, *, sample_weight):
        return float(np.average(y_true == decision, weights=sample_weight))

    refused("sample_weight", settings={"metric": weighted}, **VALIDATION)


TEXTS = np.array(["0", "1"] * 20)


@pytest.mark.parametrize(
    "texts", [TEXTS, pd.Series(TEXTS), TEXTS.astype(object)], ids=["U", "pandas", "object"]
)
@pytest.mark.parametrize("kind", [int, np.uint8, float, bool])
def test_texts_against_numbers_are_refused(texts, kind):
    X = np.random.default_rng(0).normal(size=(40, 2))
    search = ExampleWeightSearch(LogisticRegression(), embedding="label", n_batches=1, batch_size=2)
    numbers = TEXTS.astype(int).astype(kind)
    for y, y_val in ((texts, numbers), (numbers, texts)):
        with pytest.raises(InvalidInputError, match="are strings"):
            search.fit(X, y, X_val=X, y_val=y_val)


@pytest.mark.parametrize("kind", ["str", "string", "boolean", "Int64", "category"])
def test_missing_labels_of_any_kind_are_refused(kind):
    y = pd.Series([True, False] * 10).astype("category" if kind == "category" else kind)
    y[3] = pd.NA
    search = ExampleWeightSearch(LogisticRegression(), embedding="label", n_batches=1, batch_size=2)
    with pytest.raises(InvalidInputError, match="hold NaN or infinity in 1 rows"):
        search.fit(np.zeros((20, 2)), y)


def test_a_negative_seed_is_refused_by_its_name():
    with pytest.raises(InvalidInputError, match="random_state must not be negative, got -1"):
        ExampleWeightSearch(LogisticRegression(), random_state=-1).fit(np.eye(4), [0, 1, 0, 1])


def test_a_metric_cannot_write_into_the_rows():
    def in_millimetres(y, prediction):
        y *= 1000
        return -float(np.abs(y - 1000 * prediction).mean())

    rows = skewed_target()
    before = rows.y_val.copy()
    search = ExampleWeightSearch(Ridge(), metric=in_millimetres, embedding="label", n_batches=1, batch_size=2)
    with pytest.raises(MoewError, match="read-only"):
        search.fit(rows.X, rows.y, X_val=rows.X_val, y_val=rows.y_val)
    np.testing.assert_array_equal(rows.y_val, before)
