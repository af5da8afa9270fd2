"""The GPU's kernel: its program, run by JAX's interpreter on the CPU, against XLA's program."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from experiments.networks import RepeatedNetworks, gpu, train_networks
from experiments.networks.gpu import _small
from moew.models.networks import EarlyStopping, NetworkSpec, ReconstructionLoss
from moew.models.networks._engine import initial_layers, stack
from moew.models.networks._layers import Products
from moew.models.networks._loop import Batches, Rates, Recipe, train_all_steps

pytestmark = pytest.mark.filterwarnings("ignore:The Pallas Triton backend:DeprecationWarning")

R, K, N, STEPS = 2, 3, 120, 4


@pytest.fixture
def on_the_cpu():
    """Where products are exact, also on a machine with a GPU."""
    with jax.default_device(jax.devices("cpu")[0]):
        yield


def _problem(sizes, loss, batch, shared):
    rng = np.random.default_rng(len(sizes))
    repeats = 1 if shared else R
    X = rng.normal(size=(repeats, N, sizes[0])).astype(np.float32)
    Y = (rng.random((repeats, N, sizes[-1])) < 0.5).astype(np.float32)
    if loss == "softmax":
        Y = np.eye(sizes[-1], dtype=np.float32)[rng.integers(0, sizes[-1], (repeats, N))]
    W = rng.random((R, K, N)).astype(np.float32)
    W[0, 0] = 0.0  # never touched
    W[1, 1, : N // 2] = 0.0
    rows = np.stack([[rng.permutation(N)[:batch] for _ in range(repeats)] for _ in range(STEPS)])
    spec = NetworkSpec(sizes)
    params = stack([[initial_layers(spec, 10 * r + k) for k in range(K)] for r in range(R)])
    return jax.tree.map(jnp.asarray, (params, X, Y, W, rows.astype(np.int32)))


heavy = partial(pytest.param, marks=pytest.mark.heavy)  # the interpreter takes long


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("sizes", "activation", "loss", "batch", "l2", "shared"),
    [
        heavy((40, 20, 10, 1), "sigmoid", "squared", 100, 0.0, False),  # several tiles of rows
        heavy((12, 16, 3), "relu", "softmax", 20, 0.1, True),  # 16 and the unit of ones are 32
        heavy((7, 5, 4, 3), "tanh", "sigmoid_cross_entropy", 50, 0.0, True),
        ((31, 1), "identity", "hinge", 33, 0.0, False),  # linear; 31 and the ones are 32
    ],
)
@pytest.mark.usefixtures("on_the_cpu")
def test_the_kernel_trains_what_the_compiled_loop_trains(sizes, activation, loss, batch, l2, shared):
    params, X, Y, W, rows = _problem(sizes, loss, batch, shared)
    recipe = Recipe(activation, loss, Products(), l2 > 0)
    rates = Rates(np.float32(0.01), np.float32(l2))
    expected = train_all_steps(recipe, None, params, Batches(X, Y, W, rows), rates)
    network = _small.Network(recipe, sizes, interpreted=True)
    data = Batches(_small.with_ones(X, "float32"), Y, W, rows)
    trained = _small.train_whole(network, _small.Tiles(32, 1, 1), params, data, rates)
    for (W_a, b_a), (W_b, b_b), (W_0, _) in zip(trained, expected, params, strict=True):
        np.testing.assert_allclose(W_a, W_b, atol=2e-5)
        np.testing.assert_allclose(b_a, b_b, atol=2e-5)
        np.testing.assert_array_equal(W_a[0, 0], W_0[0, 0])
        assert not np.allclose(W_a[1, 1], W_0[1, 1], atol=1e-3)


@pytest.mark.parametrize("precision", ["tf32", "bfloat16"])
def test_the_kernel_can_be_compiled_for_a_gpu(precision):
    """As far as a machine without one can: to Triton's own language."""
    sizes = (40, 20, 10, 1)
    params, X, Y, W, rows = _problem(sizes, "squared", 100, shared=False)
    presets = lax.DotAlgorithmPreset
    products = Products(presets.TF32_TF32_F32 if precision == "tf32" else presets.BF16_BF16_F32)
    network = _small.Network(Recipe("sigmoid", "squared", products, False), sizes, interpreted=False)
    data = Batches(_small.with_ones(X, "float32"), Y, W, rows)
    traced = _small.train_whole.trace(
        network, _small.tiles_for(precision), params, data, Rates(jnp.float32(0.1), jnp.float32(0.0))
    )
    try:
        lowered = traced.lower(lowering_platforms=("cuda",))
    except RuntimeError as error:
        if "No supported GPU devices" not in str(error):
            raise
        pytest.skip("this version of JAX lowers kernels only where there is a GPU")
    assert "train_small_network" in lowered.as_text()


def test_the_kernel_is_for_small_networks_on_a_gpu_in_short_precision():
    small = {"sizes": (40, 20, 10, 1), "batch_size": 100, "precision": "tf32"}
    assert gpu.fits(NetworkSpec(**small), 1000, "gpu")
    assert not gpu.fits(NetworkSpec(**small), 1000, "cpu")
    columns = ReconstructionLoss(numeric=((0, 1.0),), binary=(), categorical=())
    for change in (
        {"sizes": (784, 50, 10)},
        {"precision": "float32"},
        {"batch_size": None},
        {"batch_size": 1000},
        {"early_stopping": EarlyStopping(0.2)},
        {"sizes": (1, 5, 1), "loss": columns},
    ):
        assert not gpu.fits(NetworkSpec(**{**small, **change}), 1000, "gpu")


@pytest.mark.usefixtures("on_the_cpu")
def test_repeats_can_share_rows_and_have_mini_batches_of_their_own():
    spec = NetworkSpec((5, 4, 1), batch_size=8, steps=6)
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(1, 40, 5)), rng.normal(size=(1, 40, 1))
    W = rng.random((R, K, 40))
    seeds = [[1, 2, 3], [4, 5, 6]]
    rows = rng.integers(0, 40, (6, R, 8)).astype(np.int32)
    together = train_networks(spec, X, Y, W, seeds, rows)
    for r in range(R):
        alone = train_networks(spec, X, Y, W[r : r + 1], seeds[r : r + 1], rows[:, r : r + 1])
        for (W_a, _), (W_b, _) in zip(together, alone, strict=True):
            np.testing.assert_allclose(W_a[r], W_b[0], atol=1e-6)
    both_shared = train_networks(spec, X, Y, W, seeds, rows[:, :1])
    np.testing.assert_allclose(both_shared[0][0][0], together[0][0][0], atol=1e-6)


@pytest.mark.heavy
@pytest.mark.usefixtures("on_the_cpu")
def test_networks_of_repeats_take_the_kernel_where_it_fits(monkeypatch):
    rng = np.random.default_rng(1)
    X, Y, W = rng.normal(size=(R, 60, 5)), rng.normal(size=(R, 60, 1)), rng.random((R, K, 60))
    spec = NetworkSpec((5, 4, 1), batch_size=20, steps=6)

    def outputs(fits):
        monkeypatch.setattr(gpu, "fits", lambda *_: fits)
        networks = RepeatedNetworks(spec, X, Y, R, seed=3, device="cpu")
        assert (networks._rows.X.shape[2] > 5) == fits
        return networks.outputs(networks.train(W, 0), networks.place(X))

    np.testing.assert_allclose(outputs(True), outputs(False), atol=2e-5)
