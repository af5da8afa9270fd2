"""Where networks are trained: devices, what fits into memory, and compiled programs that are kept."""

import os
import subprocess
import sys

import jax
import numpy as np
import pytest

from moew.exceptions import InvalidInputError
from moew.models._shared import batch_rows
from moew.models.networks import EarlyStopping, NetworkClassifier, NetworkSpec, _devices, _groups
from moew.models.networks._engine import initial_layers, stack
from moew.models.networks._groups import train_weightings
from moew.models.networks._layers import products_on
from moew.models.networks._loop import Batches, Rates, Recipe, train_all_steps

_SCRIPT = """
import hashlib, sys
import jax, numpy as np
from moew.models.networks import NetworkSpec
from moew.models.networks._groups import train_weightings
rng = np.random.default_rng(0)
X, weights = rng.standard_normal((50, 3)), rng.uniform(0.1, 1.9, (17, 50))
spec = NetworkSpec((3, 1), steps=30, batch_size=16)
networks = train_weightings(spec, X, X[:, :1], weights, list(range(17)))
digest = hashlib.sha256(b"".join(a.tobytes() for layers in networks for layer in layers for a in layer))
print(jax.local_device_count(), digest.hexdigest())
"""


def _run(**environment):
    result = subprocess.run(
        [sys.executable, "-c", _SCRIPT],
        env={**os.environ, "JAX_PLATFORMS": "cpu", **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return result.stdout.split()


@pytest.mark.heavy
def test_several_devices_and_a_kept_compilation_change_nothing(tmp_path):
    kept = {"JAX_COMPILATION_CACHE_DIR": str(tmp_path), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    one = _run(**kept)
    programs = {path.name for path in tmp_path.iterdir() if path.name.endswith("-cache")}
    assert any("train_all_steps" in name for name in programs)
    assert _run(**kept) == one
    assert {path.name for path in tmp_path.iterdir() if path.name.endswith("-cache")} == programs
    three = _run(XLA_FLAGS="--xla_force_host_platform_device_count=3")
    assert (one[0], three[0]) == ("1", "3")
    assert one[1] == three[1]


def _problem(n=60, K=11):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 3))
    return X, X[:, :1], rng.uniform(0.1, 1.9, (K, n))


def test_the_device_is_chosen_by_name():
    assert {device.platform for device in _devices.choose_devices("cpu")} == {"cpu"}
    assert _devices.choose_devices(None) == jax.local_devices()
    first = jax.local_devices()[0]
    with jax.default_device(first):
        assert _devices.choose_devices(None) == [first]


@pytest.mark.skipif(jax.default_backend() == "gpu", reason="there is a GPU")
def test_a_device_that_is_not_there_is_refused():
    X, y, _ = _problem()
    with pytest.raises(InvalidInputError, match="device='gpu', but JAX finds none"):
        NetworkClassifier(device="gpu").fit(X, y[:, 0] > 0)


class _Accelerator:
    platform = "gpu"

    def __init__(self, stats):
        self.memory_stats = lambda: stats


def test_groups_shrink_until_they_fit(monkeypatch):
    spec, n = NetworkSpec((3, 4, 1), steps=10, batch_size=16), 1000
    shared = _devices.row_bytes(spec, n)

    def memory_for(size):
        return {"bytes_limit": 2 * (shared + _devices.group_bytes(spec, n, size))}

    for stats, expected in ((None, 32), ({}, 32), (memory_for(40), 32), (memory_for(31), 16)):
        assert _devices.networks_at_once(spec, n, _Accelerator(stats)) == expected
    assert _devices.networks_at_once(spec, n, _Accelerator({"bytes_limit": 1})) == 1
    assert _devices.groups_at_once(spec, n, _Accelerator({"bytes_limit": 1}), 1) == 1
    (cpu,) = _devices.choose_devices("cpu")[:1]
    assert _devices.memory_bytes(cpu) > 2**20
    monkeypatch.setattr(_devices, "memory_bytes", lambda device: memory_for(4)["bytes_limit"])
    assert _devices.networks_at_once(spec, n, cpu) == 3


def test_training_in_slices_gives_the_same_networks(monkeypatch):
    X, y, weights = _problem()
    spec = NetworkSpec((3, 4, 1), steps=30, batch_size=16, learning_rate=0.01)
    whole = list(train_weightings(spec, X, y, weights, list(range(11))))
    sizes = []
    original = _groups.train_on

    def watched(spec, rows, W, start):
        sizes.append(W.shape[1])
        return original(spec, rows, W, start)

    monkeypatch.setattr(_groups, "train_on", watched)
    monkeypatch.setattr(_devices, "memory_bytes", lambda device: 1.0)
    sliced = list(train_weightings(spec, X, y, weights, list(range(11))))
    assert sizes == [1] * 11
    for a, b in zip(whole, sliced, strict=True):
        for (W_a, b_a), (W_b, b_b) in zip(a, b, strict=True):
            np.testing.assert_allclose(W_a, W_b, atol=1e-5)
            np.testing.assert_allclose(b_a, b_b, atol=1e-5)


@pytest.mark.parametrize(
    ("sizes", "n", "batch_size"),
    [
        ((40, 20, 10, 1), 5000, 1000),
        ((300, 50, 10), 2000, 100),
        ((95, 1), 1000, None),
        ((5, 400, 1), 100, 10),
    ],
)
def test_the_estimate_of_memory_covers_what_the_compiled_program_asks_for(sizes, n, batch_size):
    spec, K = NetworkSpec(sizes, "sigmoid", "squared", 20, batch_size), 5
    shapes = [(1, n, sizes[0]), (1, n, sizes[-1]), (1, K, n)]
    rows = batch_rows(n, batch_size, spec.steps, 0)
    rows = None if rows is None else rows[:, None]
    data = Batches(*(np.zeros(shape, np.float32) for shape in shapes), rows)
    recipe = Recipe("sigmoid", "squared", products_on("cpu", "float32"), False)
    params = stack([[initial_layers(spec, k) for k in range(K)]])
    rates = Rates(np.float32(0.1), np.float32(0))
    lowered = train_all_steps.lower(recipe, spec.steps if rows is None else None, params, data, rates)
    needs = lowered.compile().memory_analysis()
    asked = needs.temp_size_in_bytes + needs.argument_size_in_bytes + needs.output_size_in_bytes
    estimate = _devices.row_bytes(spec, n) + _devices.group_bytes(spec, n, K)
    assert asked <= estimate < 4 * asked


def test_more_of_anything_takes_more_memory():
    plain = NetworkSpec((3, 4, 1), batch_size=16)
    stopping = NetworkSpec((3, 4, 1), batch_size=16, early_stopping=EarlyStopping(0.2))
    wide = NetworkSpec((3, 40, 1), batch_size=16)
    least = _devices.group_bytes(plain, 100, 5)
    for more in ((stopping, 100, 5), (wide, 100, 5), (plain, 1000, 5), (plain, 100, 6)):
        assert _devices.group_bytes(*more) > least
