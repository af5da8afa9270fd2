"""The examples in the docstrings of public names say what comes out."""

import doctest
from importlib import import_module

import pytest

MODULES = [
    "moew.search._compare",
    "moew.decision._rules",
    "moew.samplers._domains",
    "moew.embedding._given",
    "moew.search._estimator",
    "moew.metrics._metric",
    "moew.metrics._own",
    "moew.models._ensemble",
    "moew._util.state",
    "moew.search._study",
    "experiments.theory._losses",
    "experiments.theory._measures",
    "experiments.theory._optimal_weights",
    "experiments.theory._theorem_2",
    "experiments.theory._trained",
    "moew.weighting._weights",
]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_docstrings(name):
    found = doctest.testmod(import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.attempted > 0
    assert found.failed == 0
