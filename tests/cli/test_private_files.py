"""Run folders, saved searches and journals are for their owner; tables are harmless in spreadsheets."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import WITHOUT_FOLDS, moew, write_classes

from moew import MetricSearch
from moew.cli.runs import read_table
from moew.cli.runs._tables import write_table

FIT = (
    "fit",
    "train.csv",
    "--validation",
    "valid.csv",
    "--label",
    "y",
    "--metric",
    "accuracy",
    *WITHOUT_FOLDS,
)


def mode(path):
    return Path(path).stat().st_mode & 0o777


@pytest.fixture
def no_umask():
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture(autouse=True)
def folder(own_folder):
    write_classes(own_folder)
    return own_folder


@pytest.mark.skipif(os.name == "nt", reason="rights of POSIX")
def test_a_run_folder_is_readable_by_its_owner_alone(no_umask):
    moew(*FIT, "--model", "logistic", "--out", "runs/one")
    assert mode("runs/one") == 0o700 and mode("runs") == 0o777
    modes = {str(entry): mode(entry) for entry in Path("runs/one").rglob("*")}
    assert modes == {name: 0o700 if Path(name).is_dir() else 0o600 for name in modes}
    Path("runs/one/report.html").chmod(0o644)
    moew("report", "runs/one")
    assert mode("runs/one/report.html") == 0o644  # the owner shares it
    moew("predict", "runs/one", "test.csv", "--out", "p.csv")
    assert mode("p.csv") == 0o666  # as the user's umask says
    moew(*FIT, "--model", "logistic", "--out", "runs/one", "--force")
    assert mode("runs/one") == 0o700 and mode("runs/one/report.html") == 0o600


@pytest.mark.skipif(os.name == "nt", reason="rights of POSIX")
def test_journals_and_saved_searches_are_private_too(no_umask):
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    settings = {"embedding": "label", "n_candidates": 2, "batch_size": 2, "random_state": 0}
    search = MetricSearch.from_settings(LogisticRegression(), storage="study.db", **settings)
    search.fit(X, (X[:, 0] > 0).astype(int)).save("search.moew")
    assert mode("study.db") == mode("search.moew") == 0o600


@pytest.mark.skipif(os.name == "nt", reason="rights of POSIX")
def test_a_stricter_umask_is_respected():
    from moew._util.whole_files import write_whole

    before = os.umask(0o277)
    try:
        write_whole(Path("strict.txt"), lambda new: None, private=True)
    finally:
        os.umask(before)
    assert mode("strict.txt") == 0o400


@pytest.mark.parametrize("odd", ["=1+1", "@SUM(A1)", "+cmd|' /C calc'!A0", "-2+3", "\t=1", "\r=1", "-a"])
def test_formulas_are_escaped_in_csv_alone(odd):
    columns = {odd: [odd, "fine"], "prediction": pd.Categorical([odd, "fine"]), "score": [-1.5, 2.0]}
    text = write_table(columns, None)
    assert text.count(f"'{odd}") == 3
    write_table(columns, Path("t.parquet"))
    frame = pd.read_parquet("t.parquet")
    assert frame[odd].tolist() == [odd, "fine"]


@given(st.sampled_from(["-", "+", "-5", "+1.25", "007", "a=b", "x@y", "", "–5"]))
def test_labels_and_numbers_stay_as_they_are(text):
    written = write_table({"id": [text], "n": [-3]}, None)
    assert "'" not in written


def test_ids_that_are_formulas_come_out_escaped(folder):
    moew(*FIT, "--model", "logistic", "--id", "id")
    pd.read_csv("test.csv").assign(id="=HYPERLINK(A1)").to_csv("test.csv", index=False)
    moew("predict", "run", "test.csv", "--out", "p.csv")
    assert set(read_table(Path("p.csv"))["id"]) == {"'=HYPERLINK(A1)"}
    moew("weights", "run", "test.csv", "--out", "w.csv")
    assert set(read_table(Path("w.csv"))["id"]) == {"'=HYPERLINK(A1)"}
