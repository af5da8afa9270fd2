"""Run folders whose model is an ensemble: a file for each member, none of which is executed."""

import json
import os
import pickle
import shutil
from copy import deepcopy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tables import WITHOUT_FOLDS, change_entries, entries, moew, refused, write_classes, write_numbers

from moew.cli.runs import built_in_model, load_run
from moew.models import ModelEnsemble
from moew.saving import load_model, needs_trust, pack_model

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
NAMES = ("logistic", "lightgbm", "xgboost", "network")
VOTES = [0.1, 0.2, 0.3, 0.4]


class Payload:
    def __reduce__(self):
        return os.mkdir, ("executed",)


def options(name):
    few = {"lightgbm": "n_estimators", "xgboost": "n_estimators", "network": "steps"}
    return {few[name]: 5} if name in few else {}


def an_ensemble(train, names=NAMES, task="classification"):
    X, y = train[["a", "b"]], train["y"]
    models = [built_in_model(name, X, task, options(name)).fit(X, y) for name in names]
    return ModelEnsemble(models, VOTES[: len(names)])


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A folder with a run, whose model is an ensemble of four kinds of models."""
    folder, before = tmp_path_factory.mktemp("ensemble"), Path.cwd()
    os.chdir(folder)
    try:
        write_classes(folder)
        moew(*FIT, "--model", "logistic", "--features", "a,b")
        train = pd.read_csv("train.csv")
        ensemble = an_ensemble(train)
        change_entries({"model.skops": None, **pack_model(ensemble, train[["a", "b"]], "model")})
    finally:
        os.chdir(before)
    return folder, ensemble


@pytest.fixture
def ensemble(saved, own_folder):
    """The ensemble, in a copy of its folder."""
    folder, ensemble = saved
    shutil.copytree(folder, own_folder, dirs_exist_ok=True)
    return ensemble


def test_every_member_has_a_file_of_its_own(ensemble):
    files = entries()
    assert sorted(files) == [
        "model-member-0.skops",
        "model-member-1.skops",
        "model-member-2.skops",
        "model-member-3.json",
        "model.json",
        "search.json",
        "unweighted.skops",
    ]
    votes = {"kind": "moew.models:ModelEnsemble", "version": 1, "members": 4, "votes": VOTES}
    assert json.loads(files["model.json"]) == votes
    assert not needs_trust(files)


def test_it_is_loaded_with_its_bits_and_predicts(ensemble):
    test = pd.read_csv("test.csv")
    again = load_run(Path("run")).fitted.winner.model
    assert isinstance(again, ModelEnsemble)
    np.testing.assert_array_equal(again.votes_, ensemble.votes_)
    np.testing.assert_array_equal(
        again.predict_proba(test[["a", "b"]]), ensemble.predict_proba(test[["a", "b"]])
    )
    moew("predict", "run", "test.csv", "--out", "p.csv")
    found = pd.read_csv("p.csv")
    assert found["prediction"].tolist() == ensemble.predict(test[["a", "b"]]).tolist()
    np.testing.assert_allclose(found["probability_yes"], ensemble.predict_proba(test[["a", "b"]])[:, 1])
    moew("predict", "run", "test.csv", "--unweighted")


def test_regressors_are_kept_too(own_folder):
    write_numbers(own_folder)
    train = pd.read_csv("numbers.csv")
    ensemble = an_ensemble(train, ("ridge", "lightgbm", "xgboost"), "regression")
    again = load_model(pack_model(ensemble, train[["a", "b"]], "model"), Path("p"), "model")
    np.testing.assert_array_equal(again.predict(train[["a", "b"]]), ensemble.predict(train[["a", "b"]]))


def test_an_ensemble_may_be_a_member(ensemble):
    train = pd.read_csv("train.csv")
    X = train[["a", "b"]]
    nested = ModelEnsemble([ensemble, an_ensemble(train, ("logistic", "network"))], [1, 2])
    files = pack_model(nested, X, "model")
    assert "model-member-1-member-1.json" in files
    again = load_model(files, Path("p"), "model")
    np.testing.assert_array_equal(again.predict_proba(X), nested.predict_proba(X))


def test_a_member_that_is_code_needs_trust(ensemble):
    change_entries({"model-member-1.skops": None, "model-member-1.pickle": pickle.dumps(Payload())})
    assert needs_trust(entries())
    line = refused("predict", "run", "test.csv")
    assert "run/search.moew/model-member-1.pickle is a pickle" in line and "--trust" in line
    assert not Path("executed").exists()
    change_entries({"model-member-1.pickle": pickle.dumps(ensemble.models_[1])})
    expected = moew("predict", "run", "test.csv", "--trust").stdout
    assert expected.startswith("row,prediction,probability_no")


@pytest.mark.parametrize("k", range(4))
def test_a_missing_member_is_said(ensemble, k):
    change_entries({name: None for name in entries() if name.startswith(f"model-member-{k}.")})
    line = refused("predict", "run", "test.csv", status=1)
    assert f"search.moew holds none of model-member-{k}.json, model-member-{k}.skops" in line
    assert "a model is missing" in line and line.count("\n") == 1


@pytest.mark.parametrize("name", ["model-member-0.skops", "model-member-3.json", "model.json"])
@pytest.mark.parametrize("share", [0, 0.3, 0.99])
def test_a_file_that_was_cut_off_is_said(ensemble, name, share):
    content = entries()[name]
    change_entries({name: content[: int(len(content) * share)]})
    line = refused("predict", "run", "test.csv", status=1)
    assert f"run/search.moew/{name} is damaged" in line and line.count("\n") == 1


def damaged_records(record):
    for entry in record:
        for odd in (None, "odd", [[1]], [], {}, -1, 3, 1e9, [1, 2, 3, "4"], [1, 2, 3, 0], [1, 2, 3, None]):
            yield {**record, entry: odd}
        without = deepcopy(record)
        del without[entry]
        yield without
    yield {**record, "votes": record["votes"][1:]}
    yield {**record, "votes": [*record["votes"], 1.0]}
    yield {**record, "version": 99}
    yield {**record, "kind": "os:system"}
    yield from ([], 3, None, "text", {})


def test_a_damaged_record_is_said_whatever_was_done_to_it(ensemble):
    record = json.loads(entries()["model.json"])
    for odd in damaged_records(record):
        change_entries({"model.json": json.dumps(odd)})
        line = refused("predict", "run", "test.csv", status=1)
        assert "run/search.moew" in line and line.count("\n") == 1, odd
    change_entries({"model.json": json.dumps({**record, "version": 99})})
    assert "saved by a newer moew" in refused("predict", "run", "test.csv", status=1)


def test_members_of_another_problem_are_said(ensemble):
    train = pd.read_csv("train.csv")
    X = train[["a", "b"]]
    other = built_in_model("logistic", X, "classification").fit(X, train["y"] == "yes")
    change_entries(pack_model(other, X, "model-member-0"))
    line = refused("predict", "run", "test.csv", status=1)
    assert "model.json cannot be used" in line and "[False, True]" in line and "['no', 'yes']" in line
    change_entries(
        pack_model(built_in_model("ridge", X, "regression").fit(X, train["a"]), X, "model-member-0")
    )
    assert "model 0 is a regressor" in refused("predict", "run", "test.csv", status=1)


def test_the_first_of_several_damages_is_said(ensemble):
    sound = entries()["model-member-0.skops"]
    odd = {"model-member-1.skops": "odd", "model-member-2.skops": None, "model-member-3.json": "{"}
    change_entries(odd)
    assert "model-member-1.skops is damaged" in refused("predict", "run", "test.csv", status=1)
    change_entries({"model-member-1.skops": sound})
    assert "model-member-2.skops" in refused("predict", "run", "test.csv", status=1)
    change_entries({"model-member-2.skops": sound})
    assert "model-member-3.json is damaged" in refused("predict", "run", "test.csv", status=1)
    change_entries({"model.json": "{"})
    assert "model.json is damaged" in refused("predict", "run", "test.csv", status=1)


def test_a_member_cannot_name_another_file(ensemble):
    record = json.loads(entries()["model.json"])
    change_entries({"model.json": json.dumps({**record, "members": ["../secret", "b", "c", "d"]})})
    refused("predict", "run", "test.csv", status=1)
    evil = json.dumps({"kind": "evil:Model", "version": 1})
    change_entries({"model.json": json.dumps(record), "model-member-3.json": evil})
    assert "model-member-3.json" in refused("predict", "run", "test.csv", status=1)
