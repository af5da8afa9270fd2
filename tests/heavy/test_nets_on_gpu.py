"""Networks on a GPU, and the experiments' kernel, against the CPU; the same bits in any company."""

import jax
import numpy as np
import pytest
from problems import skewed_target

from experiments.networks import RepeatedNetworks
from moew.models.networks import NetworkRegressor, NetworkSpec

pytestmark = pytest.mark.heavy
if jax.default_backend() != "gpu":
    pytest.skip("JAX finds no GPU here", allow_module_level=True)


def _models(precision, device, n=7, **settings):
    X, y = skewed_target(600)[:2]
    weights = np.random.default_rng(0).uniform(0.1, 1.0, (n, len(y)))
    network = NetworkRegressor(
        (12, 5), steps=150, batch_size=64, precision=precision, device=device, learning_rate=0.01, **settings
    )
    return X, [model for _, model in network.fit_many(X, y, weights, list(range(n)))]


@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 1e-3), ("tf32", 0.02), ("bfloat16", 0.1)])
def test_a_gpu_trains_what_a_cpu_trains(precision, tolerance):
    X, there = _models(precision, "gpu")
    _, here = _models("float32", "cpu")
    for a, b in zip(there, here, strict=True):
        expected = b.predict(X)
        off = np.sqrt(np.mean((a.predict(X) - expected) ** 2))
        assert off <= tolerance * expected.std()


@pytest.mark.parametrize(
    "settings", [{"precision": "tf32"}, {"precision": "float32"}, {"precision": "bfloat16"}]
)
def test_a_network_has_the_same_bits_in_any_company(settings):
    X, many = _models(device="gpu", **settings)
    _, few = _models(device="gpu", n=2, **settings)
    for a, b in zip(many, few, strict=False):
        np.testing.assert_array_equal(a.predict(X), b.predict(X))


def test_early_stopping_and_penalty_run_on_a_gpu():
    X, there = _models("tf32", "gpu", early_stopping=0.2, l2=0.01)
    _, here = _models("float32", "cpu", early_stopping=0.2, l2=0.01)
    for a, b in zip(there, here, strict=True):
        assert np.corrcoef(a.predict(X), b.predict(X))[0, 1] > 0.99


@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 1e-3), ("tf32", 0.02), ("bfloat16", 0.1)])
def test_the_kernel_trains_what_a_cpu_trains(precision, tolerance):
    X, y = skewed_target(600)[:2]
    y = (y - y.mean()) / y.std()
    weights = np.random.default_rng(0).uniform(0.1, 1.0, (2, 5, len(y))).astype(np.float32)

    def outputs(device, precision):
        spec = NetworkSpec(
            (X.shape[1], 12, 5, 1), steps=150, batch_size=64, learning_rate=0.01, precision=precision
        )
        networks = RepeatedNetworks(spec, X[None], y[None, :, None], 2, seed=0, device=device)
        return networks.outputs(networks.train(weights, 0), networks.place(X[None]))

    expected = outputs("cpu", "float32")
    assert np.sqrt(np.mean((outputs("gpu", precision) - expected) ** 2)) <= tolerance * expected.std()
