"""`--groups COLUMN`: rows of one query, patient or customer are never cut apart, on the command line."""

import json
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tables import QUICK, entries, in_json, moew, refused, write_classes

DATA = ("train.csv", "--label", "y", "--id", "id", "--metric", "accuracy", "--model", "logistic")
FIT = ("fit", *DATA, "--groups", "patient", *QUICK)
ALONE = (
    "--set",
    "evaluate_on=validation",
    "--strategies",
    "example weights",
)  # the validation rows alone, and example weights whatever they gain
VALIDATION = ("--validation", "valid.csv")


@pytest.fixture(autouse=True)
def folder(own_folder):
    write_classes(own_folder)
    for name in ("train", "valid", "test"):
        change(name, lambda frame, name=name: frame.assign(patient=[f"{name} {i // 3}" for i in frame.index]))
    return own_folder


def change(name, how):
    how(pd.read_csv(f"{name}.csv")).to_csv(f"{name}.csv", index=False)


def test_held_out_rows_are_whole_groups_and_the_column_is_no_feature():
    moew(*FIT, "--test", "test.csv", "--set", "evaluate_on=0.2")
    trained = pd.read_parquet("run/weights.parquet")["id"]
    train = pd.read_csv("train.csv").set_index("id")["patient"]
    assert 0 < len(trained) < len(train)
    assert not set(train[trained]) & set(train.drop(trained))
    assert set(json.loads(entries()["search.json"])["features"]) == {"a", "b", "amount"}
    assert tomllib.loads(Path("run/settings.toml").read_text())["groups"] == "patient"


def test_new_rows_need_no_groups():
    moew(*FIT, *VALIDATION)
    change("test", lambda frame: frame.drop(columns="patient"))
    assert len(in_json("predict", "run", "test.csv")["predictions"]["prediction"]) == 246
    moew("weights", "run", "test.csv", "--out", "weights.csv")


@pytest.mark.heavy
def test_the_same_from_settings_and_for_a_comparison():
    alone = (*VALIDATION, *ALONE, "--metric", "worst_class_error", "--test", "test.csv")
    first = in_json(*FIT, *alone)
    again = in_json("fit", "--config", "run/settings.toml", "--out", "again")
    assert first["moew"] == again["moew"] and first["tested"] == again["tested"]
    other = in_json("fit", *DATA, *alone, "--drop", "patient", *QUICK, "--out", "o")
    bests, honests = (
        [[strategy[score] for strategy in found["strategies"]] for found in (first, other)]
        for score in ("apparent", "honest")
    )
    assert bests[0] == bests[1] and honests[0] != honests[1]
    assert other["tested"]["gain_error"] != first["tested"]["gain_error"]
    table = in_json("compare", "--config", "run/settings.toml", "--repeats", "2")
    apart = in_json("compare", "--config", "o/settings.toml", "--repeats", "2")
    assert table["methods"]["moew"]["test"] == apart["methods"]["moew"]["test"]
    assert table["test_rows_margin"] != apart["test_rows_margin"]


def test_a_column_can_name_groups_and_serve_the_metric(folder):
    (folder / "by_patient.py").write_text(
        "import numpy as np\n"
        "def worst(y, decision, patient):\n"
        "    return min(np.mean((y == decision)[patient == one]) for one in np.unique(patient))\n"
    )
    words = [word for word in FIT if word not in ("--metric", "accuracy")]
    moew(*words, *VALIDATION, "--metric", "by_patient:worst")
    assert np.isfinite(json.loads(Path("run/result.json").read_text())["moew"]["honest"])


def test_texts_stay_texts_where_a_file_holds_only_digits():
    change("valid", lambda frame: frame.assign(patient=[i // 3 for i in frame.index]))
    moew(*FIT, *VALIDATION)


@pytest.mark.heavy
def test_groups_in_both_files_are_told():
    change("valid", lambda frame: frame.assign(patient=frame["patient"].str.replace("valid", "train")))
    assert "groups have both training and validation rows" in moew(*FIT, *VALIDATION).stderr


def with_gap(frame):
    return frame.assign(patient=[None, *frame["patient"][1:]])


@pytest.mark.parametrize(
    ("name", "how", "options", "words"),
    [
        ("train", lambda frame: frame.drop(columns="patient"), (), "train.csv has no column 'patient'"),
        (
            "valid",
            lambda frame: frame.drop(columns="patient"),
            VALIDATION,
            "valid.csv has no column 'patient'",
        ),
        (
            "test",
            lambda frame: frame.drop(columns="patient"),
            ("--test", "test.csv"),
            "test.csv has no column",
        ),
        (
            "train",
            with_gap,
            (),
            "1 of the training rows, such as row 0, counted from 0, have no group (--groups is",
        ),
        ("train", lambda frame: frame.assign(patient=1), (), "all rows belong to one group"),
        ("valid", lambda frame: frame.assign(patient="x"), VALIDATION, "no halves for the honest score"),
        (
            "train",
            lambda frame: frame.assign(patient=frame.index % 4),
            ("--set", "evaluate_on=5"),
            "--set evaluate_on=5 cannot",
        ),
    ],
)
def test_what_cannot_work_is_told_before_training(name, how, options, words):
    change(name, how)
    line = refused(*FIT, *options)
    assert words in line
    assert "groups=" not in line and not Path("run").exists()
