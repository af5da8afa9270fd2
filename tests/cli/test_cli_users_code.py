"""What the user's own code prints, and how it ends, does not reach the results."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from tables import WITHOUT_FOLDS, moew, refused, write_classes, write_module

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
DATA = ("train.csv", "--validation", "valid.csv", "--label", "y", "--id", "id", *WITHOUT_FOLDS)
LOUD = """
import os
from sklearn.linear_model import LogisticRegression

print("imported")

class Model(LogisticRegression):
    def fit(self, X, y, sample_weight=None):
        print("training")
        os.write(1, b"as a compiled library would\\n")
        return super().fit(X, y, sample_weight)

    def predict(self, X):
        print("predicting")
        return super().predict(X)

    def decision_function(self, X):
        print("predicting")
        return super().decision_function(X)

def share(y, decision):
    print("scoring")
    return float((y == decision).mean())

def embedding(X, y):
    print("embedding")
    return X[["a"]].to_numpy()
"""
ENDING = """
import sys
from sklearn.linear_model import LogisticRegression

class Stop(BaseException):
    pass

def leaves(y, decision):
    sys.exit("I am done")

def stops(y, decision):
    raise Stop("no more")

class Leaving(LogisticRegression):
    def fit(self, X, y, sample_weight=None):
        sys.exit(0)
"""


@pytest.fixture(autouse=True)
def folder(own_folder):
    write_classes(own_folder)
    write_module(own_folder, "loud", LOUD)
    write_module(own_folder, "ending", ENDING)
    return own_folder


def alone(*arguments):
    """The command in a process of its own."""
    command = [sys.executable, "-m", "moew", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, timeout=120)
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.heavy
@pytest.mark.parametrize("jobs", ["1", pytest.param("2", marks=pytest.mark.heavy)])
def test_what_the_users_code_prints_is_no_result(jobs):
    own = ("--metric", "loud:share", "--model", "loud:Model", "--set", "embedding=loud:embedding")
    done = alone(
        "fit",
        *DATA,
        *own,
        "--jobs",
        jobs,
        "--json",
        "--strategies",
        "example weights",
        "--set",
        "evaluate_on=auto",
    )
    assert json.loads(done.stdout)["metric"] == "share"
    for word in ("imported", "training", "as a compiled library would", "scoring", "embedding"):
        assert word in done.stderr
    done = alone("predict", "run", "test.csv", "--trust", "--json")
    assert len(json.loads(done.stdout)["predictions"]["id"]) == 246 and "predicting" in done.stderr
    done = alone("weights", "run", "test.csv", "--trust")
    assert done.stdout.startswith("id,weight\n") and done.stdout.count("\n") == 247
    assert "embedding" in done.stderr


@pytest.mark.parametrize(
    ("own", "words"),
    [
        (("--metric", "ending:leaves", "--model", "logistic"), "with SystemExit: I am done ("),
        (("--metric", "ending:stops", "--model", "logistic"), "with Stop: no more ("),
    ],
)
def test_code_that_wants_to_end_the_program_is_a_failure(own, words):
    *_, line = refused("fit", *DATA, *own, status=1).splitlines()
    assert line.startswith("moew: code of yours wanted to end the program") and words in line
    assert "ending.py, line " in line
    assert not Path("run/result.json").exists()


def test_a_model_that_wants_to_end_the_program_is_a_failed_candidate():
    line = refused("fit", *DATA, "--metric", "accuracy", "--model", "ending:Leaving", status=1)
    assert "every candidate so far failed; the first: TrainingFailedError: the model's fit raised" in line
    assert "SystemExit: 0" in line
    assert not Path("run/result.json").exists()


def test_a_model_that_hangs_is_a_failed_candidate(folder):
    text = "import time\nfrom sklearn.linear_model import LogisticRegression\n\n"
    text += "class Hanging(LogisticRegression):\n    def fit(self, X, y, sample_weight=None):\n"
    text += "        time.sleep(1000)\n"
    write_module(folder, "hanging", text)
    few = (
        "--candidates",
        "1",
        "--set",
        "batch_size=1",
        "--set",
        "evaluate_on=validation",
        "--strategies",
        "example weights",
    )
    timeout = ("--set", "candidate_timeout=0.2")
    line = refused(
        "fit", *DATA, *few, "--metric", "accuracy", "--model", "hanging:Hanging", *timeout, status=1
    )
    assert "the training took longer than candidate_timeout=0.2 seconds" in line
    assert "candidate_timeout = 0.2" in Path("run/settings.toml").read_text()


def test_what_was_trained_before_the_end_is_kept(folder):
    text = "import sys\nfrom pathlib import Path\n\ndef share(y, decision):\n"
    text += "    with Path('calls').open('a') as file: file.write('x')\n"
    text += "    if not Path('go').exists() and Path('calls').stat().st_size > 2: sys.exit(7)\n"
    text += "    return float((y == decision).mean())\n"
    write_module(folder, "sometimes", text)
    fit = ("fit", *DATA, "--metric", "sometimes:share", "--model", "logistic", "--set", "honest=none")
    assert "SystemExit: 7" in refused(*fit, status=1)
    Path("go").touch()
    moew(*fit, "--resume")
    assert len(pd.read_parquet("run/weights.parquet")) == len(pd.read_csv("train.csv"))


def test_a_module_that_ends_the_program_when_imported(folder):
    write_module(folder, "script", "import sys\nsys.exit(4)\n")
    line = refused("fit", *DATA, "--metric", "script:main")
    assert "importing script failed: SystemExit: 4" in line and line.count("\n") == 1
