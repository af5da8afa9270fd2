"""Fingerprints: the same in every process, another for other settings, data and functions."""

import io
import math
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import lru_cache, partial
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

from moew import MetricSearch
from moew.exceptions import InvalidInputError
from moew.metrics import make_metric
from moew.storage._fingerprint import described, fingerprint, unseen


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


def test_what_a_function_encloses_counts_where_it_cannot_change():
    assert len({described(times(factor)) for factor in (2, 3, plus, minus)}) == 4
    calls = []

    def counts(y):
        calls.append(1)
        return y

    before = described(counts)
    counts(1)
    assert described(counts) == before


def test_comments_and_what_stands_around_a_function_do_not_count(tmp_path):
    sources = [
        "def price(y):\n    return 2 * y\nf = price\n",
        "COST = 1\n\n# A comment.\ndef price(y):\n    return (2 *  # half the price\n        y)\nf = price\n",
        "f = dict(n=3, f=lambda y: 2 * y)['f']\n",
        "f = dict(n=4,\n    f=lambda y: (2 * y))['f']\n",
    ]
    texts = []
    for i, source in enumerate(sources):
        file = tmp_path / f"metric_{i}.py"
        file.write_text(source)
        names = {}
        exec(compile(source, str(file), "exec"), names)
        texts.append(described(names["f"]))
    assert texts[0] == texts[1] != texts[2] == texts[3]


def test_a_fitted_model_counts_by_what_it_learned_where_a_function_uses_it():
    X = np.arange(4.0)[:, None]
    models = [Ridge().fit(X, X[:, 0]), Ridge().fit(X, 2 * X[:, 0])]
    assert described(models[0]) == described(models[1])  # as an estimator to be trained
    assert len({described(Costs(model)) for model in models}) == 2
    assert len({described(FrozenEstimator(model)) for model in models}) == 2


def test_what_cannot_be_seen_is_named(tmp_path):
    numbers = (i for i in range(3))
    stream = io.BytesIO()
    with (tmp_path / "costs.txt").open("w") as file:
        assert unseen({"metric": Costs(file)})[0].startswith("metric → cost (_io.TextIOWrapper")
    assert "generator" in unseen(Costs(numbers))[0]
    names = {}
    exec("def without_source(y): return y", names)
    assert unseen({"metric": names["without_source"]}) == ["metric (function)"]
    assert unseen(np.frompyfunc(plus, 1, 1))
    assert unseen(Costs(stream)) == []  # its content can be read
    assert [value for value in DIFFERENT if unseen(value)] == []

    versioned, texts = names["without_source"], []
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
        return MetricSearch.from_settings(
            model,
            metric=make_metric(metric, name="same"),
            embedding="label",
            n_candidates=2 * batches,
            batch_size=2,
            sample_weight_name="logisticregression__sample_weight",
            storage=tmp_path / "study.db",
            random_state=0,
            strategies="example weights",
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
    settings = {
        "embedding": "label",
        "n_candidates": 2,
        "batch_size": 2,
        "strategies": "example weights",
        "random_state": 0,
    }
    return MetricSearch.from_settings(LogisticRegression(), metric=metric, storage=storage, **settings).fit(
        X, y
    )


def test_a_metric_whose_global_changed_is_found_by_the_stored_predictions(tmp_path, monkeypatch):
    first = search_of(priced, tmp_path / "study.db")
    again = search_of(priced, tmp_path / "study.db")
    assert first.best_score_ == again.best_score_
    monkeypatch.setitem(globals(), "COST", 20)
    with pytest.raises(InvalidInputError, match="the metric gives the stored predictions of candidate 0"):
        search_of(priced, tmp_path / "study.db")


def test_a_metric_that_cannot_be_seen_needs_a_version_to_be_stored(tmp_path):
    with (tmp_path / "log.txt").open("w") as log:

        class Logged:
            def __init__(self, file):
                self.file = file

            def __call__(self, y, decided):
                print(len(y), file=self.file)
                return np.mean(y == decided)

        logged = Logged(log)
        search_of(logged, None)
        with pytest.raises(InvalidInputError, match=r"TextIOWrapper.*version='1'"):
            search_of(logged, tmp_path / "study.db")
        search_of(make_metric(logged, version="1"), tmp_path / "study.db")
        with pytest.raises(InvalidInputError, match="fingerprint of data"):
            search_of(make_metric(logged, version="2"), tmp_path / "study.db")
    with pytest.raises(InvalidInputError, match="version must be a text"):
        make_metric(priced, version=2)
