"""Fingerprints: the same in every process, another for other settings, data and functions."""

import math
import subprocess
import sys
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.ensemble import BaggingClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, f1_score, make_scorer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from moew import ExampleWeightSearch
from moew._util.fingerprint import described, fingerprint
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


DIFFERENT = [
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


def _error(y, decided):
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
    for metric, transform in ((_error, identity), (_accuracy, doubled)):
        with pytest.raises(InvalidInputError, match="fingerprint of data"):
            search(metric, transform)
