import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from moew.data import (
    Block,
    TabularEncoder,
    TargetEncoder,
    check_same_columns,
    label_levels,
    label_positions,
    number_labels,
)
from moew.exceptions import InvalidInputError, StateError


def encode(X, **settings_):
    return TabularEncoder(**settings_).fit(X).transform(X)


def through_json(thing):
    return type(thing).from_state(json.loads(json.dumps(thing.state())))


MIXED = pd.DataFrame(
    {
        "number": [1.0, 2.0, 4.0, np.nan, 9.0, 2.0],
        "whole": pd.array([1, None, 3, 4, 5, 6], dtype="Int64"),
        "yes": [True, False, True, True, False, False],
        "maybe": pd.array([True, None, False, True, False, True], dtype="boolean"),
        "text": ["a", "b", None, "c", "a", "b"],
        "category": pd.Categorical(["u", "v", "w", "u", None, "v"]),
        "two": pd.Categorical(["x", "y", "x", "y", "x", "x"]),
        "constant": [3.0] * 6,
        "empty": pd.Series([None] * 6, dtype=object),
    }
)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"levels": [False]}, r"two values has the values \[False\]"),
        ({"kind": "binaryy"}, "one of numeric, binary, categorical, not 'binaryy'"),
    ],
)
def test_a_state_with_an_odd_column_is_refused(changes, message):
    state = TabularEncoder().fit(MIXED).state()
    state["columns"][2].update(changes)
    with pytest.raises(StateError, match=message):
        TabularEncoder.from_state(state)


def test_numbers_are_scaled_as_by_standard_scaler():
    X = np.random.default_rng(0).normal(5, 3, (40, 3))
    np.testing.assert_allclose(encode(X), StandardScaler().fit_transform(X), rtol=1e-12)
    np.testing.assert_array_equal(encode(X, scale=False), X)


def test_categories_are_one_hot_as_by_one_hot_encoder():
    X = np.array([["b", "x"], ["a", "y"], ["c", "x"], ["b", "y"]], dtype=object)
    oracle = OneHotEncoder(drop="if_binary", sparse_output=False).fit_transform(X)
    np.testing.assert_array_equal(encode(X), oracle)
    np.testing.assert_array_equal(encode(X.astype(str)), oracle)


def test_blocks_cover_the_columns_in_order():
    encoder = TabularEncoder().fit(MIXED)
    assert encoder.transform(MIXED).shape == (6, encoder.blocks_[-1].stop)
    assert [(b.kind, b.stop - b.start) for b in encoder.blocks_] == [
        ("numeric", 1),
        ("binary", 1),  # the flag of a missing number
        ("numeric", 1),
        ("binary", 1),
        ("binary", 1),  # yes: no flag
        ("binary", 1),  # maybe, and its flag
        ("binary", 1),
        ("categorical", 3),
        ("categorical", 3),
        ("binary", 1),
        ("numeric", 1),
        ("categorical", 1),  # nothing but missing values: one column of zeros
    ]
    assert [b.start for b in encoder.blocks_[1:]] == [b.stop for b in encoder.blocks_[:-1]]
    assert encoder.blocks_[0] == Block("numeric", 0, 1)


def test_every_kind_of_column_by_hand():
    coded = encode(MIXED, scale=False)
    np.testing.assert_allclose(coded[:, 0], [1, 2, 4, 3.6, 9, 2])  # the mean stands for the missing number
    np.testing.assert_array_equal(coded[:, 1], [0, 0, 0, 1, 0, 0])
    np.testing.assert_allclose(coded[:, 2], [1, 3.8, 3, 4, 5, 6])
    np.testing.assert_array_equal(coded[:, 3], [0, 1, 0, 0, 0, 0])
    np.testing.assert_array_equal(coded[:, 4], [1, 0, 1, 1, 0, 0])
    np.testing.assert_array_equal(coded[:, 5], [1, 0, 0, 1, 0, 1])
    np.testing.assert_array_equal(coded[:, 6], [0, 1, 0, 0, 0, 0])
    np.testing.assert_array_equal(
        coded[:, 7:10], [[1, 0, 0], [0, 1, 0], [0, 0, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0]]
    )
    np.testing.assert_array_equal(coded[:, 13], [0, 1, 0, 1, 0, 0])
    np.testing.assert_array_equal(coded[:, 14:], [[3.0, 0.0]] * 6)
    assert coded.dtype == np.float64


def test_frame_and_object_array_of_the_same_values_agree():
    columns = ["number", "yes", "text"]
    np.testing.assert_array_equal(encode(MIXED[columns]), encode(MIXED[columns].to_numpy(dtype=object)))


@pytest.mark.parametrize("values", [[0, 1, 0], [0.0, 1.0, 0.0], [-1, 1, -1], [False, True, False]])
@pytest.mark.parametrize("dtype", [None, object])
def test_yes_and_no_are_binary(values, dtype):
    X = np.array(values, dtype=dtype)[:, None]
    encoder = TabularEncoder().fit(X)
    assert encoder.blocks_ == [Block("binary", 0, 1)]
    np.testing.assert_array_equal(encoder.transform(X)[:, 0], [0, 1, 0])


@pytest.mark.parametrize("dtype", [float, int, object])
def test_other_two_numbers_are_a_scale(dtype):
    X, new = np.array([[1], [3], [3]], dtype=dtype), np.array([[2], [100]], dtype=dtype)
    oracle = StandardScaler().fit(X.astype(float))
    encoder = TabularEncoder().fit(X)
    assert encoder.blocks_ == [Block("numeric", 0, 1)]
    np.testing.assert_allclose(encoder.transform(new), oracle.transform(new.astype(float)))
    np.testing.assert_array_equal(TabularEncoder(scale=False).fit(X).transform(new), new.astype(float))


@pytest.mark.parametrize(
    "values", [[1, 2, 3, 2], [1.5, 2.5, 0.0, 2.5], [True, False, None, True], [1, 2, None, 9]]
)
def test_categories_of_numbers_are_categories(values):
    frame = pd.DataFrame({"c": pd.Categorical(values)})
    encoder = TabularEncoder().fit(frame)
    present = [value for value in values if value is not None]
    expected = np.array([[value == level for level in sorted(set(present))] for value in values], dtype=float)
    two = len(set(present)) == 2
    expected = np.column_stack([expected[:, 1], [value is None for value in values]]) if two else expected
    np.testing.assert_array_equal(encoder.transform(frame), expected)
    # with gaps pandas gives the same categories as floats, and a caller may have lost the dtype
    gap = pd.DataFrame({"c": pd.Categorical([present[0], None], categories=sorted(set(present)))})
    np.testing.assert_array_equal(encoder.transform(gap)[0], expected[0])
    np.testing.assert_array_equal(encoder.transform(gap)[1, : 1 if two else 3], 0)
    plain = pd.DataFrame({"c": present[:1]})
    for again in (encoder, through_json(encoder)):
        np.testing.assert_array_equal(again.transform(plain), expected[:1])


@pytest.mark.parametrize("dtype", ["object", "str", "category"])
def test_columns_with_too_many_categories_are_refused(dtype):
    frame = pd.DataFrame(
        {"n": np.arange(1001.0), "id": pd.Series([f"{i}" for i in range(1001)], dtype=dtype)}
    )
    with pytest.raises(InvalidInputError, match="column 'id' has 1001 different values.*group its values"):
        TabularEncoder().fit(frame)
    with pytest.raises(InvalidInputError, match="column 1 has 1001"):
        TabularEncoder().fit(frame.to_numpy(dtype=object))
    assert encode(frame[:1000]).shape == (1000, 1001)


@pytest.mark.parametrize("unit", [1e-100, 1e-14, 1e14, 1e100])
def test_units_do_not_matter(unit):
    X = np.random.default_rng(0).normal(2, 1, (30, 2))
    np.testing.assert_allclose(encode(X * unit), encode(X), rtol=1e-9)
    coded = TargetEncoder().fit(X[:, 0] * unit, "regression").transform(X[:, 0] * unit)
    np.testing.assert_allclose(coded, encode(X)[:, :1], rtol=1e-9)


def test_values_too_large_to_scale_are_refused():
    X = np.array([[1e200], [-1e200], [3.0]])
    with pytest.raises(InvalidInputError, match=r"column 0 holds values of up to 1e\+200, too large"):
        TabularEncoder().fit(X)
    with pytest.raises(InvalidInputError, match="y holds values of up to"):
        TargetEncoder().fit(X[:, 0], "regression")
    gap = np.array([[1.5e308], [1.5e308], [1e308], [np.nan]])
    np.testing.assert_allclose(encode(gap, scale=False)[:, 0], [1.5e308, 1.5e308, 1e308, 4 / 3 * 1e308])


def test_constant_columns_become_zero_and_rounding_specks_are_not_blown_up():
    speck = np.full(7, 0.1) + np.array([0, 1, -1, 0, 2, 0, 1]) * 1e-17 * 1.4
    X = np.column_stack([np.full(7, 1e9 / 3), speck])
    assert np.abs(encode(X)).max() < 1e-6


@pytest.mark.parametrize("encoder", [TabularEncoder(), TabularEncoder(scale=False)])
def test_state_gives_the_same_numbers_bit_for_bit(encoder):
    encoder.fit(MIXED)
    loaded = through_json(encoder)
    np.testing.assert_array_equal(loaded.transform(MIXED), encoder.transform(MIXED))
    assert loaded.blocks_ == encoder.blocks_
    with pytest.raises(InvalidInputError, match="another order"):
        loaded.transform(MIXED[MIXED.columns[::-1]])


@given(hnp.arrays(np.float64, (6, 2), elements=st.floats(-1e6, 1e6) | st.just(np.nan)))
def test_any_numbers_and_gaps_give_finite_codes_that_survive_json(X):
    encoder = TabularEncoder().fit(X)
    coded = encoder.transform(X)
    assert np.isfinite(coded).all()
    assert coded.shape[1] == encoder.blocks_[-1].stop
    np.testing.assert_array_equal(through_json(encoder).transform(X), coded)


def test_unseen_and_missing_categories_are_all_zeros():
    encoder = TabularEncoder().fit(pd.DataFrame({"c": ["a", "b", "c"], "n": [1.0, 2.0, 3.0]}))
    new = encoder.transform(pd.DataFrame({"c": ["z", None, "b"], "n": [np.nan, 2.0, 3.0]}))
    np.testing.assert_array_equal(new[:, :3], [[0, 0, 0], [0, 0, 0], [0, 1, 0]])
    assert new[0, 3] == 0  # a gap that training did not have: the mean, without a flag


def test_sparse_rows_are_refused_with_a_way_out():
    sparse = scipy.sparse.csr_array(np.eye(3))
    for call in (TabularEncoder().fit, TabularEncoder().fit(np.eye(3)).transform):
        with pytest.raises(InvalidInputError, match="embedding='label'"):
            call(sparse)


@pytest.mark.parametrize(
    "dates",
    [
        pd.DataFrame({"when": pd.to_datetime(["2020-01-01", "2021-01-01"])}),
        pd.DataFrame({"when": pd.to_datetime(["2020-01-01", "2021-01-01"]).tz_localize("UTC")}),
        pd.DataFrame({"when": pd.to_timedelta([1, 2], unit="D")}),
        pd.DataFrame({"when": pd.period_range("2020", periods=2, freq="M")}),
        np.array([["2020-01-01"], ["2021-01-01"]], dtype="datetime64[D]"),
    ],
)
def test_dates_are_refused(dates):
    with pytest.raises(InvalidInputError, match="numbers first"):
        TabularEncoder().fit(dates)


def test_other_columns_are_refused():
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [0.0, 1.0, 5.0]})
    encoder = TabularEncoder().fit(frame)
    with pytest.raises(InvalidInputError, match=r"missing: \['b'\], extra: \['z'\]"):
        encoder.transform(frame.rename(columns={"b": "z"}))
    with pytest.raises(InvalidInputError, match="another order"):
        encoder.transform(frame[["b", "a"]])
    with pytest.raises(InvalidInputError, match="3 columns, the training rows have 2"):
        encoder.transform(np.zeros((2, 3)))
    np.testing.assert_array_equal(encoder.transform(frame.to_numpy()), encoder.transform(frame))
    with pytest.raises(InvalidInputError, match="the validation rows have 1 columns"):
        check_same_columns(frame[["a"]], None, 2, "the validation rows")


@pytest.mark.parametrize("X", [np.zeros(3), np.zeros((2, 2, 2)), 5.0])
def test_rows_that_are_no_table_are_refused(X):
    with pytest.raises(InvalidInputError, match="two dimensions"):
        TabularEncoder().fit(X)
    with pytest.raises(InvalidInputError, match="two dimensions"):
        TabularEncoder().fit(np.eye(3)).transform(X)


def test_tables_that_cannot_be_encoded_are_refused():
    with pytest.raises(InvalidInputError, match="no columns"):
        TabularEncoder().fit(np.zeros((3, 0)))
    with pytest.raises(InvalidInputError, match=r"more than one column named \['a'\]"):
        TabularEncoder().fit(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    for values in ([1.0, np.inf, 2.0], [0.0, np.inf, 0.0]):
        with pytest.raises(InvalidInputError, match="column 0 holds infinite"):
            TabularEncoder().fit(np.array([values]).T)
    with pytest.raises(InvalidInputError, match="too large to scale"):
        TabularEncoder().fit(np.array([[1e200], [-1e200]]))
    with pytest.raises(InvalidInputError, match="1200 different values, more than the 1000"):
        TabularEncoder().fit(pd.DataFrame({"a": [str(i) for i in range(1200)]}))
    fitted = TabularEncoder().fit(pd.DataFrame({"a": [1.0, 2.0, 3.0]}))
    with pytest.raises(InvalidInputError, match="column 'a' holds infinite"):
        fitted.transform(pd.DataFrame({"a": [np.inf]}))
    with pytest.raises(InvalidInputError, match="was numeric"):
        fitted.transform(pd.DataFrame({"a": ["five"]}))
    for kind in ("timestamp[ns][pyarrow]", "date32[day][pyarrow]", "datetime64[ns]"):
        days = pd.to_datetime(pd.Series(["2020-01-01", "2021-01-01"])).astype(kind)
        with pytest.raises(InvalidInputError, match="holds dates"):
            TabularEncoder().fit(pd.DataFrame({"day": days}))
    numbers = TabularEncoder().fit(np.array([[1.0, 2.0], [3.0, 5.0]]))
    with pytest.raises(InvalidInputError, match="column 1 holds infinite"):
        numbers.transform(np.array([[1.0, np.inf]]))


@pytest.mark.parametrize(
    ("y", "coded"),
    [
        ([1, 0, 1], [[1], [0], [1]]),
        (["no", "yes", "no"], [[0], [1], [0]]),
        (pd.Series(["no", "yes", "no"]), [[0], [1], [0]]),
        (pd.Series(["no", "yes", "no"], dtype="category"), [[0], [1], [0]]),
        (np.array(["no", "yes", "no"], dtype=object), [[0], [1], [0]]),
        ([True, False, True], [[1], [0], [1]]),
        ([3, 5, 9], [[1, 0, 0], [0, 1, 0], [0, 0, 1]]),
        (["a", "a", "a"], [[0], [0], [0]]),
    ],
)
def test_class_labels_of_any_kind(y, coded):
    encoder = TargetEncoder().fit(y, "classification")
    np.testing.assert_array_equal(encoder.transform(y), coded)
    np.testing.assert_array_equal(through_json(encoder).transform(y), coded)
    assert (encoder.block_.start, encoder.block_.stop) == (0, len(coded[0]))


def test_targets_of_a_regression_are_scaled():
    y = np.array([1.0, 4.0, 10.0])
    encoder = TargetEncoder().fit(y, "regression")
    np.testing.assert_allclose(encoder.transform(y)[:, 0], (y - y.mean()) / y.std())
    np.testing.assert_array_equal(through_json(encoder).transform(y), encoder.transform(y))
    np.testing.assert_array_equal(TargetEncoder(scale=False).fit(y, "regression").transform(y)[:, 0], y)
    # Two different numbers are still numbers, not classes.
    assert TargetEncoder().fit([1.0, 2.0], "regression").block_.kind == "numeric"


def test_unseen_labels_are_refused():
    encoder = TargetEncoder().fit(["a", "b"], "classification")
    with pytest.raises(InvalidInputError, match=r"labels \['z'\] were not in the training rows"):
        encoder.transform(["a", "z"])


@pytest.mark.parametrize("y", [[1.0, np.nan], ["a", None], np.array([1, None], dtype=object)])
def test_missing_labels_are_refused(y):
    with pytest.raises(InvalidInputError, match="missing"):
        label_levels(y)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([1.0, np.nan], "NaN or infinity"),
        ([1.0, np.inf], "NaN or infinity"),
        (["a", "b"], "must be numbers"),
        ([[1.0], [2.0]], "one label for each row"),
        ([], "one label for each row"),
    ],
)
def test_bad_targets_are_refused(y, message):
    with pytest.raises(InvalidInputError, match=message):
        number_labels(y)


@given(st.lists(st.integers(-5, 5), min_size=1) | st.lists(st.text(max_size=3), min_size=1))
def test_label_positions_lead_back_to_the_labels(y):
    levels = label_levels(np.array(y, dtype=object))
    assert [levels[p] for p in label_positions(np.array(y, dtype=object), levels)] == y
    assert levels == sorted(set(y))
