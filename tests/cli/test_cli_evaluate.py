"""`moew evaluate`: the models of a run on labelled rows, with intervals."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import balanced_accuracy_score, mean_absolute_error
from tables import (
    QUICK,
    WITHOUT_FOLDS,
    change_entries,
    entries,
    in_json,
    moew,
    refused,
    write_classes,
    write_module,
    write_numbers,
)

from moew.cli.runs import load_run
from moew.search._strategies import CONSTANT, TUNED, UNWEIGHTED

DATA = ("train.csv", "--validation", "valid.csv", "--label", "y", "--id", "id")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with the files and a run whose test rows were evaluated when it was made."""
    folder = tmp_path_factory.mktemp("evaluate")
    write_classes(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        model = ("--model", "logistic", "--drop", "amount", "--strategies", "example weights")
        moew("fit", *DATA, "--metric", "balanced_accuracy", *model, *WITHOUT_FOLDS, "--test", "test.csv")
        (folder / "train.csv").unlink()  # a run must not need it any more
    return folder


@pytest.fixture(autouse=True)
def there(own_folder, home):
    shutil.copytree(home, own_folder, dirs_exist_ok=True)
    return own_folder


def by_strategy(record):
    return {one["strategy"]: one for one in record["models"]}


def test_values_are_the_metrics_of_the_predictions_and_gains_those_of_the_run(home):
    record = in_json("evaluate", "run", "test.csv")
    result = json.loads(Path("run/result.json").read_text())
    models, y = by_strategy(record), pd.read_csv("test.csv")["y"]
    assert {UNWEIGHTED, TUNED, CONSTANT, result["selected"]} == set(models)
    assert [strategy for strategy, one in models.items() if one["selected"]] == [result["selected"]]
    for strategy, options in ((result["selected"], ()), (UNWEIGHTED, ("--unweighted",))):
        moew("predict", "run", "test.csv", *options, "--out", "p.csv")
        oracle = balanced_accuracy_score(y, pd.read_csv("p.csv")["prediction"])
        assert models[strategy]["value"] == pytest.approx(oracle)
    tuned = load_run(Path("run")).models_by_strategy()[TUNED]
    decided = tuned.decide(pd.read_csv("test.csv")[["a", "b"]], {})
    assert models[TUNED]["value"] == pytest.approx(balanced_accuracy_score(y, decided))
    assert models[CONSTANT]["value"] == 0.5 and models[CONSTANT]["interval"] == [0.5, 0.5]
    assert models[UNWEIGHTED]["gain"] is None
    tested = result["tested"]
    assert models[UNWEIGHTED]["value"] == tested["unweighted"]
    assert models[result["selected"]]["value"] == tested["moew"]
    for one in models.values():
        low, high = one["interval"]
        assert 0 <= low <= one["value"] <= high <= 1
        if one["gain"] is not None:
            assert one["gain"] == pytest.approx(one["value"] - models[UNWEIGHTED]["value"])
            assert one["gain_interval"][0] <= one["gain"] <= one["gain_interval"][1]


def test_the_interval_of_a_mean_is_the_known_one(there):
    test = pd.read_csv("test.csv")
    settings = Path("run/settings.toml")
    settings.write_text(settings.read_text().replace("balanced_accuracy", "accuracy"))
    record = by_strategy(in_json("evaluate", "run", "test.csv"))
    for one in record.values():
        low, high = one["interval"]
        share = one["value"]
        expected = 1.96 * np.sqrt(share * (1 - share) / len(test))
        assert (high - low) / 2 == pytest.approx(expected, rel=0.25)


def test_what_is_shown_written_and_warned_of(there):
    done = moew("evaluate", "run", "test.csv", "--out", "scores.csv")
    first, *_ = done.stdout.splitlines()
    assert first == f"balanced_accuracy on {len(pd.read_csv('test.csv'))} rows of test.csv (higher is better)"
    assert "(selected)" in done.stdout and "above 0 is better" in done.stdout
    assert "warning" not in done.stderr
    written = pd.read_csv("scores.csv")
    record = by_strategy(in_json("evaluate", "run", "test.csv"))
    assert written["strategy"].tolist() == list(record)
    np.testing.assert_allclose(written["gain_low"][0], record[written["strategy"][0]]["gain_interval"][0])
    assert "the rows that the choice was made on" in moew("evaluate", "run", "valid.csv").stderr
    pd.read_csv("test.csv").drop(columns="y").to_csv("unlabelled.csv", index=False)
    assert "no column 'y'" in refused("evaluate", "run", "unlabelled.csv")
    assert "the file that is read" in refused("evaluate", "run", "test.csv", "--out", "test.csv")


def test_rows_that_cannot_be_evaluated_end_in_a_line(there):
    test = pd.read_csv("test.csv")
    test[:1].to_csv("one.csv", index=False)
    assert "at least 2 samples" in refused("evaluate", "run", "one.csv")
    settings = Path("run/settings.toml")
    settings.write_text(settings.read_text().replace("balanced_accuracy", "roc_auc"))
    test[test["y"] == "no"].to_csv("no.csv", index=False)
    assert "fails on these rows" in refused("evaluate", "run", "no.csv", status=1)


def test_groups_stay_whole(there):
    write_classes(there)
    for name in ("train", "valid", "test"):
        frame = pd.read_csv(f"{name}.csv")
        frame = pd.concat([frame] * 4).assign(q=np.tile(np.arange(len(frame)), 4))  # each row four times
        frame.to_csv(f"{name}.csv", index=False)
    common = (*DATA, "--metric", "accuracy", "--model", "logistic", "--drop", "amount", *WITHOUT_FOLDS)
    moew("fit", *common, "--groups", "q", "--out", "whole")
    together = in_json("evaluate", "whole", "test.csv")
    n = len(pd.read_csv("test.csv"))
    assert (together["rows"], together["groups"]) == (n, n // 4)
    assert f"{n // 4} groups that stay whole" in moew("evaluate", "whole", "test.csv").stdout
    for one in together["models"]:
        share = one["value"]
        half = (one["interval"][1] - one["interval"][0]) / 2
        assert half == pytest.approx(1.96 * np.sqrt(share * (1 - share) / (n / 4)), rel=0.25)


def test_a_metric_that_is_code_is_run_with_trust_alone(there):
    write_classes(there)
    write_module(there, "mine", "def gain(y, decision): return float((y == decision).mean())\n")
    moew("fit", *DATA, "--metric", "mine:gain", "--model", "logistic", *WITHOUT_FOLDS, "--out", "own")
    assert "run only with --trust" in refused("evaluate", "own", "test.csv")
    record = in_json("evaluate", "own", "test.csv", "--trust")
    assert record["metric"] == "gain"
    settings = Path("run/settings.toml")
    text = settings.read_text().replace(
        'metric = "balanced_accuracy"', 'metric-command = "./score {predictions}"'
    )
    settings.write_text(text)
    assert "is code, './score {predictions}'" in refused("evaluate", "run", "test.csv")


def test_numbers(there):
    write_numbers(there)
    shutil.rmtree("run")
    moew(
        "fit",
        "numbers.csv",
        "--label",
        "y",
        "--metric",
        "neg_mean_absolute_error",
        "--model",
        "ridge",
        *QUICK,
    )
    record = by_strategy(in_json("evaluate", "run", "numbers.csv"))
    moew("predict", "run", "numbers.csv", "--unweighted", "--out", "p.csv")
    oracle = mean_absolute_error(pd.read_csv("numbers.csv")["y"], pd.read_csv("p.csv")["prediction"])
    assert record[UNWEIGHTED]["value"] == pytest.approx(-oracle)


def test_a_run_without_simple_strategies_has_two_models(there):
    whole = json.loads(entries()["search.json"])
    change_entries({"search.json": json.dumps({**whole, "tuned_decision": None, "constant": None})})
    assert set(by_strategy(in_json("evaluate", "run", "test.csv"))) == {
        UNWEIGHTED,
        whole["result"]["selected"],
    }
    change_entries({"search.json": json.dumps({**whole, "constant": "maybe"})})
    assert "its constant 'maybe' is no answer" in refused("evaluate", "run", "test.csv", status=1)
