import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.special import expit
from sklearn.base import clone
from sklearn.decomposition import PCA

from moew._util.state import load_state, name_object
from moew.embedding import (
    AutoencoderEmbedding,
    ColumnsEmbedding,
    DiscriminativeEmbedding,
    FunctionEmbedding,
    LabelEmbedding,
    TransformerEmbedding,
)
from moew.exceptions import InvalidInputError
from moew.weighting import (
    CovariateShift,
    ExampleWeighting,
    FunctionBaseWeights,
    LabelShift,
    UniformBaseWeights,
    WeightFunction,
)

RNG = np.random.default_rng(0)
N, N_VAL = 80, 40
FRAME = pd.DataFrame({"a": RNG.normal(size=N), "b": RNG.choice(["x", "y", "z"], N), "c": RNG.random(N)})
FRAME_VAL = pd.DataFrame(
    {"a": RNG.normal(1, 1, N_VAL), "b": RNG.choice(["x", "y", "z"], N_VAL), "c": RNG.random(N_VAL)}
)
BINARY, BINARY_VAL = RNG.integers(0, 2, N), (RNG.random(N_VAL) < 0.8).astype(int)
NUMBERS, NUMBERS_VAL = RNG.normal(size=N), RNG.normal(1, 1, N_VAL)
NUMERIC, NUMERIC_VAL = FRAME[["a", "c"]], FRAME_VAL[["a", "c"]]


def two_columns(X, y):
    return np.asarray(X, dtype=float)[:, :2]


def by_label(X, y):
    return 1.0 + 2.0 * np.asarray(y, dtype=float) ** 2


class Fixed:
    """An embedding and base weights of given arrays, for the training rows only."""

    def __init__(self, array):
        self.array = np.asarray(array, dtype=float)

    def fit(self, X, y, X_val=None, y_val=None, *, task):
        return self

    def transform(self, X, y):
        return self.array

    def fit_weights(self, X, y, X_val=None, y_val=None, *, task):
        return self.array

    def weights(self, X, y):
        return self.array

    def state(self):
        return {}


def weighting_of(Z, pi, u=None):
    y = np.zeros(len(pi))
    return ExampleWeighting(Fixed(Z), Fixed(pi)).fit(None, y, task="regression", sample_weight=u)


@st.composite
def cases(draw, alpha_size=30.0):
    n, d, k = draw(st.integers(1, 12)), draw(st.integers(1, 4)), draw(st.integers(1, 4))
    Z = draw(hnp.arrays(np.float64, (n, d), elements=st.floats(-3, 3)))
    pi = draw(hnp.arrays(np.float64, n, elements=st.floats(0.01, 50)))
    u = draw(st.none() | hnp.arrays(np.float64, n, elements=st.floats(0.1, 9)))
    alphas = draw(hnp.arrays(np.float64, (k, d), elements=st.floats(-alpha_size, alpha_size)))
    return Z, pi, u, alphas


@given(cases())
def test_weights_are_equation_3_with_mean_one(case):
    Z, pi, u, alphas = case
    weights = weighting_of(Z, pi, u).training_weights(alphas)
    assert weights.shape == (len(alphas), len(pi))
    assert (weights > 0).all()
    counts = np.ones(len(pi)) if u is None else u
    np.testing.assert_allclose(weights.sum(axis=1), counts.sum(), rtol=1e-9)
    for alpha, row in zip(alphas, weights, strict=True):
        unscaled = counts * pi * expit(Z @ alpha)
        np.testing.assert_allclose(row, unscaled * counts.sum() / unscaled.sum(), rtol=1e-9)


@given(cases())
def test_zero_alpha_is_exactly_the_baseline(case):
    Z, pi, u, _ = case
    zero = np.zeros((1, Z.shape[1]))
    plain = weighting_of(Z, pi)
    np.testing.assert_array_equal(plain.training_weights(zero)[0], pi / pi.mean())
    np.testing.assert_array_equal(plain.training_weights(-zero)[0], pi / pi.mean())
    np.testing.assert_array_equal(plain.weight_function(zero[0])(None, np.zeros(len(pi))), pi / pi.mean())
    if u is not None:
        expected = pi / ((pi * u).sum() / u.sum()) * u
        np.testing.assert_array_equal(weighting_of(Z, pi, u).training_weights(zero)[0], expected)


@given(cases(), st.integers(-30, 30), st.floats(1e-6, 1e6))
def test_a_constant_factor_of_the_baseline_changes_nothing(case, power, factor):
    Z, pi, u, alphas = case
    weights = weighting_of(Z, pi, u).training_weights(alphas)
    np.testing.assert_array_equal(weighting_of(Z, pi * 2.0**power, u).training_weights(alphas), weights)
    np.testing.assert_allclose(weighting_of(Z, pi * factor, u).training_weights(alphas), weights, rtol=1e-12)


@given(cases())
def test_without_a_baseline_weights_rise_with_the_score(case):
    Z, _, _, alphas = case
    weights = weighting_of(Z, np.ones(len(Z))).training_weights(alphas)
    for alpha, row in zip(alphas, weights, strict=True):
        order = np.argsort(Z @ alpha)
        assert (np.diff(row[order]) >= -1e-9 * row.max()).all()


@given(cases())
def test_a_candidates_weights_do_not_depend_on_its_batch(case):
    Z, pi, u, alphas = case
    together = weighting_of(Z, pi, u)
    batch = together.training_weights(alphas)
    for alpha, row in zip(alphas, batch, strict=True):
        np.testing.assert_array_equal(together.training_weights(alpha[None])[0], row)


def test_a_row_gets_the_same_weight_in_every_chunk():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(1000, 7)), rng.integers(0, 3, 1000)
    function = (
        ExampleWeighting(ColumnsEmbedding(list(range(7))), LabelShift())
        .fit(X, y, X[:300], y[:300], task="classification")
        .weight_function(rng.normal(size=10))
    )
    whole = function(X, y)
    chunks = [function(X[i : i + 37], y[i : i + 37]) for i in range(0, 1000, 37)]
    np.testing.assert_array_equal(np.concatenate(chunks), whole)


@pytest.mark.parametrize("size", [1e3, 1e100, 1e200, 1e308])
def test_extreme_alphas_give_weights_not_nan(size):
    rng = np.random.default_rng(4)
    Z = rng.normal(size=(50, 3))
    directions = np.array([[1, -1, 1], [1, 1, 1.0]])
    Z = Z[np.abs(directions @ Z.T).min(axis=0) > 0.05]  # where so steep a sigmoid is a step
    score = directions @ Z.T
    weights = weighting_of(Z, np.ones(len(Z))).training_weights(size * directions)
    step = (score > 0).astype(float)
    np.testing.assert_allclose(weights, step / step.mean(axis=1, keepdims=True), atol=1e-8)


def test_huge_coordinates_that_cancel_give_no_nan():
    Z = np.array([[1e308, 1e308], [1e308, 1e307], [1.0, 2.0]])
    weights = weighting_of(Z, np.ones(3)).training_weights(np.array([[1e308, -1e308]]))
    np.testing.assert_allclose(weights, [[1.0, 2.0, 0.0]])


@pytest.mark.parametrize("u", [None, np.array([2.0, 1.0, 0.5, 3.0])])
def test_weights_keep_their_ratios_where_every_sigmoid_is_zero(u):
    Z, pi = np.array([[1.0], [1.00001], [1.00002], [2.0]]), np.array([1.0, 2.0, 3.0, 4.0])
    alphas = np.array([[1.0], [-1e5], [-3e6]])
    weighting = weighting_of(Z, pi, u)
    weights = weighting.training_weights(alphas)
    counts = np.ones(4) if u is None else u
    np.testing.assert_allclose(weights.sum(axis=1), counts.sum())
    for alpha, row in zip(alphas[1:, 0], weights[1:], strict=True):  # σ(t) = exp(t) so far out
        expected = counts * pi * np.exp(alpha * (Z[:, 0] - Z[0, 0]))
        np.testing.assert_allclose(row / row[0], expected / expected[0], rtol=1e-6)
    for alpha, row in zip(alphas, weights, strict=True):
        function = weighting.weight_function(alpha)
        np.testing.assert_array_equal(function(None, np.zeros(4)) * counts, row)
    assert weighting.weight_function(alphas[1]).c == np.inf


def test_a_new_row_beyond_all_training_rows_weighs_more_than_floats_hold():
    def z(X, y):
        return np.asarray(X)

    X = np.array([[1.0], [2.0]])
    weighting = ExampleWeighting(FunctionEmbedding(z, standardize=False), FunctionBaseWeights(lambda X, y: y))
    function = weighting.fit(X, [1e-200, 1e-200], task="regression").weight_function(np.array([-1e3]))
    np.testing.assert_allclose(
        function(np.r_[X, [[0.0]], [[0.5]]], [1e-200] * 4), [2, 0, np.inf, 2 * np.exp(500)]
    )
    assert function(X[:1], [1e200]) == np.inf


def test_rows_that_do_not_count_do_not_set_the_scale():
    weighting = weighting_of(np.array([[0.0], [1.0], [1.0]]), np.ones(3), np.array([0.0, 1.0, 1.0]))
    np.testing.assert_array_equal(weighting.training_weights(np.array([[-1e5]])), [[0.0, 1.0, 1.0]])


def test_overflow_is_an_error():
    with pytest.raises(InvalidInputError, match="smaller radius"):
        weighting_of(np.full((4, 1), 1e200), np.ones(4)).training_weights(np.array([[1.0], [-1e200]]))
    for Z, pi in (([[-1], [1], [1]], [1.0, 1e308, 1e308]), ([[-1], [-1], [1]], [1.0, 1.0, 5e-324])):
        with pytest.raises(InvalidInputError, match="multiply them by a constant"):
            weighting_of(Z, pi).training_weights(np.array([[1e9]]))


def test_c_is_the_factor_of_equation_3():
    rng = np.random.default_rng(6)
    Z, pi, alpha = rng.normal(size=(9, 2)), rng.uniform(0.5, 2, 9), np.array([2.0, -1.0])
    function = weighting_of(Z, pi).weight_function(alpha)
    np.testing.assert_allclose(function.c, 1 / (pi * expit(Z @ alpha)).mean())
    np.testing.assert_allclose(function(None, np.zeros(9)), function.c * pi * expit(Z @ alpha))


@pytest.mark.parametrize(
    ("alphas", "message"),
    [
        (np.zeros((2, 3)), r"shape \(K, 2\)"),
        (np.zeros(2), r"shape \(K, 2\)"),
        (np.array([[np.nan, 0]]), "finite"),
        (np.array([[np.inf, 0]]), "finite"),
    ],
)
def test_bad_alphas_are_refused(alphas, message):
    weighting = weighting_of(np.ones((4, 2)), np.ones(4))
    assert weighting.n_dims == 2
    with pytest.raises(InvalidInputError, match=message):
        weighting.training_weights(alphas)
    if alphas.ndim == 2 and len(alphas) == 1:
        with pytest.raises(InvalidInputError, match=message):
            weighting.weight_function(alphas[0])


@pytest.mark.parametrize("u", [np.ones(3), np.array([1, 1, -1, 1.0]), np.zeros(4), [1, 1, np.nan, 1]])
def test_bad_sample_weights_are_refused(u):
    with pytest.raises(InvalidInputError, match="sample_weight must be 4"):
        weighting_of(np.ones((4, 2)), np.ones(4), u)


def test_the_users_weights_act_like_repeated_rows():
    rng = np.random.default_rng(5)
    Z, pi, counts = rng.normal(size=(20, 2)), rng.uniform(0.5, 2, 20), rng.integers(1, 4, 20)
    alphas = rng.normal(size=(3, 2))
    weighted = weighting_of(Z, pi, counts.astype(float))
    repeated = weighting_of(np.repeat(Z, counts, axis=0), np.repeat(pi, counts))
    sums = np.add.reduceat(repeated.training_weights(alphas), np.r_[0, np.cumsum(counts)[:-1]], axis=1)
    np.testing.assert_allclose(weighted.training_weights(alphas), sums, rtol=1e-12)
    np.testing.assert_allclose(weighted.weight_function(alphas[0]).c, repeated.weight_function(alphas[0]).c)


def test_cross_fitted_weights_are_taken_for_the_training_rows():
    weighting = ExampleWeighting(LabelEmbedding(), CovariateShift(random_state=0))
    weighting.fit(FRAME, BINARY, FRAME_VAL, BINARY_VAL, task="classification")
    np.testing.assert_array_equal(weighting.pi_, weighting.base_weights.training_weights_)
    assert not np.array_equal(weighting.pi_, weighting.base_weights.weights(FRAME, BINARY))


EMBEDDINGS = [
    LabelEmbedding(),
    ColumnsEmbedding(["a"]),
    TransformerEmbedding(PCA(1)),
    FunctionEmbedding(two_columns),
    AutoencoderEmbedding(n_dims=2, hidden=5, steps=20, random_state=0),
    DiscriminativeEmbedding(hidden=(4, 2), steps=20, random_state=0),
]
BASELINES = [
    UniformBaseWeights(),
    LabelShift(),
    CovariateShift(random_state=0),
    FunctionBaseWeights(by_label),
]


@pytest.mark.parametrize("base_weights", BASELINES, ids=lambda b: type(b).__name__)
@pytest.mark.parametrize("embedding", EMBEDDINGS, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_every_weight_function_survives_json_bit_for_bit(embedding, base_weights, task):
    y, y_val = (BINARY, BINARY_VAL) if task == "classification" else (NUMBERS, NUMBERS_VAL)
    embedding, base_weights = clone(embedding), clone(base_weights)
    weighting = ExampleWeighting(embedding, base_weights).fit(NUMERIC, y, NUMERIC_VAL, y_val, task=task)
    function = weighting.weight_function(np.linspace(-2, 3, weighting.n_dims))
    assert isinstance(function, WeightFunction)
    objects = {name_object(thing): thing for thing in (two_columns, by_label)}
    if isinstance(embedding, TransformerEmbedding):
        objects[name_object(embedding.transformer_)] = embedding.transformer_
    loaded = load_state(json.loads(json.dumps(function.state())), objects)
    for X, labels in ((NUMERIC, y), (NUMERIC_VAL, y_val)):
        weights = function(X, labels)
        assert (weights > 0).all()
        np.testing.assert_array_equal(loaded(X, labels), weights)
    assert loaded.c == function.c
    if not hasattr(base_weights, "training_weights_"):
        rows = weighting.training_weights(function.alpha[None])[0]
        np.testing.assert_array_equal(function(NUMERIC, y), rows)


def test_a_weight_function_keeps_its_alpha():
    weighting = weighting_of(np.ones((4, 2)), np.ones(4))
    alpha = np.array([1.0, 2.0])
    function = weighting.weight_function(alpha)
    alpha[0] = 7
    np.testing.assert_array_equal(function.alpha, [1, 2])
    with pytest.raises(AttributeError):
        function.mean = 3.0
