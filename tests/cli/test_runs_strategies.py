"""Whatever strategy is selected, its run folder predicts and weighs as the search did, without trust."""

import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tables import change_entries, entries, in_json, moew, refused, write_classes, write_numbers

from moew import search as library
from moew._util.state import load_state
from moew.cli.runs import load_run
from moew.decision import AdjustedPredictions, ClassOffsets, GroupThresholds, TunedThreshold
from moew.models import ModelEnsemble
from moew.search import _honest_score as selection
from moew.weighting import AveragedWeights, PowerWeights

SMALL = ("--candidates", "10", "--set", "batch_size=10", "--out", "run")
CLASSES = ("train.csv", "--validation", "valid.csv", "--label", "y", "--features", "a,b", *SMALL)
BINARY = (*CLASSES, "--metric", "balanced_accuracy", "--model", "logistic")
NUMBERS = (
    "numbers.csv",
    "--label",
    "y",
    "--metric",
    "neg_mean_absolute_percentage_error",
    "--model",
    "ridge",
    *SMALL,
)


@pytest.fixture
def selected(own_folder, monkeypatch):
    """Run `moew fit` with a strategy that is selected whatever the scores say; gives the finished search."""
    write_classes(own_folder)
    write_numbers(own_folder)
    found = []
    search, decide = library.run_search, selection.decide

    def run(strategy, *arguments):
        def choose(scores, selects):
            (chosen,) = (score for score in scores if score.variant.name == strategy)
            return replace(decide(scores, selects), selected=chosen)

        monkeypatch.setattr(selection, "decide", choose)
        monkeypatch.setattr(library, "run_search", lambda job: found.append(search(job)) or found[-1])
        result = in_json("fit", *arguments)
        assert result["selected"] == strategy and result["model"]["needs_trust"] is False
        assert [entry["name"] for entry in result["strategies"] if entry["selected"]] == [strategy]
        return found[-1]

    return run


def check_folder(fitted, table, columns=None):
    """Predictions and weights from the folder are those of the search."""
    frame = pd.read_csv(table)
    run = load_run(Path("run"))
    rows = run.schema.read(Path(table))
    of_rule = {} if columns is None else {name: frame[name].to_numpy() for name in columns}
    predicted = in_json("predict", "run", table)["predictions"]["prediction"]
    assert predicted == fitted.winner.decide(rows.X, of_rule).tolist()
    in_json("predict", "run", table, "--unweighted")
    weights = in_json("weights", "run", table)["weights"]["weight"]
    np.testing.assert_allclose(weights, fitted.weight_function(rows.X, rows.y, rows.columns), rtol=1e-12)
    again = load_state(json.loads(json.dumps(fitted.weight_function.state())))
    np.testing.assert_array_equal(
        again(rows.X, rows.y, rows.columns), fitted.weight_function(rows.X, rows.y, rows.columns)
    )
    assert "report.html" in moew("report", "run").stdout


BINARY_WAYS = (
    "constant prediction",
    "tuned decisions",
    "importance weights",
    "class weights, tuned",
    "example weights, tuned",
    pytest.param("unweighted", marks=pytest.mark.heavy),
    pytest.param("class weights", marks=pytest.mark.heavy),
    pytest.param("example weights", marks=pytest.mark.heavy),
)


@pytest.mark.parametrize("strategy", BINARY_WAYS)
def test_every_strategy_of_two_classes(selected, strategy):
    fitted = selected(strategy, *BINARY)
    tuned = strategy.endswith(", tuned") or strategy == "tuned decisions"
    assert isinstance(fitted.winner.rule, TunedThreshold) is tuned
    if strategy.startswith("example weights"):
        assert isinstance(fitted.winner.model, ModelEnsemble)
        assert isinstance(fitted.weight_function, AveragedWeights)
    if strategy in ("unweighted", "constant prediction", "tuned decisions"):
        assert (fitted.weights == 1).all()
    check_folder(fitted, "test.csv")


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("model", "strategy"),
    [
        ("logistic", "class weights, tuned"),
        ("random_forest", "example weights, tuned"),
        pytest.param("logistic", "tuned decisions", marks=pytest.mark.heavy),
        pytest.param("logistic", "constant prediction", marks=pytest.mark.heavy),
        pytest.param("logistic", "example weights, tuned", marks=pytest.mark.heavy),
        pytest.param("random_forest", "tuned decisions", marks=pytest.mark.heavy),
        pytest.param("random_forest", "constant prediction", marks=pytest.mark.heavy),
        pytest.param("random_forest", "class weights, tuned", marks=pytest.mark.heavy),
    ],
)
def test_strategies_of_three_classes(selected, own_folder, strategy, model):
    write_classes(own_folder, 3)
    few = ("--model-option", "n_estimators=5") if model == "random_forest" else ()
    fitted = selected(strategy, *CLASSES, "--metric", "balanced_accuracy", "--model", model, *few)
    assert isinstance(fitted.winner.rule, ClassOffsets) is (strategy != "constant prediction")
    check_folder(fitted, "test.csv")


@pytest.mark.heavy
@pytest.mark.parametrize(
    "strategy",
    [
        "tuned decisions",
        "powers of the target, tuned",
        "example weights",
        pytest.param("constant prediction", marks=pytest.mark.heavy),
        pytest.param("powers of the target", marks=pytest.mark.heavy),
        pytest.param("example weights, tuned", marks=pytest.mark.heavy),
    ],
)
def test_strategies_of_regression(selected, strategy):
    fitted = selected(strategy, *NUMBERS)
    tuned = strategy.endswith(", tuned") or strategy == "tuned decisions"
    assert isinstance(fitted.winner.rule, AdjustedPredictions) is tuned
    if strategy.startswith("powers"):
        assert isinstance(fitted.weight_function, PowerWeights)
    check_folder(fitted, "numbers.csv")


@pytest.mark.heavy
def test_thresholds_by_group(selected):
    for name in ("train", "valid", "test"):
        frame = pd.read_csv(f"{name}.csv")
        frame["group"] = np.where(frame["b"] > 0, "north", "south")
        frame.to_csv(f"{name}.csv", index=False)
    grouped = [word if word != "a,b" else "a,b,group" for word in CLASSES]
    metric = ("--metric", "fpr_gap", "--metric-column", "group", "--model", "logistic")
    fitted = selected("unweighted", *grouped, *metric, "--decision", "tuned=group")
    assert isinstance(fitted.winner.rule, GroupThresholds)
    check_folder(fitted, "test.csv", ["group"])
    pd.read_csv("test.csv").drop(columns="group").to_csv("less.csv", index=False)
    assert "less.csv has no column 'group'" in refused("predict", "run", "less.csv")


@pytest.mark.parametrize("final", ["smoothed", "best"])
def test_one_model_of_example_weights(selected, final):
    fitted = selected("example weights", *BINARY, "--set", f"final={final}")
    assert not isinstance(fitted.winner.model, ModelEnsemble)
    check_folder(fitted, "test.csv")


@pytest.mark.heavy
def test_damaged_averages_are_said(selected):
    selected("example weights", *BINARY)
    whole = json.loads(entries()["search.json"])
    for entry, odd in product(("functions", "votes"), (None, "odd", 3, [], [None], [[1]], {})):
        function = {**whole["weight_function"], entry: odd}
        change_entries({"search.json": json.dumps({**whole, "weight_function": function})})
        line = refused("weights", "run", "test.csv", status=1)
        assert "run/search.moew" in line and line.count("\n") == 1, (entry, odd)


def test_a_report_of_an_older_run_is_refused_and_its_model_is_not(selected):
    selected("unweighted", *BINARY)
    path = Path("run/report.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 2}))
    line = refused("report", "run", status=1)
    assert "of format 5; got 2" in line and line.count("\n") == 1
    moew("predict", "run", "test.csv")
