"""Ids and labels of a CSV file keep their text, in every file that comes out."""

import stat
from pathlib import Path

import pandas as pd
import pytest
from tables import WITHOUT_FOLDS, fit_once, in_json, moew, refused, write_classes

DATA = ("train.csv", "--validation", "valid.csv", "--label", "y", "--metric", "accuracy")
FIT = ("fit", *DATA, "--model", "logistic", *WITHOUT_FOLDS)


@pytest.fixture(autouse=True)
def folder(own_folder):
    write_classes(own_folder)
    return own_folder


def change(**columns):
    """Give all three files columns made from the number of the row."""
    for name in ("train.csv", "valid.csv", "test.csv"):
        frame = pd.read_csv(name, dtype=str)
        made = {column: [make(i) for i in range(len(frame))] for column, make in columns.items()}
        frame.assign(**made).to_csv(name, index=False)


def ids_of(path):
    return pd.read_csv(path, dtype=str, keep_default_na=False)["id"].tolist()


@pytest.mark.parametrize("text", ["{:04d}", "1.{}0", "9{:018d}9", "NA"], ids=str)
def test_ids_keep_their_text(folder, text):
    change(id=text.format)
    script = folder / "keep"
    script.write_text('#!/bin/sh\ncp -n "$1" kept.csv\necho 0.5\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    program = (
        "--metric-command",
        "./keep {predictions}",
        "--set",
        "honest=none",
        "--set",
        "evaluate_on=validation",
    )
    moew(*(word for word in FIT if word not in DATA[-2:]), "--id", "id", *program)
    assert pd.read_parquet("run/weights.parquet")["id"].tolist() == ids_of("train.csv")
    kept = pd.read_csv("kept.csv", dtype=str, keep_default_na=False)
    assert kept["row_id"].tolist() == ids_of("valid.csv")
    moew("predict", "run", "test.csv", "--out", "p.csv")
    moew("weights", "run", "test.csv", "--out", "w.csv")
    assert ids_of("p.csv") == ids_of("w.csv") == ids_of("test.csv")


def test_plain_whole_numbers_stay_numbers_to_join_by():
    change(id=int)
    moew(*FIT, "--id", "id")
    assert pd.read_parquet("run/weights.parquet")["id"].tolist() == list(range(126))


@pytest.mark.parametrize("name", ["weight", "prediction", "score", "probability_yes"])
def test_ids_named_like_a_column_that_is_written_are_refused(name):
    for file in ("train.csv", "valid.csv"):
        pd.read_csv(file).rename(columns={"id": name}).to_csv(file, index=False)
    line = refused(*FIT, "--id", name)
    assert f"--id {name}: the files that come out have a column {name!r}" in line
    assert "another name in your files, or leave out --id" in line and not Path("run").exists()


@pytest.mark.parametrize("command", ["predict", "weights"])
def test_new_rows_without_ids_have_numbers(command):
    fit_once(*FIT, "--id", "id")
    pd.read_csv("test.csv").drop(columns="id").to_csv("nameless.csv", index=False)
    done = moew(command, "run", "nameless.csv")
    assert [line.split(",")[0] for line in done.stdout.splitlines()[:3]] == ["row", "0", "1"]
    assert done.stderr == (
        "moew: note: nameless.csv has no column 'id', so its rows are named by their numbers, from 0\n"
    )
    assert moew(command, "run", "test.csv").stderr == ""


def test_labels_with_zeros_in_front_are_texts_in_every_file(folder):
    write_classes(folder, names=("00", "01", "x"))
    moew(*FIT, "--drop", "id")
    found = in_json("predict", "run", "test.csv")["predictions"]
    assert set(found) == {"row", "prediction", "probability_00", "probability_01"}
    assert set(found["prediction"]) == {"00", "01"}
    assert len(in_json("weights", "run", "test.csv")["weights"]["weight"]) == 246
    write_classes(folder, names=("0", "1", "x"))
    unknown = "labels ['0', '1'] were not in the training rows, which have ['00', '01']"
    assert unknown in refused("weights", "run", "test.csv")


def test_labels_that_are_plain_numbers_stay_numbers(folder):
    write_classes(folder, names=("-1", "10", "x"))
    moew(*FIT, "--drop", "id")
    assert set(in_json("predict", "run", "test.csv")["predictions"]["prediction"]) == {-1, 10}


@pytest.mark.parametrize("name", ["row_id", "label", "decision", "proba", "proba_1", "score_12"])
def test_columns_that_a_program_gets_already_are_refused(name):
    words = (*FIT[:6], "--metric-command", "x {predictions}", "--metric-column", f"{name}=amount")
    assert f"has a column {name!r} of its own" in refused(*words)
