import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.decomposition import PCA

from moew._util.state import Stateful, find_object, load_state, name_object, pack_array, unpack_array
from moew.decision import ShareSelected
from moew.embedding import FunctionEmbedding
from moew.exceptions import StateError
from moew.weighting import ExampleWeighting, FunctionBaseWeights


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
        "moew._util.state",
        None,
        7,
    ],
)
def test_states_of_foreign_kinds_are_refused(kind):
    with pytest.raises(StateError, match="kind"):
        load_state({"kind": kind})


@pytest.mark.parametrize("kind", ["moew.__main__:x", "moew.cli:main", "moew.models.torch:x", ["moew"], None])
def test_no_module_is_imported_by_a_name_from_a_state(kind, monkeypatch):
    def imported(name, *_):
        raise AssertionError(f"{name} was imported")

    monkeypatch.setattr("moew._util.state.import_module", imported)
    with pytest.raises(StateError, match="is not one that this version of moew can load"):
        load_state({"kind": kind, "version": 1})


def test_every_class_with_a_state_that_rooms_export_can_be_loaded():
    import moew.decision
    import moew.embedding
    import moew.models
    import moew.weighting
    from moew._util.state import _CLASSES

    abstract = {"BaseEmbedding", "BaseWeightsEstimator"}
    for room in (moew.decision, moew.embedding, moew.models, moew.weighting):
        for name in [*vars(room), "ModelEnsemble", "NetworkClassifier", "NetworkRegressor"]:
            found = getattr(room, name, None)
            if isinstance(found, type) and issubclass(found, Stateful) and name not in abstract:
                assert _CLASSES[f"{room.__name__}:{name}"] is found


def test_a_state_is_loaded_in_a_process_that_has_imported_nothing_else():
    code = "import moew; print(moew.load_state({'kind': 'moew.weighting:UniformBaseWeights', 'version': 1}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "UniformBaseWeights()\n", done.stderr


def test_a_state_without_a_kind_is_refused():
    with pytest.raises(StateError, match="kind"):
        load_state({})


def test_a_state_of_an_object_without_one_says_so():
    class Bare(Stateful):
        state_home = "moew._util.state"

    with pytest.raises(StateError, match="Bare has no state"):
        Bare().state()
    with pytest.raises(StateError, match="Bare cannot be loaded"):
        Bare.from_state({}, {})


def test_kind_names_the_public_home_of_the_class():
    from moew.weighting import UniformBaseWeights

    state = UniformBaseWeights().state()
    assert state == {"kind": "moew.weighting:UniformBaseWeights", "version": 1}
    assert isinstance(load_state(state), UniformBaseWeights)


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


@pytest.mark.parametrize("thing", [None, "state", 7, ["kind"], b"{}"])
def test_what_is_no_dict_is_refused(thing):
    with pytest.raises(StateError, match=f"is a dict that state.* got {type(thing).__name__}"):
        load_state(thing)


@pytest.mark.parametrize("version", [None, 0, -1, "1", 1.0, True])
def test_states_without_a_sound_version_are_refused(version):
    with pytest.raises(StateError, match="no version"):
        load_state({"kind": "moew.weighting:UniformBaseWeights", "version": version})


def test_states_of_a_newer_version_are_refused():
    state = {**weight_function(by_label).state(), "version": 2}
    with pytest.raises(StateError, match="version 2, .* up to 1: .*newer moew"):
        load_state(state)
    part = {**state, "version": 1, "embedding": {**state["embedding"], "version": 3}}
    with pytest.raises(StateError, match="version 3"):
        load_state(part)


@pytest.mark.parametrize("missing", ["alpha", "mean", "embedding", "base_weights"])
def test_a_missing_entry_is_named(missing):
    state = weight_function(by_label).state()
    del state[missing]
    objects = {name_object(thing): thing for thing in (coordinates, by_label)}
    with pytest.raises(StateError, match=f"WeightFunction' has no entry '{missing}'"):
        load_state(state, objects)


def test_damaged_states_are_refused():
    state = ShareSelected(0.5).state()
    for damage in ({"sharing": 0.5}, {"threshold_": "high"}):
        with pytest.raises(StateError, match="ShareSelected' is damaged"):
            load_state({**state, **damage})
    with pytest.raises(StateError, match="has no entry 'dtype'"):
        load_state({**weight_function(by_label).state(), "alpha": {"data": "", "shape": [0]}})


def coordinates(X, y):
    return np.asarray(X)


def by_label(X, y):
    return 1.0 + np.asarray(y)


def weight_function(pi, embedding=None):
    X, y = np.arange(6.0).reshape(3, 2), np.array([0.0, 1.0, 2.0])
    embedding = FunctionEmbedding(coordinates) if embedding is None else embedding
    weighting = ExampleWeighting(embedding, FunctionBaseWeights(pi)).fit(X, y, task="regression")
    return weighting.weight_function(np.ones(weighting.n_dims))


class Methods:
    def pi(self, X, y):
        return np.ones(len(y))


class Pair(Stateful):
    state_home = "moew._util.state"

    def __init__(self, *things):
        self.things = things

    def _content(self):
        return {"names": [name_object(thing) for thing in self.things]}


def test_two_things_of_the_same_name_have_no_state():
    lambdas = weight_function(lambda X, y: np.ones(len(y)), FunctionEmbedding(lambda X, y: np.asarray(X)))
    with pytest.raises(StateError, match="both called 'test_state:.*<lambda>'; give them names"):
        lambdas.state()
    for pair in (Pair(Methods().pi, Methods().pi), Pair(PCA(), PCA())):
        with pytest.raises(StateError, match="both called"):
            pair.state()


def test_the_same_thing_may_be_named_twice_and_each_state_has_its_own_names():
    methods = Methods()
    assert Pair(methods.pi, methods.pi).state()["names"] == ["test_state:Methods.pi"] * 2
    for pi in (lambda X, y: np.ones(len(y)), lambda X, y: np.full(len(y), 2.0)):
        assert weight_function(pi).state()["base_weights"]["function"] == name_object(pi)
