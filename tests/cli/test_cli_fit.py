"""`moew fit`, `predict`, `weights`, `compare` and `report`: what goes in and what comes out."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import tomllib
from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from tables import (
    PAPER,
    QUICK,
    WITHOUT_FOLDS,
    change_entries,
    contents,
    entries,
    fit_once,
    in_json,
    moew,
    refused,
    write_classes,
    write_mixed,
    write_module,
    write_numbers,
)

from moew import MetricSearch, NetworkClassifier, load
from moew.cli.runs import load_run
from moew.decision import RecallReached, Tuned
from moew.embedding import AutoencoderEmbedding
from moew.metrics import worst_class_error
from moew.samplers import GpBucb

DATA = ("train.csv", "--validation", "valid.csv", "--label", "y", "--id", "id")
LOGISTIC = (*DATA, "--metric", "worst_class_error", "--model", "logistic", "--drop", "amount")
STUDIES = (
    "moew",
    "moew: class weights",
    "moew: unweighted",
    *(f"moew: importance weights by {what}" for what in ("label", "features", "both")),
)  # in the journal
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}


@pytest.fixture(autouse=True)
def folder(own_folder):
    write_classes(own_folder)
    return own_folder


def python_search(model, **settings):
    settings = {"embedding": "label", "n_candidates": 3, "batch_size": 3, "random_state": 0} | settings
    search = MetricSearch.from_settings(model, metric=worst_class_error(), **settings)
    train, valid = pd.read_csv("train.csv"), pd.read_csv("valid.csv")
    return search.fit(train[["a", "b"]], train["y"], validation=(valid[["a", "b"]], valid["y"]))


def report_data():
    return json.loads(Path("run/report.json").read_text())


def test_a_run_holds_what_it_promises():
    shown = moew("fit", *LOGISTIC, *QUICK).stdout
    result = json.loads(Path("run/result.json").read_text())
    rows = f"126 validation rows and {result['rows']['out of fold']} training rows out of fold"
    assert f"worst class error on {rows} (lower is better)" in shown
    for strategy in result["strategies"]:
        (line,) = (line for line in shown.splitlines() if line.startswith(f"{strategy['name']} "))
        assert ("selected" in line) is strategy["selected"] is (strategy["name"] == result["selected"])
    assert f"{result['candidates']} candidates trained (0 failed). Selected: {result['selected']}" in shown
    assert f"{result['selected']}, {result['reason']}." in shown
    assert "instead of" in shown or "keep the unweighted model" in shown  # the verdict in words
    names = {entry.name for entry in Path("run").iterdir()}
    assert names >= {"search.moew", "weights.parquet", "study.db", "report.html", "report.json"}
    assert names >= {"settings.toml", "result.json"}
    weights = pd.read_parquet("run/weights.parquet")
    assert list(weights.columns) == ["id", "weight"]
    assert weights["id"].tolist() == pd.read_csv("train.csv")["id"].tolist()
    assert weights["weight"].mean() == pytest.approx(1)
    with closing(sqlite3.connect("run/study.db")) as database:
        studies = dict(database.execute("SELECT name, n_candidates FROM moew_studies"))
    assert sorted(STUDIES) == sorted(studies) and sum(studies.values()) == result["candidates"]
    assert ["model", "logistic"] in report_data()["settings"]
    page = Path("run/report.html").read_text()
    Path("run/report.html").unlink()
    assert "report.html" in moew("report", "run").stdout
    assert Path("run/report.html").read_text() == page and "worst class error" in page
    Path("run/report.json").unlink()
    assert "holds no report.json" in refused("report", "run")
    moew("fit", *LOGISTIC, *QUICK, "--strategies", "example weights", "--force")
    assert {row["column"] for row in report_data()["slices"]} >= {"amount"}


def test_options_of_the_search_arrive(monkeypatch):
    seen = []

    def stop(prepared):
        seen.append(prepared.settings)
        raise OSError("far enough")

    monkeypatch.setattr("moew.search.run_search", stop)

    def settings(*options):
        refused("fit", "train.csv", "--label", "y", "--metric", "accuracy", *options, "--force", status=1)
        return seen[-1]

    plain = settings()
    own = MetricSearch(LogisticRegression()).settings
    for name in ("evaluate_on", "final", "strategies", "honest", "embedding", "n_candidates", "batch_size"):
        assert getattr(plain, name) == getattr(own, name)
    asked = settings(
        "--set",
        "evaluate_on=4",
        "--set",
        "final=smoothed",
        "--strategies",
        "example weights",
        "--decision",
        "tuned",
    )
    assert (asked.evaluate_on, asked.final, asked.decision) == (4, "smoothed", Tuned())
    assert asked.strategies == ("example weights",)
    assert settings("--candidates", "7").n_candidates == 7
    assert plain.n_jobs == "auto" and [settings("--jobs", n).n_jobs for n in (-1, 3)] == [-1, 3]
    assert plain.stop_when is None and settings("--set", "stop_when=0.002").stop_when == 0.002
    assert plain.sampler == own.sampler
    known = settings(
        "--set",
        "sampler.p=95",
        "--set",
        "sampler.q=0",
        "--set",
        "sampler.width=domain",
        "--set",
        "sampler.noise=0.01",
    )
    assert known.sampler == GpBucb(95, 0, width="domain", noise=0.01)
    known = settings(
        "--set", "sampler.width=2", "--set", "sampler.noise=repeats", "--set", "alpha_zero_repeats=2"
    )
    assert known.sampler == GpBucb(width=2.0, noise="repeats")
    embedding = settings(
        "--set", "embedding=autoencoder", "--set", "embedding.n_dims=3", "--set", "embedding.trade_off=0.2"
    ).embedding
    assert embedding.get_params() == AutoencoderEmbedding(3, trade_off=0.2).get_params()
    assert settings("--set", "evaluate_on=auto", "--set", "evaluate_on=0.3").evaluate_on == 0.3
    assert (
        settings("--validation", "valid.csv", "--set", "evaluate_on=validation").evaluate_on == "validation"
    )
    assert settings("--validation", "valid.csv", "--set", "evaluate_on=3").evaluate_on == 3
    Path("run.toml").write_text(
        'strategies = ["example weights"]\n[search]\nevaluate_on = 3\nfinal = "best"\nsampler.p = 50\n'
    )
    asked = settings("--config", "run.toml", "--set", "radius=2")
    assert (asked.evaluate_on, asked.final, asked.strategies) == (3, "best", ("example weights",))
    assert (asked.sampler, asked.radius) == (GpBucb(p=50), 2)
    asked = settings("--config", "run.toml", "--strategies", "auto", "--set", "evaluate_on=auto")
    assert (asked.evaluate_on, asked.strategies) == ("auto", "auto")


def test_the_papers_settings_are_one_option(monkeypatch):
    seen = []

    def stop(prepared):
        seen.append(prepared.settings)
        raise OSError("far enough")

    monkeypatch.setattr("moew.search.run_search", stop)

    def settings(*options):
        refused("fit", *LOGISTIC, "--out", "far", *options, "--force", status=1)
        return seen[-1]

    wanted = MetricSearch.as_in_the_paper(LogisticRegression()).settings
    found = settings("--as-in-the-paper")
    ours = ("estimator", "metric", "embedding", "storage", "sample_weight_name", "n_jobs", "verbose")
    for field in fields(wanted):
        if field.name not in (*ours, "random_state"):
            assert getattr(found, field.name) == getattr(wanted, field.name), field.name
    assert found.embedding.get_params() == wanted.embedding.get_params()
    other = settings(
        "--as-in-the-paper",
        "--set",
        "batch_size=5",
        "--set",
        "sampler.p=90",
        "--set",
        "embedding.n_dims=4",
        "--strategies",
        "auto",
    )
    assert (other.batch_size, other.n_candidates, other.strategies) == (5, 200, "auto")
    assert other.sampler == replace(wanted.sampler, p=90)
    assert other.embedding.get_params() == wanted.embedding.set_params(n_dims=4).get_params()
    label = settings("--as-in-the-paper", "--set", "embedding=label", "--set", "sampler=random")
    assert (label.embedding, label.sampler) == ("label", "random")
    Path("paper.toml").write_text("as-in-the-paper = true\ncandidates = 60\n")
    from_file = settings("--config", "paper.toml", "--set", "radius=2")
    found = (from_file.n_candidates, from_file.batch_size, from_file.radius, from_file.final)
    assert found == (60, 20, 2, "best")


def test_a_run_as_in_the_paper_that_stops_is_repeated_by_its_settings():
    quick = (
        "--set",
        "embedding=label",
        "--candidates",
        "9",
        "--set",
        "batch_size=3",
        "--set",
        "alpha_zero_repeats=2",
    )
    shown = moew("fit", *LOGISTIC, "--as-in-the-paper", *quick, "--set", "stop_when=5", "--out", "one").stdout
    first = json.loads(Path("one/result.json").read_text())
    assert first["selected"] == "example weights"
    assert first["stopped"]["n_candidates"] == 8 and first["stopped"]["n_trainings_saved"] == 3
    assert "stopped after 8 of 11 candidates" in shown
    assert "stopped after 8 of 11 candidates" in Path("one/report.html").read_text()
    again = in_json("fit", "--config", "one/settings.toml", "--out", "two")
    assert {name: again[name] for name in ("moew", "alpha", "stopped")} == {
        name: first[name] for name in ("moew", "alpha", "stopped")
    }


def test_the_search_of_a_run_is_loaded_in_python():
    fit_once("fit", *LOGISTIC, *WITHOUT_FOLDS, "--metric", "balanced_accuracy")
    search, test = load("run/search.moew"), pd.read_csv("test.csv")
    printed = in_json("predict", "run", "test.csv")["predictions"]["prediction"]
    assert search.predict(test[["a", "b"]]).tolist() == printed
    shown = in_json("evaluate", "run", "test.csv")["models"][0]["value"]
    assert search.metric_value(test[["a", "b"]], test["y"]) == pytest.approx(shown)


def test_the_unweighted_model_is_kept_too():
    moew(
        "fit",
        *LOGISTIC,
        *PAPER,
        "--set",
        "embedding=columns=a,b",
        "--candidates",
        10,
        "--decision",
        "recall=0.9",
    )
    train, test = pd.read_csv("train.csv"), pd.read_csv("test.csv")
    plain = clone(load_run(Path("run")).fitted.winner.model).fit(train[["a", "b"]], train["y"])
    shares = in_json("predict", "run", "test.csv", "--unweighted")["predictions"]
    np.testing.assert_allclose(
        shares["probability_yes"], plain.predict_proba(test[["a", "b"]])[:, 1], rtol=1e-6
    )
    rule = load_run(Path("run")).fitted.unweighted.rule
    decided = plain.decision_function(test[["a", "b"]]) >= rule.threshold_
    assert (np.asarray(shares["prediction"]) == np.where(decided, "yes", "no")).all()
    winner = in_json("predict", "run", "test.csv")["predictions"]
    assert winner["probability_yes"] != shares["probability_yes"]
    content = json.loads(entries()["search.json"])
    change_entries({"search.json": json.dumps({**content, "has_unweighted": False})})
    assert "holds no unweighted model" in refused("predict", "run", "test.csv", "--unweighted")


@pytest.mark.parametrize("model", ["logistic", "random_forest"])
def test_a_threshold_is_of_the_probability_for_every_model(model):
    few = ("--model-option", "n_estimators=10") if model == "random_forest" else ()
    moew("fit", *LOGISTIC, "--model", model, *few, *WITHOUT_FOLDS, "--decision", "threshold=0.8")
    decided = in_json("predict", "run", "test.csv")["predictions"]
    likely = np.asarray(decided["probability_yes"]) > 0.8
    assert (np.asarray(decided["prediction"]) == np.where(likely, "yes", "no")).all()
    assert 0 < likely.sum() < len(likely)


@pytest.mark.heavy
def test_notes_and_names_are_the_same_everywhere():
    recall = ("--metric", "recall", "--positive", "yes", "--model", "logistic")
    shown = moew("fit", *DATA, *QUICK, *recall, "--set", "honest=0.3").stdout
    found = json.loads(Path("run/result.json").read_text())
    assert found["metric"] == "recall of yes"
    assert (
        any("rows were set aside" in note for note in found["notes"])
        and found["notes"] == report_data()["notes"]
    )
    held = found["rows"]["set aside"]
    assert (
        f"\nOn {held} rows set aside: unweighted " in shown
        and f"Note: only {held} rows were set aside" in shown
    )
    advised = ("Keep the unweighted model", "Use it", "Before you switch", "Look at the metric")
    assert any(f"\n{words}" in shown for words in advised)


def test_another_metric_does_not_go_on_with_a_run():
    fit_once("fit", *LOGISTIC, *WITHOUT_FOLDS)
    line = refused("fit", *LOGISTIC, *WITHOUT_FOLDS, "--metric", "accuracy", "--resume")
    assert "the run was begun with other data, another model or metric" in line and "fingerprint" not in line


def test_test_rows_evaluate_the_delivered_and_the_unweighted_model():
    found = in_json("fit", *LOGISTIC, *QUICK, "--test", "test.csv")
    test = pd.read_csv("test.csv")
    predicted = in_json("predict", "run", "test.csv")["predictions"]["prediction"]
    assert found["tested"]["moew"] == worst_class_error()(test["y"], np.asarray(predicted))
    train = pd.read_csv("train.csv")
    plain = clone(load_run(Path("run")).fitted.winner.model).fit(train[["a", "b"]], train["y"])
    assert found["tested"]["unweighted"] == worst_class_error()(test["y"], plain.predict(test[["a", "b"]]))
    assert found["tested"]["n_rows"] == len(test)
    verdict = found["verdict"]
    assert verdict["evidence"] == "test" and verdict["before"] == found["tested"]["unweighted"]
    assert verdict["gain"] == pytest.approx(verdict["before"] - verdict["after"])
    assert verdict["high"] - verdict["gain"] == pytest.approx(1.96 * found["tested"]["gain_error"])
    shown = moew("fit", *LOGISTIC, *QUICK, "--test", "test.csv", "--force").stdout
    assert f"{len(test)} test rows" in shown and "that no choice was made on" in " ".join(shown.split())


def test_errors_by_class_of_a_rule_by_groups(folder):
    write_mixed(folder)
    data = ("mixed.csv", "--label", "y", "--metric", "accuracy", "--model", "logistic")
    held = ("--set", "evaluate_on=0.2")
    moew("fit", *data, *QUICK, *held, "--decision", "equal_fpr=0.4", "--metric-column", "group=group")
    labels = report_data()["labels"]
    assert labels["reason"] == "" and all(g["winner_error"] is not None for g in labels["groups"])


def test_predictions_and_weights_are_those_of_the_python_api():
    write_module(Path.cwd(), "mine", "from sklearn.linear_model import LogisticRegression as Model\n")
    fitted = python_search(LogisticRegression(), decision=RecallReached(0.9))
    moew("fit", *LOGISTIC, *QUICK, "--model", "mine:Model", "--decision", "recall=0.9")
    moew("predict", "run", "test.csv", "--out", "out/test.parquet")
    moew("weights", "run", "valid.csv", "--out", "valid.feather")
    test, valid = pd.read_csv("test.csv"), pd.read_csv("valid.csv")
    found = pd.read_parquet("out/test.parquet")
    assert found["id"].tolist() == test["id"].tolist()
    np.testing.assert_array_equal(found["prediction"], fitted.predict(test[["a", "b"]]))
    np.testing.assert_array_equal(
        found[["probability_no", "probability_yes"]], fitted.predict_proba(test[["a", "b"]])
    )
    np.testing.assert_array_equal(
        pd.read_feather("valid.feather")["weight"], fitted.example_weights(valid[["a", "b"]], valid["y"])
    )
    np.testing.assert_array_equal(pd.read_parquet("run/weights.parquet")["weight"], fitted.sample_weight_)
    result = json.loads(Path("run/result.json").read_text())
    assert result["moew"] == {"apparent": fitted.best_score_, "honest": fitted.honest_score_}


@pytest.mark.heavy
def test_a_network_is_that_of_the_python_api():
    fitted = python_search(NetworkClassifier(steps=30), evaluate_on="validation")
    found = in_json("fit", *LOGISTIC, *WITHOUT_FOLDS, "--model", "network", "--model-option", "steps=30")
    assert found["model"] == {"file": "search.moew", "needs_trust": False}
    test = pd.read_csv("test.csv")
    columns = in_json("predict", "run", "test.csv")["predictions"]
    np.testing.assert_array_equal(columns["prediction"], fitted.predict(test[["a", "b"]]))
    np.testing.assert_array_equal(columns["probability_yes"], fitted.predict_proba(test[["a", "b"]])[:, 1])


@pytest.mark.parametrize(
    "model", ["logistic", "hist_gradient_boosting", "random_forest", "lightgbm", "xgboost"]
)
def test_models_take_texts_and_gaps_and_are_loaded_without_trust(model, folder):
    write_mixed(folder)
    few = {"logistic": "max_iter=200", "hist_gradient_boosting": "max_iter=20"}.get(model, "n_estimators=20")
    options = ("mixed.csv", "--label", "y", "--metric", "roc_auc", "--model-option", few)
    found = in_json("fit", *options, "--model", model, *QUICK, "--set", "evaluate_on=0.2")
    assert found["model"] == {"file": "search.moew", "needs_trust": False}
    predicted = in_json("predict", "run", "more.csv")["predictions"]
    assert roc_auc_score(pd.read_csv("more.csv")["y"], predicted["probability_yes"]) > 0.65


def test_a_column_of_the_metric_feeds_the_embedding():
    quick = (
        "--candidates",
        "4",
        "--set",
        "batch_size=4",
        "--strategies",
        "example weights",
        "--set",
        "final=best",
    )
    columns = ("--metric-column", "cost=amount", "--set", "embedding=columns=a,cost")
    moew("fit", *LOGISTIC, *quick, *columns, "--out", "run")
    train = pd.read_csv("train.csv")
    weights = pd.DataFrame(in_json("weights", "run", "train.csv")["weights"])["weight"]
    assert weights.mean() == pytest.approx(1)
    other = train.assign(amount=train["amount"].to_numpy()[::-1])
    other.to_csv("other.csv", index=False)
    assert not np.allclose(weights, pd.DataFrame(in_json("weights", "run", "other.csv")["weights"])["weight"])
    said = refused("fit", *LOGISTIC, *columns[:3], "embedding=columns=price", "--out", "other")
    assert "no features are ['price']" in said and "'cost'" in said


@pytest.mark.parametrize("model", ["lightgbm", "xgboost"])
def test_models_stop_early(model, folder):
    write_mixed(folder)
    settings = ("--model-option", "n_estimators=100", "--model-option", "early_stopping_rounds=2")
    data = (
        "mixed.csv",
        "--label",
        "y",
        "--metric",
        "roc_auc",
        "--model",
        model,
        *settings,
        "--set",
        "eval_share=0.2",
    )
    moew(
        "fit",
        *data,
        *QUICK,
        "--strategies",
        "example weights",
        "--set",
        "final=best",
        "--set",
        "evaluate_on=0.2",
        "--out",
        "run",
    )
    trained = load_run(Path("run")).fitted.winner.model[-1]
    if model == "lightgbm":
        assert 1 <= trained.best_iteration_ < 100
    else:
        assert 0 <= trained.estimator_.best_iteration < 99
    said = refused("fit", *LOGISTIC, "--set", "eval_share=0.2", "--out", "other")
    assert "--set eval_share is for models whose fit takes rows to stop by" in said


def test_numbers_are_predicted_with_folds(folder):
    write_numbers(folder)
    data = ("numbers.csv", "--label", "y", "--set", "evaluate_on=3", "--metric", "r_squared")
    found = in_json("fit", *data, "--model", "ridge", *QUICK)
    assert found["task"] == "regression" and found["rows"] == {
        "training": 120,
        "validation": 0,
        "out of fold": 120,
        "set aside": 0,
    }
    printed = moew("predict", "run", "numbers.csv").stdout.splitlines()
    assert printed[0] == "row,prediction" and len(printed) == 121 and printed[1].startswith("0,")


def test_weights_of_the_users_own_multiply_the_learned_ones():
    train, valid = pd.read_csv("train.csv"), pd.read_csv("valid.csv")
    settings = {
        "embedding": "label",
        "n_candidates": 3,
        "batch_size": 3,
        "random_state": 0,
        "evaluate_on": "validation",
    }
    fitted = MetricSearch.from_settings(
        NetworkClassifier(steps=20), metric=worst_class_error(), **settings
    ).fit(train[["a", "b"]], train["y"], train["amount"], validation=(valid[["a", "b"]], valid["y"]))
    valid.drop(columns="amount").to_csv("valid.csv", index=False)
    network = ("--model", "network", "--model-option", "steps=20")
    done = moew(
        "fit", *LOGISTIC[:-2], *WITHOUT_FOLDS, *network, "--sample-weight", "amount", "--features", "a,b"
    )
    assert "the validation file has no column 'amount', so its rows count alike" in done.stderr
    np.testing.assert_array_equal(pd.read_parquet("run/weights.parquet")["weight"], fitted.sample_weight_)


def test_more_classes_have_a_probability_each(folder):
    write_classes(folder, 3)
    moew("fit", *LOGISTIC, *WITHOUT_FOLDS)
    header = moew("predict", "run", "test.csv").stdout.splitlines()[0]
    assert header == "id,prediction,probability_no,probability_perhaps,probability_yes"


def test_rules_by_group_get_their_column_in_prediction(folder):
    write_mixed(folder)
    data = ("mixed.csv", "--label", "y", "--metric", "accuracy", "--model", "logistic")
    moew("fit", *data, *QUICK, "--decision", "equal_fpr=0.4", "--metric-column", "group=group")
    assert "group" not in json.loads(entries()["search.json"])["features"]  # a column of the metric is none
    share = np.mean(np.asarray(in_json("predict", "run", "more.csv")["predictions"]["prediction"]) == "yes")
    assert 0.3 < share < 0.5
    pd.read_csv("more.csv").drop(columns="group").to_csv("less.csv", index=False)
    assert "less.csv has no column 'group'" in refused("predict", "run", "less.csv")


def test_the_comparison_needs_test_rows_and_is_recorded():
    line = refused("fit", *LOGISTIC, *QUICK, "--compare")
    assert "--test FILE" in line and not Path("run").exists()
    shown = moew("fit", *LOGISTIC, *QUICK, "--compare", "--repeats", 2, "--test", "test.csv").stdout
    words = ("unweighted", "random weights", "importance weights", "moew − unweighted on test")
    assert all(word in shown for word in words)
    recorded = json.loads(Path("run/result.json").read_text())["comparison"]
    alone = in_json("compare", "--config", "run/settings.toml")
    plain = {"unweighted", "tuned decisions", "importance weights", "class weights", "class weights, tuned"}
    plain.add("random weights")
    assert alone == recorded and set(alone["methods"]) == plain | {"moew"}
    assert report_data()["comparison"] == recorded and report_data()["verdict"]["evidence"] == "test"
    assert recorded["repeats"] == 2


def test_settings_reproduce_the_run_and_the_command_line_wins():
    first = in_json("fit", *LOGISTIC, *QUICK, "--seed", 5, "--out", "one", "--features", "a,b")
    again = in_json("fit", "--config", "one/settings.toml", "--out", "two")
    for found in (first, again):
        del found["run"]
    assert first == again
    assert Path("one/settings.toml").read_text() == Path("two/settings.toml").read_text()
    moew("fit", "--config", "one/settings.toml", "--out", "three", "--seed", 6, "--no-compare")
    settings = tomllib.loads(Path("three/settings.toml").read_text())
    assert settings["seed"] == 6 and settings["features"] == ["a,b"]


def test_wrong_usage_leaves_no_trace_and_an_old_run_as_it_was():
    other = pd.read_csv("valid.csv")
    other["y"] = other["y"].astype(str)
    other.loc[3, "y"] = "unheard-of"
    other.to_csv("other.csv", index=False)
    wrong = [word if word != "valid.csv" else "other.csv" for word in LOGISTIC]
    refused("fit", *wrong, *WITHOUT_FOLDS)
    assert not Path("run").exists()
    fit_once("fit", *LOGISTIC, *WITHOUT_FOLDS)
    before = contents("run")
    refused("fit", *wrong, *WITHOUT_FOLDS, "--force")
    assert contents("run") == before


def test_an_existing_folder_is_refused_and_replaced_only_by_force():
    Path("run").mkdir()
    moew("fit", *LOGISTIC, *WITHOUT_FOLDS)  # an empty folder is as good as none
    Path("run/notes.txt").write_text("mine")
    before = Path("run/result.json").read_text()
    line = refused("fit", *LOGISTIC, *WITHOUT_FOLDS, "--seed", 1)
    assert "--resume" in line and "--force" in line
    assert Path("run/result.json").read_text() == before
    moew("fit", *LOGISTIC, *WITHOUT_FOLDS, "--seed", 1, "--force")
    assert Path("run/result.json").read_text() != before
    assert Path("run/notes.txt").read_text() == "mine"
    assert "one of them" in refused("fit", *LOGISTIC, "--force", "--resume")
    assert "is a file" in refused("fit", *LOGISTIC, "--out", "train.csv")


def test_a_model_of_the_users_own_module_is_loaded_again_in_a_new_process(folder):
    text = "from sklearn.linear_model import LogisticRegression\nclass Mine(LogisticRegression): pass\n"
    write_module(folder, "own_model", text)
    moew("fit", *DATA, "--metric", "worst_class_error", "--model", "own_model:Mine", *WITHOUT_FOLDS)
    words = [sys.executable, "-P", "-m", "moew", "predict", "run", "valid.csv", "--trust"]
    done = subprocess.run(words, capture_output=True, text=True, env=ENVIRONMENT, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1 + len(pd.read_csv("valid.csv"))


INTERRUPTING = """
from pathlib import Path
from sklearn.linear_model import LogisticRegression

class Model(LogisticRegression):
    def fit(self, X, y, sample_weight=None):
        with Path("fits").open("a") as file:
            file.write("x")
        if Path("stop").exists() and Path("fits").stat().st_size == 3:
            raise KeyboardInterrupt
        return super().fit(X, y, sample_weight)
"""


def test_an_interrupted_run_goes_on(folder):
    write_module(folder, "interrupting", INTERRUPTING)
    arguments = ("fit", *LOGISTIC, *WITHOUT_FOLDS, "--model", "interrupting:Model")
    whole = in_json(*arguments, "--out", "whole")
    Path("fits").unlink()
    Path("stop").touch()
    assert "`moew resume run` goes on where it stopped" in refused(*arguments, status=130)
    assert {"study.db", "settings.toml"} == {entry.name for entry in Path("run").iterdir() if entry.is_file()}
    assert "`moew resume run` finishes it" in refused("predict", "run", "test.csv")
    Path("stop").unlink()
    Path("fits").unlink()
    settings = Path("run/settings.toml").read_text()
    assert "other settings" in refused(*arguments, "--seed", 1, "--resume")
    assert Path("run/settings.toml").read_text() == settings
    shutil.copytree("run", "by-name")
    train = Path("train.csv").read_text()
    Path("train.csv").write_text(train.replace("yes", "no", 1))
    changed = refused("resume", "run")
    assert "run cannot go on: train.csv or valid.csv, or code of yours" in changed
    Path("train.csv").write_text(train)
    resumed = in_json(*arguments, "--resume")
    by_name = in_json("resume", "by-name")
    assert {**by_name, "run": "run"} == resumed
    assert Path("by-name/settings.toml").read_text() == settings
    assert "the run in run is complete" in refused("resume", "run")
    for found in (whole, resumed):
        del found["run"]
    assert resumed == whole
    again = in_json(*arguments, "--resume")  # a finished run has nothing left to train but its winner
    assert again["moew"] == whole["moew"]
    Path("other").mkdir()
    Path("other/file").touch()
    assert "nothing to resume" in refused(*arguments, "--resume", "--out", "other")


def test_a_failed_run_ends_with_1_and_keeps_its_study(folder):
    text = "from sklearn.svm import LinearSVC\nclass Model(LinearSVC):\n"
    write_module(folder, "failing", text + "    def fit(self, X, y, sample_weight): 1 / 0\n")
    line = refused("fit", *LOGISTIC, *WITHOUT_FOLDS, "--model", "failing:Model", status=1)
    assert "every candidate so far failed" in line and "ZeroDivisionError" in line
    assert Path("run/study.db").exists()


def test_markup_in_data_is_shown_as_it_is(folder):
    write_classes(folder, names=("[bold]no[/bold]", "[/red]", "x"))
    write_module(folder, "odd", "def gain(y, decision): return (y == decision).mean()\n")
    odd = ("--metric", "odd:gain", "--model", "logistic")
    shown = moew("fit", *DATA, *odd, *WITHOUT_FOLDS, "--out", "[red]run").stdout
    assert "[red]run" in shown
    assert "[bold]no[/bold]" in moew("predict", "[red]run", "test.csv").stdout


def test_in_a_pipe_lines_go_to_stderr_and_json_alone_to_stdout():
    command = [sys.executable, "-m", "moew", "fit", *LOGISTIC, *WITHOUT_FOLDS, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, env={**ENVIRONMENT, "NO_COLOR": "1"})
    assert done.returncode == 0, done.stderr
    n_models = json.loads(done.stdout)["candidates"]
    assert f"batch 1/1: {n_models}/{n_models} candidates" in done.stderr
    assert "\x1b" not in done.stderr + done.stdout


def test_a_real_interruption(folder):
    slow = (
        "import time\nfrom pathlib import Path\nfrom sklearn.linear_model import LogisticRegression\n"
        "class Model(LogisticRegression):\n    def fit(self, X, y, sample_weight=None):\n"
        "        Path('begun').touch()\n        time.sleep(0.2)\n"
        "        return super().fit(X, y, sample_weight)\n"
    )
    (folder / "slow.py").write_text(slow)
    # A job in the background ignores SIGINT, and hands that on to its children.
    heard = (
        "import runpy, signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "runpy.run_module('moew', run_name='__main__', alter_sys=True)"
    )
    command = [
        sys.executable,
        "-c",
        heard,
        "fit",
        *LOGISTIC,
        *QUICK,
        "--candidates",
        "150",
        "--model",
        "slow:Model",
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT) as process:
        while not Path("begun").exists() and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=120)
    assert process.returncode == 130
    assert said.splitlines()[-1].startswith("moew: interrupted;") and "Traceback" not in said


def test_test_rows_that_cannot_be_evaluated_are_told_before_training(folder):
    test = pd.read_csv("test.csv")
    test[test["y"] == "no"].to_csv("no.csv", index=False)
    test[:1].to_csv("one.csv", index=False)
    recall = (*DATA, "--metric", "precision_at_recall=0.9", "--positive", "yes", "--model", "logistic")
    assert "positive row" in refused("fit", *recall, *QUICK, "--test", "no.csv")
    assert "the test rows need at least 2 samples" in refused("fit", *LOGISTIC, *QUICK, "--test", "one.csv")
    assert not Path("run").exists()


def test_a_metric_that_fails_on_test_rows_alone_leaves_a_whole_run(folder):
    # Made-up answers are never all the same, real ones may be.
    text = "import numpy as np\ndef mine(y, decision):\n"
    text += "    if len(y) == 90 and np.mean(y == decision) > 0.6: raise RuntimeError('no such day')\n"
    write_module(folder, "picky", text + "    return float(np.mean(y == decision))\n")
    pd.concat([pd.read_csv("test.csv")] * 2)[:90].to_csv("ninety.csv", index=False)
    run = ("--metric", "picky:mine", "--model", "logistic", "--test", "ninety.csv")
    found = in_json("fit", *DATA, *QUICK, *run)
    assert "no such day" in found["tested"]["reason"] and found["tested"]["moew"] is None
    assert found["verdict"]["evidence"] == "honest"  # what there is
    assert "no such day" in Path("run/report.html").read_text()


def test_an_id_that_is_also_a_feature_or_a_cost_stays_a_number():
    moew(
        "fit",
        *DATA[:-1],
        "a",
        "--metric",
        "accuracy",
        "--model",
        "logistic",
        *WITHOUT_FOLDS,
        "--features",
        "a,b",
    )
    assert json.loads(entries()["search.json"])["table"]["features"]["a"] == "number"
    moew("predict", "run", "test.csv", "--out", "predicted.csv")
