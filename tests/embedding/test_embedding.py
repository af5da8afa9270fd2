import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.class_weight import compute_sample_weight

from moew._util.state import load_state, name_object
from moew.embedding import (
    AutoencoderEmbedding,
    ColumnsEmbedding,
    DiscriminativeEmbedding,
    FunctionEmbedding,
    LabelEmbedding,
    TransformerEmbedding,
    resolve_embedding,
)
from moew.exceptions import InvalidInputError, StateError
from moew.types import Embedding

RNG = np.random.default_rng(0)
N = 60
FRAME = pd.DataFrame(
    {
        "age": RNG.normal(40, 10, N),
        "city": RNG.choice(["Bern", "Kiel", "Nice"], N),
        "member": RNG.random(N) < 0.4,
        "income": np.where(RNG.random(N) < 0.2, np.nan, RNG.lognormal(0, 1, N)),
    }
)
BINARY = RNG.choice(["no", "yes"], N)
CLASSES = RNG.choice([2, 3, 5], N)
NUMBERS = RNG.lognormal(0, 1, N)
TASKS = [("classification", BINARY), ("classification", CLASSES), ("regression", NUMBERS)]


def first_two(X, y):
    return np.asarray(X)[:, [0]].astype(float) * [1.0, 2.0]


def through_json(embedding, objects=None):
    return load_state(json.loads(json.dumps(embedding.state())), objects)


def fit_transform(embedding, X, y, task):
    return embedding.fit(X, y, task=task).transform(X, y)


CHEAP = [
    LabelEmbedding(),
    LabelEmbedding(n_bins=3, standardize=False),
    ColumnsEmbedding(["age", "city"]),
    ColumnsEmbedding([0, 3], label=False, scale=False, standardize=False),
    FunctionEmbedding(first_two),
    TransformerEmbedding(OneHotEncoder(handle_unknown="ignore")),
]

NAMES = [f"{type(embedding).__name__}{i}" for i, embedding in enumerate(CHEAP)]


def standardized_by_class(Z, y, task="classification"):
    """scikit-learn's scaler, with every class counted the same."""
    balance = compute_sample_weight("balanced", y) if task == "classification" else None
    return StandardScaler().fit_transform(Z, sample_weight=balance)


@pytest.mark.parametrize("embedding", CHEAP, ids=NAMES)
@pytest.mark.parametrize(("task", "y"), TASKS, ids=["binary", "classes", "regression"])
def test_every_embedding_gives_finite_coordinates_that_survive_json(embedding, task, y):
    embedding = clone(embedding)
    assert isinstance(embedding, Embedding)
    Z = fit_transform(embedding, FRAME, y, task)
    assert Z.dtype == np.float64
    assert len(Z) == N
    assert np.isfinite(Z).all()
    if embedding.standardize:
        np.testing.assert_allclose(Z, standardized_by_class(Z, y, task), atol=1e-11)
    objects = {name_object(first_two): first_two}
    if isinstance(embedding, TransformerEmbedding):
        objects[name_object(embedding.transformer_)] = embedding.transformer_
    loaded = through_json(embedding, objects)
    np.testing.assert_array_equal(loaded.transform(FRAME, y), Z)
    np.testing.assert_array_equal(embedding.transform(FRAME[10:20], y[10:20]), Z[10:20])
    assert loaded.state() == embedding.state()


@pytest.mark.parametrize("embedding", CHEAP, ids=NAMES)
def test_an_embedding_must_be_fitted_first(embedding):
    with pytest.raises(NotFittedError):
        clone(embedding).transform(FRAME, BINARY)
    with pytest.raises(NotFittedError):
        clone(embedding).state()
    with pytest.raises(InvalidInputError, match="task must be"):
        clone(embedding).fit(FRAME, BINARY, task="ranking")


@pytest.mark.parametrize("y", [BINARY, CLASSES, CLASSES == 2, pd.Series(BINARY)])
def test_label_is_one_hot_of_every_class(y):
    Z = fit_transform(LabelEmbedding(standardize=False), None, y, "classification")
    oracle = OneHotEncoder(sparse_output=False).fit_transform(np.asarray(y).reshape(-1, 1))
    np.testing.assert_array_equal(Z, oracle)
    standardized = fit_transform(LabelEmbedding(), scipy.sparse.eye_array(N), y, "classification")
    np.testing.assert_allclose(standardized, standardized_by_class(oracle, y))


def test_labels_that_training_did_not_have_are_refused():
    embedding = LabelEmbedding().fit(None, BINARY, task="classification")
    with pytest.raises(InvalidInputError, match="perhaps"):
        embedding.transform(None, ["perhaps"])
    with pytest.raises(InvalidInputError, match="n_bins"):
        LabelEmbedding(n_bins=0).fit(None, BINARY, task="classification")


def test_regression_bins_follow_pandas_quantiles_and_catch_values_beyond_the_ends():
    y = np.random.default_rng(1).normal(size=200)
    embedding = LabelEmbedding(n_bins=5, standardize=False).fit(None, y, task="regression")
    Z = embedding.transform(None, y)
    assert Z.shape == (200, 5)
    np.testing.assert_allclose(Z.sum(axis=0), 40, atol=1)
    agreement = Z.argmax(axis=1) == pd.qcut(y, 5, labels=False)
    assert agreement.mean() >= 0.98  # a row on an edge may fall to either side
    np.testing.assert_array_equal(embedding.transform(None, [-1e9, 1e9]).argmax(axis=1), [0, 4])


@given(st.lists(st.integers(0, 4), min_size=1, max_size=40), st.integers(1, 12))
def test_regression_bins_are_never_empty_and_keep_the_order(values, n_bins):
    y = np.array(values, dtype=float)
    Z = fit_transform(LabelEmbedding(n_bins, standardize=False), None, y, "regression")
    assert (Z.sum(axis=1) == 1).all()
    assert (Z.sum(axis=0) > 0).all()
    assert Z.shape[1] <= min(n_bins, len(np.unique(y)))
    assert (np.diff(Z.argmax(axis=1)[np.argsort(y, kind="stable")]) >= 0).all()


def test_columns_by_name_and_by_position_are_the_same():
    by_name = fit_transform(ColumnsEmbedding(["age", "member"]), FRAME, BINARY, "classification")
    by_position = fit_transform(ColumnsEmbedding([0, np.int64(2)]), FRAME, BINARY, "classification")
    np.testing.assert_array_equal(by_name, by_position)
    oracle = np.column_stack([FRAME["age"], FRAME["member"], BINARY == "yes"]).astype(float)
    np.testing.assert_allclose(by_name, standardized_by_class(oracle, BINARY), atol=1e-12)
    raw = ColumnsEmbedding(["member", "age"], label=False, scale=False, standardize=False)
    np.testing.assert_array_equal(fit_transform(raw, FRAME, BINARY, "classification"), oracle[:, [1, 0]])


def test_columns_of_an_array():
    X = np.random.default_rng(2).normal(size=(N, 4))
    embedding = ColumnsEmbedding([3, 1], label=False, scale=False, standardize=False)
    np.testing.assert_array_equal(fit_transform(embedding, X, NUMBERS, "regression"), X[:, [3, 1]])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["agee"], r"no column 'agee'; it has the names \['age', .* positions 0 to 3"),
        ([4], "no column 4"),
        ([-1], "no column -1"),
        ([True], "no column True"),
        ([], "one or more"),
        ("age", "list of"),
    ],
)
def test_columns_that_are_not_there_are_refused(columns, message):
    with pytest.raises(InvalidInputError, match=message):
        ColumnsEmbedding(columns).fit(FRAME, BINARY, task="classification")


def test_columns_must_be_those_of_training():
    embedding = ColumnsEmbedding(["age"]).fit(FRAME, BINARY, task="classification")
    with pytest.raises(InvalidInputError, match=r"missing: \['city'\]"):
        embedding.transform(FRAME.drop(columns="city"), BINARY)
    with pytest.raises(InvalidInputError, match="60 rows and y has 5"):
        embedding.transform(FRAME, BINARY[:5])
    with pytest.raises(InvalidInputError, match="sparse"):
        ColumnsEmbedding([0]).fit(scipy.sparse.eye_array(N).tocsr(), BINARY, task="classification")
    with pytest.raises(InvalidInputError, match="two dimensions"):
        ColumnsEmbedding([0]).fit(NUMBERS, BINARY, task="classification")
    with pytest.raises(InvalidInputError, match="no column 'age'; it has the positions"):
        ColumnsEmbedding(["age"]).fit(np.eye(N), BINARY, task="classification")


def test_transformer_is_fitted_on_raw_rows_and_the_given_one_stays_unfitted():
    X = np.random.default_rng(3).normal(size=(N, 5))
    given_pca = PCA(2, random_state=0)
    embedding = TransformerEmbedding(given_pca, label=False, standardize=False)
    Z = fit_transform(embedding, X, BINARY, "classification")
    np.testing.assert_array_equal(Z, PCA(2, random_state=0).fit(X).transform(X))
    assert not hasattr(given_pca, "components_")
    with_label = fit_transform(TransformerEmbedding(given_pca), X, BINARY, "classification")
    assert with_label.shape == (N, 3)
    assert set(np.sign(with_label[BINARY == "yes", 2])) == {1.0}


def test_transformers_may_need_the_label_or_give_sparse_rows():
    X = np.random.default_rng(4).normal(size=(N, 3))
    supervised = TransformerEmbedding(LinearDiscriminantAnalysis(), label=False)
    assert fit_transform(supervised, X, CLASSES, "classification").shape == (N, 2)
    texts = ["spam offer", "dear friend", "offer now"] * 20
    for label in (True, False):
        Z = fit_transform(
            TransformerEmbedding(TfidfVectorizer(), label=label), texts, BINARY, "classification"
        )
        assert Z.shape == (N, 5 + label)


def test_states_with_the_users_objects_need_them_handed_in():
    embedding = FunctionEmbedding(first_two).fit(FRAME[["age"]], BINARY, task="classification")
    with pytest.raises(StateError, match="first_two"):
        through_json(embedding)
    embedding = TransformerEmbedding(PCA(1)).fit(FRAME[["age"]], BINARY, task="classification")
    with pytest.raises(StateError, match="PCA"):
        through_json(embedding)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda X, y: np.zeros(len(y)), "it gave shape"),
        (lambda X, y: np.zeros((3, 2)), "it gave shape"),
        (lambda X, y: np.zeros((len(y), 0)), "it gave shape"),
        (lambda X, y: np.full((len(y), 1), "a"), "must give numbers"),
        (lambda X, y: np.where(np.arange(len(y)) == 7, np.nan, 1.0)[:, None], "first: row 7"),
        (lambda X, y: np.full((len(y), 1), np.inf), "NaN or infinite"),
    ],
)
def test_functions_are_checked(function, message):
    with pytest.raises(InvalidInputError, match=message):
        FunctionEmbedding(function).fit(FRAME, BINARY, task="classification")


def test_a_function_must_give_the_same_number_of_dimensions_for_any_rows():
    embedding = FunctionEmbedding(lambda X, y: np.ones((len(y), len(y)))).fit(None, [1, 2], task="regression")
    with pytest.raises(InvalidInputError, match="3 dimensions here and 2 in training"):
        embedding.transform(None, [1, 2, 3])


@pytest.mark.parametrize("constant", [0.0, 0.1, 1e9 / 3, -1e-300])
def test_constant_dimensions_become_zero_also_on_new_rows(constant):
    def embed(X, y):
        speck = constant * (1 + 1e-16 * np.arange(len(y)))
        return np.column_stack([speck, np.asarray(y, dtype=float)])

    embedding = FunctionEmbedding(embed).fit(None, NUMBERS, task="regression")
    Z = embedding.transform(None, NUMBERS)
    assert (Z[:, 0] == 0).all()
    np.testing.assert_allclose(Z[:, 1].std(), 1)
    assert (embedding.transform(None, NUMBERS[:3])[:, 0] == 0).all()


def test_small_dimensions_are_not_taken_for_constant():
    Z = fit_transform(FunctionEmbedding(lambda X, y: 1e-100 * y[:, None]), None, NUMBERS, "regression")
    np.testing.assert_allclose(Z.std(axis=0), 1)


@pytest.mark.parametrize(
    ("thing", "kind"),
    [
        ("label", LabelEmbedding),
        ("autoencoder", AutoencoderEmbedding),
        ("discriminative", DiscriminativeEmbedding),
        (["age", 2], ColumnsEmbedding),
        ((0, 1), ColumnsEmbedding),
        (PCA(2), TransformerEmbedding),
        (first_two, FunctionEmbedding),
        (LabelEmbedding(n_bins=4), LabelEmbedding),
    ],
)
def test_resolve_takes_names_columns_objects_and_functions(thing, kind):
    assert type(resolve_embedding(thing)) is kind


def test_resolve_copies():
    mine = AutoencoderEmbedding(n_dims=3)
    resolved = resolve_embedding(mine)
    assert resolved is not mine
    assert resolved.n_dims == 3
    assert resolve_embedding("label").get_params() == LabelEmbedding().get_params()


def test_resolve_takes_a_foreign_embedding_as_it_is():
    class Own:
        def fit(self, X, y, *, task):
            return self

        def transform(self, X, y):
            return np.ones((len(y), 1))

        def state(self):
            return {}

    own = Own()
    assert resolve_embedding(own) is own


@pytest.mark.parametrize("thing", ["autoencode", None, 3, [], [1.5], [True], LabelEmbedding, object()])
def test_resolve_refuses_other_things_and_lists_what_is_allowed(thing):
    with pytest.raises(
        InvalidInputError, match=r"'autoencoder', 'directions', 'discriminative', 'label'.*PCA"
    ):
        resolve_embedding(thing)


@pytest.mark.parametrize("share", [0.1, 0.01])
def test_a_rare_class_can_be_raised_as_far_as_a_common_one(share):
    y = np.zeros(2_000, dtype=int)
    y[: int(share * 2_000)] = 1
    Z = LabelEmbedding().fit(None, y, task="classification").transform(None, y)
    rng = np.random.default_rng(0)
    alphas = rng.standard_normal((400, 2))
    alphas *= 5 / np.linalg.norm(alphas, axis=1, keepdims=True)
    rare, common = 1 / (1 + np.exp(-alphas @ Z[0])), 1 / (1 + np.exp(-alphas @ Z[-1]))
    assert (rare / common).max() > 30
    assert 0.4 < np.mean(rare > common) < 0.6
