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
from tables import WITHOUT_FOLDS, contents, moew, refused, write_classes, write_numbers

from moew.cli.runs import RunFolder, built_in_model, load_run
from moew.models import ModelEnsemble
from moew.saving._model_files import UNWEIGHTED, load_model, model_files, needs_trust, save_model

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
RECORD = Path("run/model.json")


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
        assert save_model(ensemble, Path("run"), train[["a", "b"]]) == "model.json"
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
    assert model_files(Path("run")) == [
        "model-member-0.skops",
        "model-member-1.skops",
        "model-member-2.skops",
        "model-member-3.json",
        "model.json",
        "unweighted.skops",
    ]
    assert json.loads(RECORD.read_text()) == {
        "kind": "moew.models:ModelEnsemble",
        "version": 1,
        "members": 4,
        "votes": VOTES,
    }
    assert not needs_trust(Path("run"))


def test_it_is_loaded_with_its_bits_and_predicts(ensemble):
    test = pd.read_csv("test.csv")
    again = load_run(Path("run")).model()
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
    save_model(ensemble, own_folder, train[["a", "b"]])
    again = load_model(own_folder)
    np.testing.assert_array_equal(again.predict(train[["a", "b"]]), ensemble.predict(train[["a", "b"]]))


def test_an_ensemble_may_be_a_member(ensemble):
    train = pd.read_csv("train.csv")
    X = train[["a", "b"]]
    nested = ModelEnsemble([ensemble, an_ensemble(train, ("logistic", "network"))], [1, 2])
    save_model(nested, Path("run"), X)
    assert "model-member-1-member-1.json" in model_files(Path("run"))
    np.testing.assert_array_equal(load_model(Path("run")).predict_proba(X), nested.predict_proba(X))


def test_a_model_that_replaces_an_ensemble_leaves_none_of_its_files(ensemble):
    X = pd.read_csv("train.csv")[["a", "b"]]
    Path("run/model-notes.json").write_text("of the user")
    save_model(ensemble, Path("run"), X, UNWEIGHTED)
    save_model(ensemble.models_[0], Path("run"), X)
    files = model_files(Path("run"))
    assert [name for name in files if name.startswith("model")] == ["model.skops"]
    assert "unweighted-member-2.skops" in files and Path("run/model-notes.json").exists()
    save_model(ensemble.models_[0], Path("run"), X, UNWEIGHTED)
    assert model_files(Path("run")) == ["model.skops", "unweighted.skops"]


def test_a_run_of_an_ensemble_stays_as_it_is_while_it_is_replaced(ensemble):
    before = contents("run")
    run = RunFolder(Path("run"))
    assert (
        set(run.files()) == {entry.name for entry in Path("run").iterdir()}
        and run.files()[-1] == "settings.toml"
    )
    run.begin("", force=True)
    assert {entry.name for entry in Path("run.moew-new").iterdir()} == {"settings.toml"}
    run.take_back()
    assert not Path("run.moew-new").exists()
    assert contents("run") == before


def test_a_member_that_is_code_needs_trust(ensemble):
    Path("run/model-member-1.skops").unlink()
    Path("run/model-member-1.pickle").write_bytes(pickle.dumps(Payload()))
    assert needs_trust(Path("run"))
    line = refused("predict", "run", "test.csv")
    assert "run/model-member-1.pickle is a pickle" in line and "--trust" in line
    assert not Path("executed").exists()
    Path("run/model-member-1.pickle").write_bytes(pickle.dumps(ensemble.models_[1]))
    expected = moew("predict", "run", "test.csv", "--trust").stdout
    assert expected.startswith("row,prediction,probability_no")


@pytest.mark.parametrize("k", range(4))
def test_a_missing_member_is_said(ensemble, k):
    for path in Path("run").glob(f"model-member-{k}.*"):
        path.unlink()
    line = refused("predict", "run", "test.csv")
    assert f"run holds none of model-member-{k}.json, model-member-{k}.skops" in line
    assert "a member of its ensemble of models is missing" in line and line.count("\n") == 1


@pytest.mark.parametrize("name", ["model-member-0.skops", "model-member-3.json", "model.json"])
@pytest.mark.parametrize("share", [0, 0.3, 0.99])
def test_a_file_that_was_cut_off_is_said(ensemble, name, share):
    path = Path("run", name)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    line = refused("predict", "run", "test.csv", status=1)
    assert f"{path} is damaged" in line and line.count("\n") == 1


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
    record = json.loads(RECORD.read_text())
    for odd in damaged_records(record):
        RECORD.write_text(json.dumps(odd))
        line = refused("predict", "run", "test.csv", status=1)
        assert "run/model.json" in line and line.count("\n") == 1, odd
    RECORD.write_text(json.dumps({**record, "version": 99}))
    assert "saved by a newer moew" in refused("predict", "run", "test.csv", status=1)


def test_members_of_another_problem_are_said(ensemble):
    train = pd.read_csv("train.csv")
    other = built_in_model("logistic", train[["a", "b"]], "classification")
    save_model(
        other.fit(train[["a", "b"]], train["y"] == "yes"), Path("run"), train[["a", "b"]], "model-member-0"
    )
    line = refused("predict", "run", "test.csv", status=1)
    assert "model.json cannot be used" in line and "[False, True]" in line and "['no', 'yes']" in line
    other = built_in_model("ridge", train[["a", "b"]], "regression")
    save_model(other.fit(train[["a", "b"]], train["a"]), Path("run"), train[["a", "b"]], "model-member-0")
    assert "model 0 is a regressor" in refused("predict", "run", "test.csv", status=1)


def test_the_first_of_several_damages_is_said(ensemble):
    Path("run/model-member-1.skops").write_bytes(b"odd")
    Path("run/model-member-2.skops").unlink()
    Path("run/model-member-3.json").write_text("{")
    assert "run/model-member-1.skops is damaged" in refused("predict", "run", "test.csv", status=1)
    Path("run/model-member-1.skops").write_bytes(Path("run/model-member-0.skops").read_bytes())
    assert "model-member-2.skops" in refused("predict", "run", "test.csv")
    Path("run/model-member-2.skops").write_bytes(Path("run/model-member-0.skops").read_bytes())
    assert "run/model-member-3.json is damaged" in refused("predict", "run", "test.csv", status=1)
    RECORD.write_text("{")
    assert "run/model.json is damaged" in refused("predict", "run", "test.csv", status=1)


def test_a_member_cannot_name_another_file(ensemble):
    record = json.loads(RECORD.read_text())
    RECORD.write_text(json.dumps({**record, "members": ["../secret", "b", "c", "d"]}))
    refused("predict", "run", "test.csv", status=1)
    Path("run/model-member-3.json").write_text(json.dumps({"kind": "evil:Model", "version": 1}))
    RECORD.write_text(json.dumps(record))
    assert "run/model-member-3.json" in refused("predict", "run", "test.csv", status=1)
