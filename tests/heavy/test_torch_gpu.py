"""PyTorch modules on a GPU: against the CPU, many at once against one by one, memory, chance, a search."""

from functools import partial

import numpy as np
import pytest
from problems import shifted_classes, skewed_target
from sklearn.base import clone

pytestmark = pytest.mark.heavy
torch = pytest.importorskip("torch", reason="PyTorch is not installed")
if not torch.cuda.is_available():
    pytest.skip("PyTorch finds no GPU here", allow_module_level=True)

from torch import nn  # noqa: E402

from moew import MetricSearch  # noqa: E402
from moew.exceptions import InvalidInputError, MoewWarning  # noqa: E402
from moew.models.torch import TorchClassifier, TorchRegressor, _devices, _estimators, _train  # noqa: E402

SMALL = {"steps": 40, "batch_size": 32, "random_state": 3, "optimizer": partial(torch.optim.SGD, lr=0.1)}
CLOSE = {"atol": 1e-3, "rtol": 1e-3}  # both compute in float32, but add in another order


@pytest.fixture(autouse=True)
def exact_products():
    """TF32 keeps ten bits of a factor, which is no measure for a comparison."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    yield
    torch.set_float32_matmul_precision(before)


def network(n_inputs, n_outputs, dropout=0.0, hidden=16):
    parts = [nn.Linear(n_inputs, hidden), nn.Tanh(), nn.Dropout(dropout), nn.Linear(hidden, n_outputs)]
    return nn.Sequential(*parts)


def normalised(n_inputs, n_outputs):
    return nn.Sequential(nn.Linear(n_inputs, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, n_outputs))


def drawn_on_the_gpu(n_inputs, n_outputs):
    return nn.Linear(n_inputs, n_outputs, device="cuda")


def rows(n_classes=3, K=5):
    data = shifted_classes(150, n_classes)
    return data.X, data.y, np.random.default_rng(1).uniform(0.1, 3, (K, len(data.y)))


def parameters(model):
    return {name: value.numpy() for name, value in model.module_.state_dict().items()}


def assert_same(first, second, **tolerance):
    for name, value in parameters(first).items():
        np.testing.assert_allclose(value, parameters(second)[name], err_msg=name, **tolerance)


def test_the_gpu_is_taken_where_there_is_one_and_others_are_refused():
    assert _devices.module_device(None).type == "cuda"
    with pytest.raises(InvalidInputError, match="cuda:99"):
        TorchClassifier(network, device="cuda:99", **SMALL).fit(*rows()[:2])


@pytest.mark.parametrize("models_at_once", [None, 2, 1])
def test_a_gpu_gives_what_a_cpu_gives(models_at_once):
    X, y, weights = rows()
    model = TorchClassifier(network, device="cpu", **SMALL)
    expected = dict(model.fit_many(X, y, weights, range(5)))
    on_gpu = clone(model).set_params(device="cuda", models_at_once=models_at_once)
    for k, got in on_gpu.fit_many(X, y, weights, range(5)):
        assert_same(expected[k], got, **CLOSE)
        assert all(p.device.type == "cpu" for p in got.module_.parameters())
        np.testing.assert_allclose(got.predict_proba(X), expected[k].predict_proba(X), atol=2e-3)
    alone = clone(model).set_params(device=None, random_state=4).fit(X, y, weights[4])
    assert_same(expected[4], alone, **CLOSE)


def test_the_regressor_and_a_loss_with_tensors_of_its_own():
    data = skewed_target(120)
    on_cpu, on_gpu = (TorchRegressor(network, device=device, **SMALL) for device in ("cpu", "cuda"))
    assert_same(on_cpu.fit(data.X, data.y), on_gpu.fit(data.X, data.y), **CLOSE)
    X, y, weights = rows()
    loss = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 5.0]), reduction="none")
    on_cpu, on_gpu = (TorchClassifier(network, loss=loss, device=d, **SMALL) for d in ("cpu", "cuda"))
    expected = dict(on_cpu.fit_many(X, y, weights, range(5)))
    for k, got in on_gpu.fit_many(X, y, weights, range(5)):
        assert_same(expected[k], got, **CLOSE)
    assert loss.weight.device.type == "cpu"  # the user's own stays where it was


@pytest.mark.parametrize("optimizer", [None, partial(torch.optim.AdamW, lr=0.01, fused=True)])
def test_optimizers_of_the_gpu_on_stacked_parameters(optimizer):
    X, y, weights = rows()
    model = TorchClassifier(network, **{**SMALL, "optimizer": optimizer, "device": "cuda"})
    many = dict(model.fit_many(X, y, weights, range(5)))
    for k, alone in clone(model).set_params(models_at_once=1).fit_many(X, y, weights, range(5)):
        assert_same(many[k], alone, **CLOSE)


def test_dropout_does_not_depend_on_the_company():
    X, y, weights = rows()
    model = TorchClassifier(partial(network, dropout=0.4), device="cuda", **SMALL)
    many = dict(model.fit_many(X, y, weights, range(5)))
    for k, other in model.fit_many(X, y, weights[:3], range(3)):
        assert_same(many[k], other, **CLOSE)
    without = dict(clone(model).set_params(module_factory=network).fit_many(X, y, weights, range(5)))
    assert not np.allclose(many[0].predict_proba(X), without[0].predict_proba(X), atol=1e-3)


def test_modules_that_cannot_be_trained_at_once():
    X, y, weights = rows()
    model = TorchClassifier(normalised, device="cuda", **SMALL)
    with pytest.warns(MoewWarning, match="buffer '1.running_mean'"):
        many = dict(model.fit_many(X, y, weights, range(5)))
    assert_same(many[2], clone(model).set_params(random_state=2).fit(X, y, weights[2]), **CLOSE)


def test_chance_is_seeded_on_the_gpu_and_put_back():
    X, y, weights = rows()
    torch.manual_seed(5)
    before = torch.get_rng_state(), torch.cuda.get_rng_state()
    model = TorchClassifier(drawn_on_the_gpu, device="cuda", **SMALL)
    first = dict(model.fit_many(X, y, weights, range(5)))
    assert torch.equal(torch.get_rng_state(), before[0])
    assert torch.equal(torch.cuda.get_rng_state(), before[1])
    torch.manual_seed(6)
    for k, again in model.fit_many(X, y, weights, range(5)):
        assert_same(first[k], again, atol=1e-6, rtol=1e-5)
    assert not np.allclose(parameters(first[0])["weight"], parameters(first[1])["weight"], atol=1e-3)


@pytest.mark.parametrize(("batch_size", "hidden"), [(2048, 64), (32, 1024)])
def test_the_memory_that_models_take_is_estimated_on_the_safe_side(batch_size, hidden):
    rng = np.random.default_rng(0)
    X, K = rng.normal(size=(4096, 20)).astype(np.float32), 32
    y = (X[:, 0] > 0).astype(int)
    model = TorchClassifier(
        partial(network, hidden=hidden), steps=3, batch_size=batch_size, device="cuda", random_state=0
    )
    plan, data = model._prepare(X, y)
    estimate = K * _train.model_bytes(plan, _estimators.make_module(plan.maker, 0), data) + data.n_bytes
    del data
    list(model.fit_many(X, y, np.ones((2, len(y))), range(2)))  # cuBLAS takes its workspaces, and keeps them
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    list(model.fit_many(X, y, np.ones((K, len(y))), range(K)))
    taken = torch.cuda.max_memory_allocated() - before
    assert 0.1 * estimate < taken < estimate
    assert torch.cuda.memory_allocated() - before < 2**20  # nothing stays


def test_inside_a_search():
    data = shifted_classes(150)
    search = MetricSearch.from_settings(
        TorchClassifier(network, steps=60, batch_size=32, device="cuda"),
        metric="balanced_accuracy",
        embedding="label",
        n_candidates=6,
        batch_size=3,
        random_state=0,
    ).fit(data.X, data.y, validation=(data.X_val, data.y_val))
    assert search.score(data.X_test, data.y_test) > 0.6
    on_cpu = search.best_estimator_.set_params(device="cpu").predict_proba(data.X_test)
    on_gpu = search.best_estimator_.set_params(device="cuda").predict_proba(data.X_test)
    np.testing.assert_allclose(on_cpu, on_gpu, atol=1e-4)
