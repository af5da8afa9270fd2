"""Columns of the columns as coordinates of the weights, found by their names."""

import numpy as np
import pandas as pd
import pytest
from problems import shifted_classes
from sklearn.linear_model import LogisticRegression

from moew import MetricSearch, load
from moew.embedding import ColumnsEmbedding
from moew.exceptions import InvalidInputError

ROWS = shifted_classes(80)
N = len(ROWS.y)
COST = np.random.default_rng(0).exponential(size=N)
KIND = np.where(ROWS.X[:, 0] > 0.5, "far", "near")
SEARCH = {
    "n_candidates": 4,
    "batch_size": 4,
    "random_state": 0,
    "strategies": "example weights",
    "final": "best",
}


def frame(X=ROWS.X):
    return pd.DataFrame(X, columns=["a", "b"])


@pytest.mark.parametrize(
    "embedding",
    [["cost"], ["a", "cost"], "columns=cost", "columns= a, cost", ColumnsEmbedding(["cost"], label=False)],
)
def test_the_same_as_a_column_of_x(embedding):
    """Coordinates are those that a column of X would give."""
    columns = {"cost": COST}
    search = MetricSearch.from_settings(LogisticRegression(), embedding=embedding, **SEARCH)
    search.fit(frame(), ROWS.y, columns=columns)
    names = ["a", "cost"] if "a" in str(embedding) and "label" not in str(embedding) else ["cost"]
    oracle = ColumnsEmbedding(names, label="label=False" not in str(embedding))
    Z = oracle.fit(frame().assign(cost=COST), ROWS.y, task="classification").transform(
        frame().assign(cost=COST), ROWS.y
    )
    assert np.array_equal(search.fitted_.weighting.Z_, Z)


def test_weights_of_new_rows_need_it_or_find_it_in_x(tmp_path):
    search = MetricSearch.from_settings(LogisticRegression(), embedding=["kind", "cost"], **SEARCH)
    search.fit(frame(), ROWS.y, columns={"cost": COST, "kind": KIND})
    columns = {"cost": COST, "kind": KIND}
    weights = search.example_weights(frame(), ROWS.y, columns=columns)
    assert np.allclose(weights, search.sample_weight_)
    assert np.std(weights) > 0
    wide = frame().assign(cost=COST, kind=KIND)
    assert np.array_equal(search.example_weights(wide, ROWS.y), weights)
    chunks = [(wide[i : i + 30], ROWS.y[i : i + 30]) for i in range(0, N, 30)]
    assert np.array_equal(np.concatenate([*search.iter_example_weights(chunks)]), weights)
    narrow = [(X[["a", "b"]], y) for X, y in chunks]
    assert np.array_equal(np.concatenate([*search.iter_example_weights(narrow, columns=columns)]), weights)
    with pytest.raises(InvalidInputError, match="depend on 'kind', 'cost' of each row.*columns="):
        search.example_weights(frame(), ROWS.y)
    with pytest.raises(InvalidInputError, match="'cost' has 3 values"):
        search.example_weights(frame(), ROWS.y, columns={"cost": COST[:3], "kind": KIND})
    search.save(tmp_path / "search.moew")
    again = load(tmp_path / "search.moew")
    assert np.array_equal(again.example_weights(wide, ROWS.y), weights)


def test_validation_rows_need_not_have_it():
    search = MetricSearch.from_settings(LogisticRegression(), embedding=["cost"], **SEARCH)
    search.fit(ROWS.X, ROWS.y, validation=(ROWS.X_val, ROWS.y_val), columns={"cost": COST})
    assert search.fitted_.weighting.n_dims == 2


def test_a_name_that_is_nowhere():
    search = MetricSearch.from_settings(LogisticRegression(), embedding=["cost", "price"], **SEARCH)
    with pytest.raises(
        InvalidInputError,
        match="no column 'price'; it has the names .*Nor is it in `columns` of the training rows",
    ):
        search.fit(frame(), ROWS.y, columns={"cost": COST})
    with pytest.raises(InvalidInputError, match="name at least one column"):
        MetricSearch.from_settings(LogisticRegression(), embedding="columns=", **SEARCH).fit(frame(), ROWS.y)
