"""`moew fit` with several metrics, bounds and calibrated probabilities."""

import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tables import WITHOUT_FOLDS, change_entries, entries, in_json, moew, refused, write_classes, write_module

from moew.cli.runs import load_run

DATA = ("train.csv", "--validation", "valid.csv", "--label", "y", "--id", "id")
LOGISTIC = (*DATA, "--metric", "accuracy", "--model", "logistic", "--drop", "amount", *WITHOUT_FOLDS)


@pytest.fixture(autouse=True)
def folder(own_folder):
    write_classes(own_folder)
    return own_folder


def test_other_metrics_and_a_bound_are_shown_and_kept():
    others = ("--also", "worst_class_error", "--also", "precision_at_recall=0.5", "--positive", "yes")
    shown = moew("fit", *LOGISTIC, *others, "--constraint", "worst_class_error <= 0.8").stdout
    assert "worst_class_error of the selected model: " in shown
    assert "worst_class_error <= 0.8: kept; worst_class_error with its margin is " in shown
    found = json.loads(Path("run/result.json").read_text())["metrics"]
    assert list(found["selected"]) == ["accuracy", "worst_class_error", "precision_at_recall=0.5"]
    assert found["constraints"][0]["keeps"] is True
    assert found["selected"]["worst_class_error"] < found["constraints"][0]["limit"] <= 0.8
    assert found["front"]
    decided = pd.read_csv(io.StringIO(moew("predict", "run", "test.csv").stdout))["prediction"]
    truth = pd.read_csv("test.csv")["y"]
    assert np.mean(decided[truth == "yes"] == "yes") > 0.2
    assert '"worst_class_error <= 0.8"' in Path("run/settings.toml").read_text()
    assert "All metrics" in Path("run/report.html").read_text()


def test_a_metric_of_the_users_can_be_another():
    write_module(
        Path(), "mine", "def share(y_true, decision):\n    return float((decision == 'yes').mean())\n"
    )
    found = in_json("fit", *LOGISTIC, "--also", "mine:share", "--constraint", "mine:share <= 0.99")
    assert list(found["metrics"]["selected"]) == ["accuracy", "mine:share"]


def test_calibrated_probabilities_are_printed():
    moew("fit", *LOGISTIC, "--set", "calibrate=sigmoid", "--strategies", "example weights")
    run = load_run(Path("run"))
    rows = run.rows_to_predict(Path("test.csv"))
    printed = pd.read_csv(io.StringIO(moew("predict", "run", "test.csv").stdout))
    model = run.fitted.winner.model
    wanted = run.fitted.winner.calibration.probabilities(model.decision_function(rows.X))
    assert printed["probability_yes"].to_numpy() == pytest.approx(wanted[:, 1])
    assert not np.allclose(wanted, model.predict_proba(rows.X), atol=1e-3)
    plain = pd.read_csv(io.StringIO(moew("predict", "run", "test.csv", "--unweighted").stdout))
    own = run.fitted.unweighted.model.predict_proba(rows.X)
    assert plain["probability_yes"].to_numpy() == pytest.approx(own[:, 1])


def test_damaged_curves_are_refused():
    moew("fit", *LOGISTIC, "--set", "calibrate=isotonic")
    content = json.loads(entries()["search.json"])
    content["calibration"]["curves"] = []
    change_entries({"search.json": json.dumps(content)})
    assert "no curve" in refused("predict", "run", "test.csv", status=1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--constraint", "recall >= 0.2"), "the metrics are 'accuracy'; name it in --also"),
        (("--constraint", "accuracy > 0.2"), "--constraint must be a text such as"),
        (("--also", "accuracy"), "--also accuracy is named twice"),
        (("--also", "no_such_metric"), "no_such_metric"),
        (("--set", "calibrate=platt"), "--set calibrate must be 'sigmoid', 'isotonic' or None"),
    ],
    ids=str,
)
def test_what_cannot_work_is_said_in_options(options, words):
    assert words in refused("fit", *LOGISTIC, *options)
