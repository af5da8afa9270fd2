"""PyTorch modules: against plain PyTorch training, many at once against one by one, and in a search."""

import copy
import pickle
import warnings
from dataclasses import dataclass
from functools import partial

import joblib
import numpy as np
import pytest
from problems import mixed_frame, shifted_classes
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

pytestmark = pytest.mark.heavy
torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from torch import nn  # noqa: E402

from moew import MetricSearch  # noqa: E402
from moew.exceptions import InvalidInputError, MoewWarning  # noqa: E402
from moew.models._shared import BATCH_SEED, batch_rows  # noqa: E402
from moew.models.networks import _engine, _groups  # noqa: E402
from moew.models.torch import (  # noqa: E402
    TorchClassifier,
    TorchRegressor,
    TrainingDivergedError,
    _estimators,
    _train,
)

SMALL = {"steps": 30, "batch_size": 32, "device": "cpu", "random_state": 3}
_ADAM = partial(torch.optim.Adam, lr=0.02)


def network(n_inputs, n_outputs, hidden=6, dropout=0.0):
    parts = [nn.Linear(n_inputs, hidden), nn.Tanh(), nn.Dropout(dropout), nn.Linear(hidden, n_outputs)]
    return nn.Sequential(*parts)


@dataclass(frozen=True)
class Network:
    """The same; its text, which names tests, is the same in every process of pytest-xdist."""

    hidden: int = 6

    def __call__(self, n_inputs, n_outputs):
        return network(n_inputs, n_outputs, self.hidden)


def normalised(n_inputs, n_outputs):
    return nn.Sequential(nn.Linear(n_inputs, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, n_outputs))


def hooked(n_inputs, n_outputs, kind):
    """Gradients of the first layer are held to a size, in either of PyTorch's ways."""
    module = network(n_inputs, n_outputs)
    if kind == "register_hook":
        module[0].weight.register_hook(lambda grad: grad.clamp(-1e-3, 1e-3))
    else:
        module[0].weight.register_post_accumulate_grad_hook(lambda p: (p.grad.clamp_(-1e-3, 1e-3), None)[1])
    return module


class Tied(nn.Module):
    """One matrix used twice, a frozen layer, and a buffer that each module draws for itself."""

    def __init__(self, n_inputs, n_outputs):
        super().__init__()
        self.there, self.back = nn.Linear(n_inputs, n_inputs), nn.Linear(n_inputs, n_inputs)
        self.back.weight = self.there.weight
        self.frozen = nn.Linear(n_inputs, 5).requires_grad_(False)
        self.register_buffer("directions", torch.randn(5, 8))
        self.out = nn.Linear(8, n_outputs)

    def forward(self, x):
        x = self.back(torch.tanh(self.there(x)))
        return self.out(torch.cos(self.frozen(x) @ self.directions))


class MoreInTraining(nn.Linear):
    def forward(self, x):
        return (super().forward(x), x) if self.training else super().forward(x)


class WithoutGradient(nn.Linear):
    @torch.no_grad()
    def forward(self, x):
        return super().forward(x)


class Recurrent(nn.Module):
    def __init__(self, n_inputs, n_outputs):
        super().__init__()
        self.cells = nn.GRU(1, 4, batch_first=True)
        self.out = nn.Linear(4, n_outputs)

    def forward(self, x):
        return self.out(self.cells(x[:, :, None])[0][:, -1])


def rows(n_classes=2, n=150, K=5):
    data = shifted_classes(n, n_classes)
    return data.X, data.y, np.random.default_rng(1).uniform(0.1, 3, (K, len(data.y)))


def parameters(model):
    return {name: value.numpy() for name, value in model.module_.state_dict().items()}


def assert_same(first, second, **tolerance):
    first, second = parameters(first), parameters(second)
    assert first.keys() == second.keys()
    for name in first:
        np.testing.assert_allclose(first[name], second[name], err_msg=name, **tolerance)


def plain_training(make, seed, inputs, targets, weights, criterion, optimizer, schedule=None, steps=30):
    """What one would write by hand: the same start, the same mini-batches, weighted means."""
    torch.manual_seed(seed)
    module = make()
    optimizer = optimizer(module.parameters())
    scheduler = schedule(optimizer) if schedule else None
    inputs, weights = torch.tensor(inputs, dtype=torch.float32), torch.tensor(weights, dtype=torch.float32)
    for batch in batch_rows(len(inputs), 32, steps, 0):
        w = weights[batch]
        loss = (w * criterion(module(inputs[batch]), targets[batch])).sum() / w.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if scheduler:
            scheduler.step()
    return module


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_classifier_is_plain_pytorch(n_classes):
    X, y, weights = rows(n_classes)
    optimizer = partial(torch.optim.SGD, lr=0.2, momentum=0.9)
    schedule = partial(torch.optim.lr_scheduler.ExponentialLR, gamma=0.95)
    model = TorchClassifier(network, optimizer=optimizer, schedule=schedule, scale=False, **SMALL)
    n_outputs = 1 if n_classes == 2 else 3
    binary = nn.BCEWithLogitsLoss(reduction="none")
    targets = torch.tensor(y, dtype=torch.float32 if n_classes == 2 else torch.int64)
    criterion = (
        (lambda out, t: binary(out[:, 0], t)) if n_classes == 2 else nn.CrossEntropyLoss(reduction="none")
    )
    for k, fitted in model.fit_many(X, y, weights, range(5)):
        oracle = plain_training(
            lambda: network(2, n_outputs), k, X, targets, weights[k], criterion, optimizer, schedule
        )
        for name, value in oracle.state_dict().items():
            np.testing.assert_allclose(parameters(fitted)[name], value, atol=2e-6, rtol=1e-4)
        with torch.no_grad():
            out = oracle(torch.tensor(X, dtype=torch.float32))
        proba = torch.sigmoid(out)[:, 0] if n_classes == 2 else torch.softmax(out, 1)
        got = fitted.predict_proba(X)
        np.testing.assert_allclose(got[:, 1] if n_classes == 2 else got, proba, atol=1e-5)
        np.testing.assert_allclose(got.sum(axis=1), 1)
        np.testing.assert_array_equal(fitted.classes_[got.argmax(axis=1)], fitted.predict(X))


def test_the_regressor_is_plain_pytorch_in_the_units_of_y():
    X, _, weights = rows()
    y = 300 + 20 * X[:, 0] - 5 * X[:, 1] ** 2
    model = TorchRegressor(network, optimizer=_ADAM, **SMALL).fit(X, y, weights[0])
    inputs = (X - X.mean(axis=0)) / X.std(axis=0)
    targets = torch.tensor((y - y.mean()) / y.std(), dtype=torch.float32)
    oracle = plain_training(
        lambda: network(2, 1), 3, inputs, targets, weights[0], lambda out, t: (out[:, 0] - t) ** 2, _ADAM
    )
    with torch.no_grad():
        expected = oracle(torch.tensor(inputs, dtype=torch.float32))[:, 0].numpy() * y.std() + y.mean()
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-5)


def test_mini_batches_are_those_of_the_networks():
    assert _train.batch_rows is _engine.batch_rows is batch_rows
    assert _train.BATCH_SEED == _groups.BATCH_SEED == BATCH_SEED == 0


@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_a_candidate_does_not_depend_on_its_company(dropout):
    X, y, weights = rows(K=9)
    model = TorchClassifier(partial(network, dropout=dropout), optimizer=_ADAM, **SMALL)
    many = dict(model.fit_many(X, y, weights, range(10, 19)))
    assert list(many) == list(range(9))
    assert not hasattr(model, "module_")
    five = dict(model.fit_many(X, y, weights[:5], range(10, 15)))
    slices = dict(clone(model).set_params(models_at_once=4).fit_many(X, y, weights, range(10, 19)))
    one_by_one = dict(clone(model).set_params(models_at_once=1).fit_many(X, y, weights, range(10, 19)))
    for k in (0, 3, 4):
        alone = clone(model).set_params(random_state=10 + k).fit(X, y, weights[k])
        for other in (five[k], slices[k], one_by_one[k], alone):
            assert_same(many[k], other, atol=2e-6, rtol=1e-4)
        assert many[k].random_state == 10 + k
    assert not np.allclose(many[0].decision_function(X), many[1].decision_function(X), atol=1e-3)


def test_the_same_call_gives_the_same_bits_and_leaves_pytorchs_chance_alone():
    X, y, weights = rows()
    model = TorchClassifier(partial(network, dropout=0.3), **SMALL)
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first = dict(model.fit_many(X, y, weights, range(5)))
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(6)
    for k, again in model.fit_many(X, y, weights, range(5)):
        assert_same(first[k], again, atol=0, rtol=0)


def test_tied_frozen_and_random_parts_are_each_models_own():
    X, y, weights = rows()
    model = TorchClassifier(Tied, optimizer=_ADAM, **SMALL)
    many = dict(model.fit_many(X, y, weights, range(5)))
    for k, alone in clone(model).set_params(models_at_once=1).fit_many(X, y, weights, range(5)):
        assert_same(many[k], alone, atol=2e-6, rtol=1e-4)
        assert many[k].module_.back.weight is many[k].module_.there.weight
    first, second = (parameters(many[k]) for k in (0, 1))
    assert not np.allclose(first["directions"], second["directions"])


@pytest.mark.parametrize("n_models", [1, 3, 6])
def test_where_memory_is_short_fewer_are_trained_together(n_models, monkeypatch):
    X, y, weights = rows(K=9)
    model = TorchClassifier(network, optimizer=_ADAM, **SMALL)
    plan, data = model._prepare(X, y)
    needed = n_models * _train.model_bytes(plan, _estimators.make_module(plan.maker, 0), data) + data.n_bytes
    expected = dict(model.fit_many(X, y, weights, range(9)))
    sizes = []
    monkeypatch.setattr(_train, "machine_bytes", lambda: 2 * needed)  # half of it is for models

    def counted(plan, modules, *others):
        sizes.append(len(modules))
        _train.train_at_once(plan, modules, *others)

    monkeypatch.setattr(_estimators, "train_at_once", counted)
    for k, got in clone(model).fit_many(X, y, weights, range(9)):
        assert_same(expected[k], got, atol=2e-6, rtol=1e-4)
    assert sizes == {1: [], 3: [3, 3, 3], 6: [4, 4, 1]}[n_models]  # a multiple of four where it can be


def test_what_a_forward_pass_keeps_is_measured():
    X, y, _ = rows()
    plan, data = TorchClassifier(network, **SMALL)._prepare(X, y)
    kept = _train.saved_bytes(plan, _estimators.make_module(plan.maker, 0), data)
    # Of 32 rows in float32: two inputs, six values behind the tanh, one output and the like for the loss.
    assert 4 * 32 * (2 + 6) <= kept <= 4 * 32 * (2 + 6 + 6 + 3)


def test_modules_in_double_precision_are_trained_on_rows_in_double_precision():
    rng = np.random.default_rng(0)
    X = 1e9 + rng.normal(size=(200, 1))  # nothing of it is left in single precision
    y = X[:, 0] - 1e9
    single = TorchRegressor(lambda: Centred(1, 1), optimizer=_ADAM, **{**SMALL, "scale": False, "steps": 300})
    double = clone(single).set_params(module_factory=lambda: Centred(1, 1).double())
    assert double.fit(X, y).score(X, y) > 0.9 > 0.5 > single.fit(X, y).score(X, y)


class Centred(nn.Linear):
    def forward(self, x):
        return super().forward(x - 1e9)


def _grouped(params):
    """Decay for matrices only: a function that looks at shapes must not be shown stacked parameters."""
    params = list(params)
    matrices, vectors = [p for p in params if p.ndim > 1], [p for p in params if p.ndim == 1]
    return torch.optim.AdamW([{"params": matrices, "weight_decay": 0.5}, {"params": vectors}], lr=0.05)


@pytest.mark.parametrize(
    "optimizer",
    [
        partial(torch.optim.SGD, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
        partial(torch.optim.Adam, lr=0.02, amsgrad=True),
        _grouped,
        *(
            partial(getattr(torch.optim, name), lr=0.02)
            for name in ("Adamax", "NAdam", "RAdam", "RMSprop", "Adagrad", "Adadelta")
        ),
    ],
)
def test_optimizers_on_stacked_parameters(optimizer):
    X, y, weights = rows(3)
    model = TorchClassifier(network, optimizer=optimizer, **SMALL)
    many = dict(model.fit_many(X, y, weights, range(5)))
    for k, alone in clone(model).set_params(models_at_once=1).fit_many(X, y, weights, range(5)):
        assert_same(many[k], alone, atol=2e-5, rtol=1e-3)


def _clipped(params):
    params = list(params)
    optimizer = torch.optim.SGD(params, lr=0.5)
    optimizer.register_step_pre_hook(lambda *_: (nn.utils.clip_grad_norm_(params, 0.1), None)[1])
    return optimizer


def test_gradient_clipping_by_a_step_hook_sees_the_gradients():
    X, y, weights = rows()
    criterion = nn.BCEWithLogitsLoss(reduction="none")
    targets = torch.tensor(y, dtype=torch.float32)
    model = TorchClassifier(network, optimizer=_clipped, scale=False, **SMALL).fit(X, y, weights[0])
    oracle = plain_training(
        lambda: network(2, 1), 3, X, targets, weights[0], lambda out, t: criterion(out[:, 0], t), _clipped
    )
    for name, value in oracle.state_dict().items():
        np.testing.assert_allclose(parameters(model)[name], value, atol=2e-6, rtol=1e-4)
    free = TorchClassifier(network, optimizer=partial(torch.optim.SGD, lr=0.5), scale=False, **SMALL)
    assert np.abs(free.fit(X, y, weights[0]).decision_function(X) - model.decision_function(X)).max() > 0.1


@pytest.mark.parametrize(
    ("factory", "optimizer", "message"),
    [
        (normalised, _ADAM, "Sequential modules are .* buffer '1.running_mean'"),
        (Recurrent, _ADAM, "Recurrent modules are .*vmap cannot take it: .* in GRU \\('cells'\\)"),
        (network, partial(torch.optim.LBFGS, lr=0.05, max_iter=2), "optimizer LBFGS"),
        (network, _clipped, "step hooks"),
        (partial(hooked, kind="register_hook"), _ADAM, "gradient hook"),
        (partial(hooked, kind="register_post_accumulate_grad_hook"), _ADAM, "gradient hook"),
    ],
)
def test_what_cannot_be_trained_at_once_is_trained_one_by_one(factory, optimizer, message):
    X, y, weights = rows()
    model = TorchClassifier(factory, optimizer=optimizer, **SMALL)
    with pytest.warns(MoewWarning, match=message):
        many = dict(model.fit_many(X, y, weights, range(5)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for k in (0, 4):
            alone = clone(model).set_params(random_state=k).fit(X, y, weights[k])
            assert_same(many[k], alone, atol=0, rtol=0)


def test_failures_come_in_the_place_of_their_candidate():
    X, y, _ = rows()
    weights = np.ones((5, len(y)))
    weights[1, 0], weights[2, 0], weights[3] = np.nan, -1, 0
    results = dict(TorchClassifier(network, **SMALL).fit_many(X, y, weights, range(5)))
    for k, message in ((1, "finite"), (2, "negative"), (3, "zero")):
        assert isinstance(results[k], InvalidInputError) and message in str(results[k])
    assert_same(results[4], clone(results[4]).fit(X, y, weights[4]), atol=2e-6, rtol=1e-4)
    wild = TorchRegressor(network, optimizer=partial(torch.optim.SGD, lr=1e38), **SMALL)
    ((_, failure),) = wild.fit_many(X, y, weights[:1], [0])
    assert isinstance(failure, TrainingDivergedError)
    with pytest.raises(TrainingDivergedError, match="learning rate"):
        wild.fit(X, y)


_ONE_MODULE = nn.Linear(2, 1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"module_factory": _ONE_MODULE}, "got the module Linear"),
        ({"module_factory": lambda: _ONE_MODULE}, "same module"),
        ({"module_factory": lambda: "net"}, "must return a torch.nn.Module"),
        ({"module_factory": lambda n: nn.Linear(n, 1)}, r"must take \(n_inputs, n_outputs\), or nothing"),
        ({"module_factory": lambda: nn.Linear(2, 4)}, r"outputs \(3, 1\) or \(3, 2\)"),
        ({"module_factory": nn.Identity}, "no parameters to train"),
        ({"module_factory": lambda: MoreInTraining(2, 1)}, r"\(3, 2\) for 3 rows, it gave tuple"),
        ({"module_factory": lambda: WithoutGradient(2, 1)}, "have no gradient"),
        ({"loss": nn.BCEWithLogitsLoss()}, "reduction='none'"),
        ({"loss": "logistic"}, "loss must be None or something to call"),
        ({"optimizer": lambda params: None}, "optimizer must be a function"),
        ({"schedule": torch.optim.lr_scheduler.ReduceLROnPlateau}, "not ReduceLROnPlateau"),
        ({"steps": 0}, "steps must be"),
        ({"models_at_once": 0}, "models_at_once must be"),
        ({"device": "abacus"}, "device 'abacus' cannot be used"),
        ({"device": "meta"}, "of the type 'meta'"),
        ({"device": "cuda:99"}, "'cuda' on a machine with a GPU"),
    ],
)
def test_errors_come_before_training(settings, message):
    X, y, weights = rows()
    settings = {"module_factory": network, **SMALL, **settings}
    with pytest.raises(InvalidInputError, match=message):
        TorchClassifier(**settings).fit(X, y)
    with pytest.raises(InvalidInputError, match=message):
        TorchClassifier(**settings).fit_many(X, y, weights, range(5))  # not only when asked for the first


def test_factories_and_losses_of_every_kind():
    X, y, _ = rows()
    one = TorchClassifier(network, optimizer=_ADAM, **SMALL).fit(X, y)
    two_columns = TorchClassifier(
        lambda: network(2, 2), loss=nn.CrossEntropyLoss(reduction="none"), optimizer=_ADAM, **SMALL
    )
    lazy = TorchClassifier(
        lambda: nn.Sequential(nn.LazyLinear(6), nn.Tanh(), nn.LazyLinear(1), nn.Flatten(0)), **SMALL
    )
    double = TorchClassifier(lambda n_inputs, n_outputs: network(n_inputs, n_outputs).double(), **SMALL)
    hinge = TorchClassifier(network, loss=lambda out, t: torch.relu(1 - out * (2 * t - 1)), **SMALL)
    for model in (two_columns, lazy, double, hinge):
        model.fit(X, y)
        assert model.decision_function(X).shape == (len(y),)
        np.testing.assert_array_equal(model.predict(X), model.classes_[model.predict_proba(X).argmax(axis=1)])
    assert one.score(X, y) > 0.7


def test_data_frames_pickles_and_copies(tmp_path):
    frame, y = mixed_frame()
    frame.index = -np.arange(len(frame)) / 2  # row numbers are not labels of rows
    model = TorchClassifier(partial(network, hidden=8), optimizer=_ADAM, **SMALL).fit(frame, y)
    assert model.score(frame, y) > 0.6
    assert model.feature_names_in_.tolist() == list(frame.columns)
    joblib.dump(model, tmp_path / "model.joblib")
    for again in (
        pickle.loads(pickle.dumps(model)),
        copy.deepcopy(model),
        joblib.load(tmp_path / "model.joblib"),
    ):
        np.testing.assert_array_equal(again.predict_proba(frame), model.predict_proba(frame))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[list(frame.columns)[::-1]])


def test_inside_a_search():
    data = shifted_classes(150)
    search = MetricSearch.from_settings(
        TorchClassifier(network, optimizer=_ADAM, steps=60, batch_size=32, device="cpu"),
        metric="balanced_accuracy",
        embedding="label",
        n_candidates=6,
        batch_size=3,
        random_state=0,
    )
    search.fit(data.X, data.y, validation=(data.X_val, data.y_val))
    assert search.score(data.X_test, data.y_test) > 0.6
    assert search.predict(data.X_test).shape == data.y_test.shape
    again = clone(search).fit(data.X, data.y, validation=(data.X_val, data.y_val))
    np.testing.assert_array_equal(again.best_alpha_, search.best_alpha_)
    np.testing.assert_array_equal(again.predict_proba(data.X_test), search.predict_proba(data.X_test))
    loaded = pickle.loads(pickle.dumps(search))
    np.testing.assert_array_equal(loaded.predict_proba(data.X_test), search.predict_proba(data.X_test))


def _expected_failures(estimator):
    reason = "mini-batches are drawn at random, and columns are scaled by the rows, not by their weights"
    kinds = ("dense", "sparse")
    return {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in kinds}


@parametrize_with_checks(
    [
        TorchClassifier(Network(), optimizer=_ADAM, steps=60, device="cpu", random_state=0),
        TorchRegressor(Network(), optimizer=_ADAM, steps=60, device="cpu", random_state=0),
    ],
    expected_failed_checks=_expected_failures,
)
def test_scikit_learn_conformance(estimator, check):
    check(estimator)
