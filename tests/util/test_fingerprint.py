"""Fingerprints: the same in every process, another for other settings, data and functions."""

import io
import math
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib import import_module
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.ensemble import BaggingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, f1_score, make_scorer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from moew import ExampleWeightSearch
from moew._util.fingerprint import described, fingerprint, unseen
from moew.exceptions import InvalidInputError
from moew.metrics import make_metric


def times(factor):
    def multiply(x, other=1):
        """Multiplied."""
        return x * factor * other

    return multiply


def plus(x):
    return x + 1 if x in {"one", "two", "three"} else x


def minus(x):
    return x - 1 if x in {"one", "two", "three"} else x


@dataclass
class Scaled:
    factor: float

    def __call__(self, x):
        return self.factor * x


class Shifted:
    def __init__(self, by):
        self.by = by

    def __call__(self, x):
        return x + self.by

    def twice(self, x):
        return x + 2 * self.by


COST = 1
TABLE = pd.DataFrame({"cost": [1.0, 2.0]}, index=["a", "b"])
GROUPS = {"north": {"one", "two", "three"}, "south": frozenset({"four", "five"})}


class Costs:
    def __init__(self, cost):
        self.cost, self.names = cost, {"x", "y", "z"}

    def of(self, y, decided):
        return self.cost * np.mean(y != decided)


COSTS = Costs(3)


def priced(y, decided):
    return COST * np.mean(y != decided)


def priced_by_another(y, decided):
    return priced(y, decided)


def even(n):
    return n == 0 or odd(n - 1)


def odd(n):
    return n != 0 and even(n - 1)


class Learner(Ridge):
    def fit(self, X, y, sample_weight=None):
        return super().fit(X, COST * y, sample_weight)


def compiled():
    return jax.jit(lambda y, decided: jnp.mean(y == decided))


DIFFERENT = [
    priced,
    priced_by_another,
    even,
    odd,
    Learner(),
    COSTS,
    Costs(4),
    COSTS.of,
    compiled(),
    jax.jit(lambda y, decided: jnp.sum(y == decided)),
    jax.vmap(lambda y: jnp.sum(y)),
    jnp.sum,
    jnp.add,
    jnp.arange(3),
    np.mean,
    np.vectorize(plus),
    np.random.default_rng(0),
    re.compile("a+"),
    lru_cache(plus),
    lambda y: TABLE.loc[y].sum(),
    lambda y: [GROUPS[name] for name in y],
    lambda y: COSTS.of(y, y),
    GROUPS,
    Path("rows.csv"),
    TABLE,
    plus,
    minus,
    lambda x: x + 1,
    lambda x: x + 2,
    lambda x: x + 1.0,
    lambda x, y=3: x + y,
    lambda x, y=4: x + y,
    lambda x: [i + 1 for i in x],
    lambda x: [i + 2 for i in x],
    lambda x: np.sin(x),
    lambda x: np.cos(x),
    times(2),
    times(3),
    times(plus),
    times(minus),
    partial(plus),
    partial(minus),
    partial(times, 2),
    partial(times, factor=2),
    Scaled(1.0),
    Scaled(2.0),
    Shifted(1),
    Shifted(2),
    Shifted(1).twice,
    Shifted,
    np.sin,
    np.cos,
    len,
    math.sin,
    accuracy_score,
    f1_score,
    make_scorer(f1_score),
    make_scorer(f1_score, average="macro"),
    make_metric(lambda y, decided: sum(y == decided), name="m"),
    make_metric(lambda y, decided: sum(y != decided), name="m"),
    make_metric(lambda y, decided: sum(y != decided), name="m", greater_is_better=False),
    Ridge(),
    Ridge(alpha=2.0),
    BaggingClassifier(LogisticRegression()),
    BaggingClassifier(LogisticRegression(C=2.0)),
    make_pipeline(FunctionTransformer(plus), Ridge()),
    make_pipeline(FunctionTransformer(minus), Ridge()),
    np.arange(3),
    np.arange(4),
    np.array(["a", "b"]),
    {"a": plus},
    {"a": minus},
    {"b", "a"},
    ["a", "b"],
    "a",
    1,
    1.0,
    None,
]


def test_different_settings_are_described_differently():
    texts = [described(value) for value in DIFFERENT]
    for i, text in enumerate(texts):
        assert text not in texts[:i], DIFFERENT[i]


def test_the_same_is_described_the_same_wherever_it_stands():
    first = times(2)
    second = times(2)
    for _ in range(50):
        first(3)  # Python rewrites code that runs often
    assert described(first) == described(second)
    assert described(lambda x: x + 1) == described(lambda z: z + 1)
    assert described(Shifted(3)) == described(Shifted(3))
    assert described({"a": 1, "b": 2}) == described({"b": 2, "a": 1})
    assert "0x" not in "".join(map(described, DIFFERENT))


def changed(monkeypatch, value, **names):
    """Whether the description of `value` changes with these globals."""
    before = described(value)
    with monkeypatch.context() as patch:
        for name, new in names.items():
            patch.setitem(globals(), name, new)
        after = described(value)
    assert described(value) == before
    return after != before


@pytest.mark.parametrize(
    ("value", "names"),
    [
        (priced, {"COST": 20}),
        (priced_by_another, {"COST": 20}),
        (make_metric(priced), {"COST": 20}),
        (make_scorer(priced_by_another), {"COST": 20}),
        (lambda y: [COST for _ in y], {"COST": 20}),
        (lambda y: TABLE.loc[y].sum(), {"TABLE": TABLE * 2}),
        (lambda y: COSTS.of(y, y), {"COSTS": Costs(4)}),
        (partial(lambda y: COSTS.of(y, y)), {"COSTS": Costs(4)}),
        (jax.jit(lambda y: COST * y), {"COST": 20}),
        (lru_cache(lambda y: COST * y), {"COST": 20}),
        (Learner(), {"COST": 20}),
        (FunctionTransformer(priced), {"COST": 20}),
        (even, {"odd": lambda n: True}),
    ],
)
def test_what_a_function_reads_counts(monkeypatch, value, names):
    assert changed(monkeypatch, value, **names)


def test_what_a_function_does_not_read_or_writes_itself_does_not_count(monkeypatch):
    def counts(y):
        global COST
        COST += 1
        return y

    assert not changed(monkeypatch, plus, COST=20)
    assert not changed(monkeypatch, counts, COST=20)


def test_a_module_counts_by_what_is_read_of_it(monkeypatch, tmp_path):
    (tmp_path / "my_costs.py").write_text("COST = 1\nOTHER = 1\n")
    (tmp_path / "my_metric.py").write_text("import my_costs\ndef price(y):\n    return my_costs.COST * y\n")
    monkeypatch.syspath_prepend(tmp_path)
    costs, metric = import_module("my_costs"), import_module("my_metric")
    before = described(metric.price)
    monkeypatch.setattr(costs, "OTHER", 2)
    assert described(metric.price) == before
    monkeypatch.setattr(costs, "COST", 2)
    assert described(metric.price) != before


def test_a_fitted_model_counts_by_what_it_learned_where_a_function_uses_it():
    X = np.arange(4.0)[:, None]
    models = [Ridge().fit(X, X[:, 0]), Ridge().fit(X, 2 * X[:, 0])]
    assert described(models[0]) == described(models[1])  # as an estimator to be trained
    assert len({described(Costs(model)) for model in models}) == 2
    assert len({described(FrozenEstimator(model)) for model in models}) == 2


def test_counters_of_an_object_do_not_count():
    class Counts:
        calls, fits = 0, 0

        def __call__(self, y, decided):
            self.calls += 1
            type(self).fits += 1
            return np.mean(y == decided)

    calls, left, cache = [], [3], {}

    def counts_too(y, decided):
        calls.append(1)
        left[0] -= 1
        cache[len(y)] = y
        return np.mean(y == decided)

    before = described(counts_too)
    counts_too(np.ones(2), np.ones(2))
    assert calls == [1] and left == [2] and len(cache) == 1
    assert described(counts_too) == before
    counts = Counts()
    before = described(counts)
    counts(np.ones(2), np.ones(2))
    assert Counts.fits == counts.calls == 1
    assert described(counts) == before


def test_what_cannot_be_seen_is_named(tmp_path):
    numbers = (i for i in range(3))
    stream = io.BytesIO()
    with (tmp_path / "costs.txt").open("w") as file:
        assert "TextIOWrapper" in unseen({"metric": lambda y: file})[0]
        assert unseen({"metric": Costs(file)})[0].startswith("metric → cost (_io.TextIOWrapper")
    assert "generator" in unseen(lambda y: next(numbers))[0]
    assert unseen(np.frompyfunc(plus, 1, 1))
    assert unseen(lambda y: stream) == []  # its content can be read
    assert [value for value in DIFFERENT if unseen(value)] == []

    def versioned(y):
        return next(numbers)

    texts = []
    for version in ("1", "2"):
        versioned.__version__ = version
        assert unseen(versioned) == []
        texts.append(described(versioned))
    assert texts[0] != texts[1]


def test_a_circle_comes_to_an_end():
    circle = []
    circle.append(circle)
    assert described(circle) == described(circle)


def test_descriptions_are_the_same_in_another_process():
    program = "import test_fingerprint as t; print([t.described(value) for value in t.DIFFERENT])"
    for seed in ("1", "2"):
        shown = subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert shown.strip() == str([described(value) for value in DIFFERENT])


def test_arrays_and_tables_count_by_what_they_hold():
    X = np.arange(6.0).reshape(3, 2)
    frame = pd.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "z"]})
    tables = [X, X + 1, X[:, :1], csr_array(X), frame, frame.assign(b=["x", "y", "w"])]
    found = [fingerprint({}, [], [table]) for table in tables]
    assert len(set(found)) == len(tables)
    assert fingerprint({}, [], [np.asfortranarray(X)]) == found[0]


def _accuracy(y, decided):
    return np.mean(y == decided)


def _wide_of_it(y, decided):
    return np.mean(y != decided)


def test_a_stored_study_is_refused_to_another_function(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] > 0).astype(int)

    def search(metric, transform=plus, batches=1):
        model = make_pipeline(FunctionTransformer(transform), LogisticRegression())
        return ExampleWeightSearch(
            model,
            metric=make_metric(metric, name="same"),
            embedding="label",
            n_batches=batches,
            batch_size=2,
            sample_weight_name="logisticregression__sample_weight",
            storage=tmp_path / "study.log",
            random_state=0,
            guard=False,
        ).fit(X, y)

    def identity(x):
        return x

    def doubled(x):
        return 2 * x

    search(_accuracy, identity)
    assert len(search(_accuracy, identity, batches=2).result_.trials) == 5
    for metric, transform in ((_wide_of_it, identity), (_accuracy, doubled)):
        with pytest.raises(InvalidInputError, match="fingerprint of data"):
            search(metric, transform)


def search_of(metric, storage):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
    settings = {"embedding": "label", "n_batches": 1, "batch_size": 2, "guard": False, "random_state": 0}
    return ExampleWeightSearch(LogisticRegression(), metric=metric, storage=storage, **settings).fit(X, y)


def test_a_stored_study_is_refused_to_a_metric_whose_global_changed(tmp_path, monkeypatch):
    first = search_of(priced, tmp_path / "study.log")
    again = search_of(priced, tmp_path / "study.log")
    assert first.best_score_ == again.best_score_
    monkeypatch.setitem(globals(), "COST", 20)
    with pytest.raises(InvalidInputError, match="fingerprint of data"):
        search_of(priced, tmp_path / "study.log")


def test_a_metric_that_cannot_be_seen_needs_a_version_to_be_stored(tmp_path):
    with (tmp_path / "log.txt").open("w") as log:

        def logged(y, decided):
            print(len(y), file=log)
            return np.mean(y == decided)

        search_of(logged, None)
        with pytest.raises(InvalidInputError, match=r"logged.*TextIOWrapper.*version='1'"):
            search_of(logged, tmp_path / "study.log")
        search_of(make_metric(logged, version="1"), tmp_path / "study.log")
        with pytest.raises(InvalidInputError, match="fingerprint of data"):
            search_of(make_metric(logged, version="2"), tmp_path / "study.log")
    with pytest.raises(InvalidInputError, match="version must be a text"):
        make_metric(priced, version=2)
