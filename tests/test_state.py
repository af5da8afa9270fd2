import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from moew.exceptions import StateError
from moew.state import Stateful, find_object, load_state, name_object, pack_array, unpack_array


@given(
    hnp.arrays(
        st.one_of(
            hnp.floating_dtypes(),
            hnp.integer_dtypes(),
            hnp.unsigned_integer_dtypes(),
            hnp.boolean_dtypes(),
        ),
        hnp.array_shapes(min_dims=0, max_dims=3, min_side=0),
    )
)
@settings(max_examples=80, deadline=None)
def test_arrays_come_back_bit_for_bit_through_json(array):
    back = unpack_array(json.loads(json.dumps(pack_array(array))))
    assert back.dtype == array.dtype.newbyteorder("=")
    assert back.shape == array.shape
    np.testing.assert_array_equal(back, array)  # NaN counts as equal to NaN here
    if array.dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(back), np.signbit(array))


def test_arrays_that_come_back_can_be_written_to():
    back = unpack_array(pack_array(np.arange(3.0)))
    back[0] = 7
    assert back[0] == 7


def test_slices_and_transposes_are_packed_in_their_own_order():
    array = np.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(unpack_array(pack_array(array.T[1:])), array.T[1:])


@pytest.mark.parametrize("array", [np.array(["a"]), np.array([None]), np.array(["2020"], "datetime64[D]")])
def test_arrays_of_other_things_are_refused(array):
    with pytest.raises(StateError, match="only numbers and booleans"):
        pack_array(array)


@pytest.mark.parametrize(
    "kind",
    [
        "",
        "os:system",
        "builtins:eval",
        "moew_evil:Thing",
        "moewer.embedding:LabelEmbedding",
        "moew.weighting:load_state",
        "moew.weighting:np",
        "moew.weighting:NoSuchClass",
        "moew.no_such_part:Thing",
        "moew.exceptions:MoewError",
        "moew.state",
        None,
        7,
    ],
)
def test_states_of_foreign_kinds_are_refused(kind):
    with pytest.raises(StateError, match="kind"):
        load_state({"kind": kind})


def test_a_state_without_a_kind_is_refused():
    with pytest.raises(StateError, match="kind"):
        load_state({})


def test_a_state_of_an_object_without_one_says_so():
    class Bare(Stateful):
        state_home = "moew.state"

    with pytest.raises(StateError, match="Bare has no state"):
        Bare().state()
    with pytest.raises(StateError, match="Bare cannot be loaded"):
        Bare.from_state({}, {})


def test_kind_names_the_public_home_of_the_class():
    from moew.weighting import UniformBaseline

    state = UniformBaseline().state()
    assert state == {"kind": "moew.weighting:UniformBaseline"}
    assert isinstance(load_state(state), UniformBaseline)


def test_the_users_own_objects_are_named_and_handed_in():
    class Thing:
        pass

    thing = Thing()
    assert name_object(np.linalg.norm) == "numpy.linalg:norm"
    assert name_object(thing) == name_object(Thing)
    assert name_object(thing).endswith("Thing")
    assert find_object("mine", {"mine": thing}) is thing
    with pytest.raises(StateError, match=r"objects=\{'mine': …\}"):
        find_object("mine", {})
