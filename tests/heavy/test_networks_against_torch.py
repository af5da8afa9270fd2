"""PyTorch as the oracle of the networks: same start, same mini-batches, same parameters at the end."""

import importlib.util
from pathlib import Path

import pytest

pytestmark = pytest.mark.heavy
pytest.importorskip("torch", reason="PyTorch is not installed")


def _benchmark():
    path = Path(__file__).parents[2] / "benchmarks" / "networks.py"
    spec = importlib.util.spec_from_file_location("networks_benchmark", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["40-20-10-1, batch 1000", "2-20-10-1, batch 100", "linear 95-1, batch 100"])
def test_parameters_after_training_are_pytorchs(name):
    benchmark = _benchmark()
    problem = benchmark.make_problem(*benchmark.CASES[name], steps=50)
    assert benchmark.same_networks(problem) < 2e-5
