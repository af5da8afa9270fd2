"""Faults of models, through the command that tries them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def said(backends, faults):
    """What the command prints about these faults, all of which must be survived."""
    command = [sys.executable, "benchmarks/faults.py", "--backends", backends, "--faults", ",".join(faults)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    return done.stdout


@pytest.mark.heavy
def test_faults_on_this_machine():
    faults = ("sys.exit", "KeyboardInterrupt", "a model that cannot be sent", "is killed", "hangs")
    found = said("two", faults)
    assert "two: 5 of 5 faults survived" in found
    assert "took longer than candidate_timeout=2 seconds" in found


@pytest.mark.heavy
@pytest.mark.parametrize("cluster", ["dask", "ray"])
def test_faults_on_clusters(cluster):
    pytest.importorskip(cluster)
    faults = (
        "raises",
        "sys.exit",
        "KeyboardInterrupt",
        "GeneratorExit",
        "a model that cannot be sent",
        "os._exit",
    )
    assert f"{cluster}: 6 of 6 faults survived" in said(cluster, faults)
