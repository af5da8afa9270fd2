"""The examples in the docstrings of public names say what comes out."""

import doctest
from importlib import import_module

import pytest

MODULES = [
    "moew.search._compare",
    "moew.decision._thresholds",
    "moew.samplers._domains",
    "moew.embedding._label",
    "moew.search._estimator",
    "moew.metrics._classes",
    "moew.metrics._metric",
    "moew.metrics._ranking",
    "moew.metrics._regression",
    "moew.metrics._selected",
    "moew.models._ensemble",
    "moew._util.state",
    "moew.search._study",
    "moew.theory._losses",
    "moew.theory._measures",
    "moew.theory._optimal_weights",
    "moew.theory._theorem_2",
    "moew.theory._trained",
    "moew.weighting._weights",
]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_docstrings(name):
    found = doctest.testmod(import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.attempted > 0
    assert found.failed == 0
