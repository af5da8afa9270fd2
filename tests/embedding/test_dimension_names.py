"""Dimensions that have a meaning have a name: as many names as dimensions, each where it belongs."""

import numpy as np
import pandas as pd
import pytest

from moew._util.state import load_state
from moew.embedding import AutoencoderEmbedding, ColumnsEmbedding, DirectionsEmbedding, LabelEmbedding

RNG = np.random.default_rng(0)
X = pd.DataFrame(
    {
        "age": np.where(np.arange(60) % 7, RNG.standard_normal(60), np.nan),
        "colour": np.array(["red", "green", "blue"])[np.arange(60) % 3],
        "member": np.arange(60) % 2,
    }
)
TWO, THREE = np.where(np.arange(60) % 5 < 2, "no", "yes"), np.array(list("abc"))[np.arange(60) % 3]
NUMBERS = np.arange(60.0)


def names_of(embedding, rows, y, task, **more):
    embedding.fit(rows, y, task=task, **more)
    names = embedding.dimension_names
    assert len(names) == embedding.transform(rows, y, **more).shape[1] == len(set(names))
    assert load_state(embedding.state()).dimension_names == names
    return names


def test_classes_and_bins_of_the_target():
    assert names_of(LabelEmbedding(), None, TWO, "classification") == ["class no", "class yes"]
    bins = names_of(LabelEmbedding(n_bins=3), None, NUMBERS, "regression")
    assert bins == ["target below 19", "target 19 to 39", "target from 39"]
    assert names_of(LabelEmbedding(n_bins=1), None, NUMBERS, "regression") == ["target"]


def test_columns_and_their_categories():
    embedding = ColumnsEmbedding(["colour", "age", "member"], standardize=False, scale=False)
    names = names_of(embedding, X, TWO, "classification")
    colours = ["colour = blue", "colour = green", "colour = red"]
    assert names == [*colours, "age", "age missing", "member = 1", "class yes"]
    Z = embedding.transform(X, TWO)
    np.testing.assert_array_equal(Z[:, names.index("colour = red")], X["colour"] == "red")
    np.testing.assert_array_equal(Z[:, names.index("age missing")], X["age"].isna())
    np.testing.assert_array_equal(Z[:, names.index("class yes")], TWO == "yes")
    by_place = names_of(
        ColumnsEmbedding([2, 0], label=False), RNG.standard_normal((60, 3)), TWO, "classification"
    )
    assert by_place == ["column 2", "column 0"]
    assert names_of(ColumnsEmbedding(["age"]), X, NUMBERS, "regression")[-1] == "target"


def test_directions():
    columns = {"cost": np.exp(RNG.standard_normal(60)), "region": np.array(["n", "s"])[np.arange(60) % 2]}
    names = names_of(DirectionsEmbedding(), X, TWO, "classification", columns=columns)
    of_columns = ["cost", "cost × class yes", "region = s", "region = s × class yes"]
    score = ["linear score", "linear score × class yes"]
    assert names == ["class yes", *of_columns, *score, "principal component 1", "principal component 2"]
    three = names_of(DirectionsEmbedding(1), X, THREE, "classification")
    assert three == ["class a", "class b", "class c", "how typical of its class", "principal component 1"]
    numbers = names_of(DirectionsEmbedding(0), X, NUMBERS + RNG.standard_normal(60), "regression")
    assert numbers == ["target", "linear prediction", "distance from the linear prediction"]


def test_others_have_none():
    assert AutoencoderEmbedding().dimension_names is None


def test_only_fitted_ones_have_names():
    with pytest.raises(ValueError, match="not fitted"):
        LabelEmbedding().dimension_names  # noqa: B018
