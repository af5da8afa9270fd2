"""What `--metric` and `--metric-command` can be: ours, scikit-learn's, the user's, and programs."""

import stat
from pathlib import Path

import pandas as pd
import pytest
from sklearn.metrics import get_scorer_names
from tables import WITHOUT_FOLDS, in_json, moew, refused, write_classes, write_module

from moew import metrics
from moew.cli.runs import load_run
from moew.metrics import METRICS, Metric

DATA = (
    "train.csv",
    "--validation",
    "valid.csv",
    "--label",
    "y",
    "--id",
    "id",
    "--model",
    "logistic",
    *WITHOUT_FOLDS,
)
ASIDE = ("--set", "honest=holdout")
AWK = """
NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
{ total += $at["cost"]; if ($at["label"] != $at["decision"]) lost += $at["cost"] }
END { print "rows: " NR - 1; printf "%.12g\\n", lost / total }
"""
MINE = """
import numpy as np
from sklearn.metrics import fbeta_score, make_scorer
from moew import make_metric

def lost(y, decision, cost):
    return float(cost[y != decision].sum() / cost.sum())

def scored(y, score):
    return float(np.mean(score))

twice = make_scorer(fbeta_score, beta=2, pos_label="yes")
small = make_metric(lost, greater_is_better=False)
"""


@pytest.fixture(autouse=True)
def folder(own_folder):
    write_classes(own_folder)
    (own_folder / "score.awk").write_text(AWK)
    write_module(own_folder, "mine", MINE)
    return own_folder


def test_every_metric_of_moew_has_a_name_here():
    factories = {
        name
        for name in dir(metrics)
        if not name.startswith("_") and name != "make_metric"
        if getattr(getattr(metrics, name), "__annotations__", {}).get("return") == "FunctionMetric"
    }
    assert factories == set(METRICS)


def test_the_list_has_all_with_a_line_each():
    listed = in_json("metrics")
    scorers = {entry["name"] for entry in listed["scikit-learn"]}
    assert {"roc_auc", "f1_macro", "neg_log_loss", "r2"} <= scorers < set(get_scorer_names())
    assert scorers & {"rand_score", "v_measure_score", "f1_samples"} == set()
    ours = {entry["name"].partition("=")[0]: entry for entry in listed["moew"]}
    assert ours["value_per_harm"]["columns"] == ["value", "harm"]
    assert ours["fpr_gap"]["greater_is_better"] is False
    assert all(len(entry["summary"]) > 8 for group in listed.values() for entry in group)
    text = moew("metrics").stdout
    assert "Needs value, harm." in " ".join(text.split()) and "neg_log_loss" in text
    assert max(map(len, text.splitlines())) <= 80


def test_a_program_gives_what_the_same_function_gives():
    column = ("--metric-column", "cost=amount", "--lower-is-better")
    program = ("--metric-command", "awk -F, -f score.awk {predictions}")
    alone = ("--set", "final=best", *ASIDE)  # a slow metric has no ensembles, and decisions are not tuned
    by_program = in_json("fit", *DATA, *program, *column, *alone, "--out", "one")
    by_function = in_json("fit", *DATA, "--metric", "mine:lost", *column, *alone, "--out", "two")
    for model in ("unweighted", "alpha_zero"):
        for score in ("apparent", "honest"):
            assert by_program[model][score] == pytest.approx(by_function[model][score], rel=1e-9)
    programs, functions = (
        {strategy["name"]: strategy["apparent"] for strategy in found["strategies"]}
        for found in (by_program, by_function)
    )
    assert {"class weights", "example weights"} <= set(programs) <= set(functions)
    assert programs == pytest.approx({name: functions[name] for name in programs}, rel=1e-10)
    assert by_program["winner"] == by_function["winner"]
    made = in_json("fit", *DATA, "--metric", "mine:small", *column[:2], *alone, "--out", "three")
    assert made["moew"] == by_function["moew"]


def test_a_program_gets_ids_labels_scores_and_columns(folder):
    script = folder / "keep"
    script.write_text('#!/bin/sh\ncp -n "$1" kept.csv\necho working >&2\necho 0.5\n')  # the first call's
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    options = (
        "--set",
        "metric.response=score",
        "--metric-column",
        "amount",
        "--set",
        "honest=none",
        "--set",
        "evaluate_on=validation",
    )
    assert (
        in_json("fit", *DATA, "--metric-command", "./keep {predictions}", *options)["moew"]["apparent"] == 0.5
    )
    kept, valid = pd.read_csv("kept.csv"), pd.read_csv("valid.csv")
    assert list(kept.columns) == ["row_id", "label", "score", "amount"]
    assert kept["row_id"].tolist() == valid["id"].tolist()
    assert kept["label"].tolist() == valid["y"].tolist()
    assert kept["amount"].tolist() == valid["amount"].tolist()
    assert kept["score"].dtype == float and kept["score"].nunique() > 100
    assert 'honest = "none"' in Path("run/settings.toml").read_text()


def test_a_program_also_gets_training_rows_out_of_fold(folder):
    script = folder / "keep"
    script.write_text('#!/bin/sh\ncp "$1" kept-$$.csv\necho 0.5\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    folds = ("--set", "evaluate_on=auto", "--set", "honest=none")
    found = in_json("fit", *DATA, "--metric-command", "./keep {predictions}", *folds)
    kept = max(map(pd.read_csv, folder.glob("kept-*.csv")), key=len)  # other calls are on halves of the rows
    train = pd.read_csv("train.csv").set_index("id")["y"]
    seen = kept["row_id"][kept["row_id"].isin(train.index)]
    assert len(seen) == found["rows"]["out of fold"] > 0 and seen.is_unique
    labels = kept.set_index("row_id")["label"]
    assert (labels[seen] == train[seen]).all()


def test_a_program_is_called_seldom_and_on_rows_set_aside_if_told(folder):
    (folder / "count.sh").write_text("echo call >> calls\nawk -F, -f score.awk $1\n")
    program = ("--metric-command", "sh count.sh {predictions}", "--lower-is-better")
    halves = ("--set", "evaluate_on=auto", "--out", "halves")
    found = in_json("fit", *DATA, *program, "--metric-column", "cost=amount", *halves)
    calls = Path("calls").read_text().count("call")
    assert found["rows"]["validation"] == 126 and calls < found["candidates"] + 100
    found = in_json("fit", *DATA, *program, "--metric-column", "cost=amount", *ASIDE)
    assert found["rows"]["validation"] < 126 and found["rows"]["set aside"] > 0
    assert 'honest = "holdout"' in Path("run/settings.toml").read_text()


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("./score", "needs the word {predictions}"),
        ("'./score {predictions}", "cannot be split into words"),
        ("./nothing {predictions}", "'./nothing' cannot be run"),
        ("sh fail.sh {predictions}", "failed with exit status 3: no such metric"),
        ("sh words.sh {predictions}", "must be a number, got 'well'"),
        ("sh silent.sh {predictions}", "must be a number, got nothing"),
        ("sh slow.sh {predictions}", "took longer than 0.5 seconds; raise --set metric.timeout"),
        ("echo {predictions} ; echo 1", "must be a number"),  # there is no shell
    ],
)
def test_programs_that_fail(folder, command, words):
    for name, text in {
        "fail": "echo no such metric >&2; exit 3",
        "words": "echo 1; echo well",
        "silent": "true",
        "slow": "exec sleep 20",
    }.items():
        (folder / f"{name}.sh").write_text(text)
    line = refused("fit", *DATA, "--metric-command", command, "--set", "metric.timeout=0.5")
    assert words in line and line.count("\n") == 1
    assert not Path("run").exists()


def test_a_program_that_was_changed_is_another_metric(folder):
    program = ("--metric-command", "sh one.sh {predictions}", "--set", "honest=none")
    (folder / "one.sh").write_text("echo 1")
    moew("fit", *DATA, *program)
    (folder / "one.sh").write_text("echo 2")
    assert "other settings" in refused("fit", *DATA, *program, "--resume")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("mine:nothing",), "has no attribute 'nothing'"),
        (("broken:metric",), "importing broken failed: ZeroDivisionError"),
        (("needy:metric",), "needy needs 'not_installed'"),
        (("mine:small", "--lower-is-better"), "knows its direction"),
        (("mine:twice", "--positive", "yes"), "knows its positive label itself"),
        (("mine:lost",), "--metric-column cost=COLUMN"),
        (("mine:np",), "metric must be a function"),
    ],
)
def test_functions_that_cannot_be_used(folder, arguments, words):
    write_module(folder, "broken", "1 / 0\n")
    write_module(folder, "needy", "import not_installed\n")
    assert words in refused("fit", *DATA, "--metric", *arguments)


@pytest.mark.heavy
def test_scorers_and_scores():
    alone = (*ASIDE, "--set", "final=best", "--strategies", "example weights")
    named = in_json("fit", *DATA, "--metric", "f1", "--positive", "yes", *alone, "--out", "one")
    assert 0 < named["moew"]["apparent"] < 1
    in_json("fit", *DATA, "--metric", "mine:twice", *alone, "--out", "two")
    in_json("fit", *DATA, "--metric", "mine:scored", "--set", "metric.response=score", "--out", "three")
    found = in_json("fit", *DATA, "--metric", "precision_at_recall=0.8", "--positive", "no", "--out", "four")
    assert found["metric"] == "precision at 80% recall"
    assert load_run(Path("four")).fitted.winner.pos_label == "no"
    assert isinstance(metrics.resolve_metric(metrics.accuracy()), Metric)


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("function", "told", "scorer"),
    [
        ("log_loss", ("--lower-is-better", "--set", "metric.response=proba"), "neg_log_loss"),
        ("zero_one_loss", ("--lower-is-better",), ""),
    ],
)
def test_what_is_advised_for_functions_of_scikit_learn_works(function, told, scorer):
    name = f"sklearn.metrics:{function}"
    assert f"pass {', '.join(told[:1])}" in refused("fit", *DATA, "--metric", name)
    found = in_json("fit", *DATA, "--metric", name, *told, *ASIDE, "--out", "by-function")
    assert found["greater_is_better"] is False
    if scorer:
        named = in_json("fit", *DATA, "--metric", scorer, *ASIDE, "--out", "by-name")
        assert named["moew"]["apparent"] == pytest.approx(-found["moew"]["apparent"])


def test_a_column_nobody_takes_is_said_once():
    done = moew("fit", *DATA, "--metric", "accuracy", "--metric-column", "cost=amount")
    assert done.stderr.count("neither the metric nor the decision takes the columns ['cost']") == 1


@pytest.mark.heavy
def test_a_cost_without_a_direction_gets_a_hint_in_the_options_words():
    given = (*DATA, "--metric", "mine:lost", "--metric-column", "cost=amount", "--out", "hint")
    done = moew("fit", *given)
    hint = "lost is maximised; if smaller is better, --lower-is-better says so, and --higher-is-better that"
    assert done.stderr.count(hint) == 1 and "make_metric" not in done.stderr
    assert "Note: lost is maximised" in " ".join(done.stdout.split())
    for direction in ("--lower-is-better", "--higher-is-better"):
        assert "is maximised" not in moew("fit", *given, direction, "--force").stderr


@pytest.mark.parametrize(
    "metric",
    [
        ("--metric", "mine:small", "--metric-column", "cost=amount"),
        pytest.param(("--metric", "accuracy"), marks=pytest.mark.heavy),
    ],
)
def test_a_metric_has_the_name_that_people_give_it(metric):
    named = (*metric, "--set", "metric.name=money <lost> a day", "--out", "named")
    done = moew("fit", *DATA, *named)
    assert "money <lost> a day on " in done.stdout
    page = Path("named/report.html").read_text(encoding="utf-8")
    assert "money &lt;lost&gt; a day of LogisticRegression" in page and "train.csv" in page
    assert str(Path.cwd()) not in page  # no folders of this machine
    assert '"metric.name" = "money <lost> a day"' in Path("named/settings.toml").read_text(encoding="utf-8")
    again = moew("fit", "--config", "named/settings.toml", "--out", "again")
    assert "money <lost> a day on " in again.stdout
    assert "--set metric.name is empty" in refused(
        "fit", *DATA, *metric, "--set", "metric.name= ", "--out", "no"
    )
