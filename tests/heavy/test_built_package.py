"""`make package`: wheel and sdist are built, pass twine's check, and work in an empty environment."""

import subprocess

import pytest
from pages import ROOT

pytestmark = pytest.mark.heavy


def test_the_package_builds_and_works_in_an_empty_environment(tmp_path):
    command = ["make", "package", f"DIST={tmp_path / 'dist'}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3_000:]
    assert done.stdout.count("PASSED") == 2  # twine's word for the wheel and for the sdist
    assert "the README's example:" in done.stdout
