"""Wrong usage of the command line: one line that says what to do, exit status 2, nothing written."""

import ast
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import click
import pandas as pd
import pytest
from tables import QUICK, in_json, moew, refused, write_classes, write_module, write_numbers

from moew import cli
from moew.decision import DECISION_RULES, rule_examples
from moew.embedding import EMBEDDINGS
from moew.metrics import METRICS
from moew.samplers import SAMPLERS
from moew.search import SearchSettings
from moew.weighting import BASE_WEIGHTS

DATA = ("train.csv", "--validation", "valid.csv", "--label", "y")
WORST = ("--metric", "worst_class_error")


@pytest.fixture(autouse=True)
def folder(own_folder):
    write_classes(own_folder)
    return own_folder


def names(line):
    assert line.startswith("moew: ") and line.count("\n") == 1
    return line


@pytest.mark.parametrize("command", ["fit", "predict", "weights", "report", "compare", "metrics"])
def test_help_fits_80_columns(command):
    text = moew(command, "--help").stdout
    assert max(map(len, text.splitlines())) <= 80
    assert f"Usage: moew {command}" in text


def test_help_loads_nothing_heavy():
    code = "import sys; from moew import cli; cli.commands()\n"
    code += "print([m for m in ('pandas', 'sklearn', 'optuna', 'jax', 'rich') if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "[]"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--label", "y"), "name the training file"),
        (("train.csv",), "name the labels: --label COLUMN"),
        (("train.csv", "--label", "z", *WORST), "train.csv has no column 'z'; it has ['id', 'a', 'b'"),
        ((*DATA,), "say what the model is judged by"),
        ((*DATA, *WORST, "--metric-command", "x {predictions}"), "one of them"),
        ((*DATA, "--metric", "worst_clas_error"), "perhaps worst_class_error"),
        ((*DATA, "--metric", "accuracy=3"), "takes no number"),
        ((*DATA, "--metric", "precision_at_recall=high"), "needs numbers, got 'high'"),
        ((*DATA, "--metric", "precision_at_recall=7"), "recall must be a number above 0 and at most 1"),
        ((*DATA, "--metric", "fpr_gap"), "--metric-column group=COLUMN"),
        ((*DATA, "--metric", "f1"), "--positive LABEL, one of ['no', 'yes']"),
        ((*DATA, "--metric", "f1", "--positive", "maybe"), "not one of the labels ['no', 'yes']"),
        ((*DATA, *WORST, "--positive", "yes"), "no positive label"),
        ((*DATA, "--metric", "roc_auc", "--positive", "yes"), "no positive label"),
        ((*DATA, "--metric", "f1", "--positive", "no", "--decision", "accurate"), "second label 'yes'"),
        ((*DATA, *WORST, "--lower-is-better"), "knows its direction"),
        ((*DATA, *WORST, "--set", "metric.response=score"), "knows its direction"),
        ((*DATA, *WORST, "--decision", "half"), "none of threshold=0.5"),
        ((*DATA, *WORST, "--decision", "select=many"), "needs a number, got 'many'"),
        ((*DATA, *WORST, "--decision", "select=7"), "share must be a number above 0"),
        ((*DATA, *WORST, "--decision", "threshold=0@train"), "leave out @train"),
        ((*DATA, *WORST, "--decision", "threshold=2"), "a probability lies between 0 and 1"),
        ((*DATA, *WORST, "--decision", "select=0.1@moon"), "@moon is no rows to fit it on"),
        ((*DATA, *WORST, "--decision", "recall=0.9@each"), "say @train or @validation."),
        ((*DATA, *WORST, "--model", "logistik"), "perhaps logistic"),
        ((*DATA, *WORST, "--model", "ridge"), "the labels are texts, such as 'no'"),
        ((*DATA, *WORST, "--model", "logistic", "--model-option", "CC=1"), "the nearest is 'C'"),
        ((*DATA, *WORST, "--model", "logistic", "--model-option", "C"), "NAME=VALUE"),
        ((*DATA, *WORST, "--model", "nowhere:Model"), "no module 'nowhere'"),
        ((*DATA, *WORST, "--model", "sklearn.svm:Nothing"), "has no attribute 'Nothing'"),
        ((*DATA, *WORST, "--model", "sklearn.svm:SVR", "--task", "classification"), "is for regression"),
        ((*DATA, *WORST, "--model", "pathlib:Path"), "no scikit-learn estimator"),
        ((*DATA, *WORST, "--set", "evaluate_on=0.3"), "leave out --validation, or this"),
        (
            (*DATA[:1], *DATA[3:], *WORST, "--set", "evaluate_on=validation"),
            "--set evaluate_on=validation is for given validation rows",
        ),
        ((*DATA[:1], *DATA[3:], *WORST, "--set", "honest=holdout"), "as --set evaluate_on; in a cross"),
        ((*DATA, *WORST, "--features", "a,c"), "no column 'c'"),
        ((*DATA, *WORST, "--features", "a,y"), "the label 'y' is among the features"),
        ((*DATA, *WORST, "--drop", "id,a,b,amount"), "no column left"),
        ((*DATA, *WORST, "--id", "name"), "no column 'name'"),
        ((*DATA, *WORST, "--set", "embedding=sklearn.decomposition:PCA"), "a transformer cannot be kept"),
        ((*DATA, *WORST, "--set", "embedding=labels"), "--set embedding must be one of ['autoencoder'"),
        ((*DATA, *WORST, "--set", "honest=very"), "--set honest must be 'halves', 'holdout', a share"),
        (
            (*DATA, *WORST, "--set", "sampler=random", "--set", "sampler.p=90"),
            "--set sampler.p is for --set sampler=gp_bucb, not for random",
        ),
        (
            (*DATA, *WORST, "--set", "sampler=random", "--set", "stop_when=0.1"),
            "take --set sampler=gp_bucb, or leave out",
        ),
        (
            (*DATA, *WORST, "--set", "embedding=label", "--set", "embedding.n_dims=3"),
            "--set embedding.n_dims is for --set embedding=autoencoder",
        ),
        (
            (*DATA, *WORST, "--set", "embedding=columns=a", "--set", "embedding.trade_off=1"),
            "--set embedding.trade_off is for --set embedding=",
        ),
        ((*DATA, *WORST, "--set", "sampler.noise=repeats"), "raise --set alpha_zero_repeats, which is 1"),
        (
            (*DATA[:1], *DATA[3:], *WORST, "--as-in-the-paper"),
            "--set evaluate_on=validation is for given validation rows",
        ),
        ((*DATA, *WORST, "--set", "honest=2"), "--set honest must be 'halves', 'holdout', a share"),
        (
            (*DATA, *WORST, "--set", "evaluate_on=1"),
            "--set evaluate_on as a number of folds must be at least 2",
        ),
        ((*DATA, *WORST, "--set", "evaluate_on=given"), "--set evaluate_on must be 'auto', 'validation'"),
        ((*DATA, *WORST, "--set", "final=sum"), "'ensemble', 'smoothed', 'best'"),
        ((*DATA, *WORST, "--set", "stop_when=-1"), "--set stop_when must be a positive number"),
        ((*DATA, *WORST, "--set", "radius=far"), "--set radius must be a positive number"),
        ((*DATA, *WORST, "--set", "sampler.p=101"), "--set sampler.p is in percent"),
        ((*DATA, *WORST, "--set", "sampler.width=wide"), "--set sampler.width must be"),
        ((*DATA, *WORST, "--set", "sampler.noise=-1"), "--set sampler.noise is a variance"),
        (
            (*DATA, *WORST, "--set", "embedding=autoencoder", "--set", "embedding.trade_off=2"),
            "--set embedding.trade_off must be",
        ),
        ((*DATA, *WORST, "--set", "base_weights=shift"), "['covariate_shift', 'label_shift', 'uniform']"),
        ((*DATA, *WORST, "--set", "sampler=spiral"), "--set sampler must be"),
        ((*DATA, *WORST, "--set", "radus=2"), "no such parameter; the nearest is 'radius'"),
        ((*DATA, *WORST, "--set", "sampler.width_=2"), "the nearest is 'sampler.width'"),
        ((*DATA, *WORST, "--set", "n_candidates=2"), "it has an option of its own, --candidates"),
        ((*DATA[:1], "--validation", "nowhere.csv", *DATA[3:], *WORST), "there is no file nowhere.csv"),
    ],
)
def test_wrong_usage_of_fit(arguments, words):
    assert words in names(refused("fit", *arguments, *QUICK[2:]))
    assert not Path("run").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("fit", "train.csv", "--set", "radius"), "--set is NAME=VALUE, got 'radius'"),
        (("fit", "train.csv", "--candidates", "none"), "--candidates"),
        (("fit", "train.csv", "--seed", "-1"), "--seed"),
        (("predict", "nowhere", "train.csv"), "'nowhere' does not exist"),
        (("predict", "."), "Missing argument 'TABLE'"),
        (("compare", "--repeats", "1"), "--repeats"),
        (("metrics", "extra"), "unexpected extra argument"),
    ],
)
def test_wrong_options_are_told_in_a_line(arguments, words):
    line = names(refused(*arguments))
    assert words in line and line.endswith("--help`.\n") and ".." not in line


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("empty.csv", "", "empty.csv is empty"),
        ("header.csv", "id,a,b,y\n", "header.csv is empty"),
        ("twice.csv", "a,a,y\n1,2,no\n", "more than one column named ['a']"),
        (
            "gaps.csv",
            "a,b,y\n1,2,no\n3,4,\n5,6,yes\n",
            "1 of 3 rows have no label in column 'y': rows 1, counted from 0. Fill in their labels or remove",
        ),
        ("ragged.csv", "a,b,y\n1,2,no\n3,4,5,6,no\n", "ragged.csv cannot be read as csv"),
        ("longer.csv", "a,b,y\n1,2,3,no\n1,2,3,no\n", "rows have more cells than its first line has names"),
        ("bytes.csv", b"a,b,y\n\xff\xfe,2,no\n", "bytes.csv cannot be read as csv"),
        ("fake.parquet", "no parquet", "fake.parquet cannot be read as parquet"),
        ("table.xlsx", "", "told by their ending"),
    ],
)
def test_files_that_cannot_be_used(folder, name, content, words):
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    line = names(refused("fit", name, "--label", "y", *WORST))
    assert words in line and not Path("run").exists()


def test_validation_columns_that_differ():
    valid = pd.read_csv("valid.csv")
    valid.drop(columns="b").to_csv("less.csv", index=False)
    line = names(refused("fit", "train.csv", "--validation", "less.csv", "--label", "y", *WORST))
    assert "less.csv has no column 'b'" in line
    valid.assign(b=["?"] * len(valid)).to_csv("odd.csv", index=False)
    line = names(refused("fit", "train.csv", "--validation", "odd.csv", "--label", "y", *WORST))
    assert "odd.csv: column 'b' must hold numbers" in line and "row 0 holds '?'" in line
    valid.assign(more=1).to_csv("more.csv", index=False)
    arguments = ("--validation", "more.csv", "--label", "y", *WORST, "--model", "logistic", *QUICK)
    done = moew("fit", "train.csv", *arguments, "--id", "id")
    assert "columns of the validation file that are not used: ['more']" in done.stderr


def test_whole_numbers_may_be_classes_or_not(folder):
    pd.DataFrame({"a": range(40), "y": range(40)}).to_csv("whole.csv", index=False)
    line = names(refused("fit", "whole.csv", "--label", "y", "--metric", "r2"))
    assert "--task classification or --task regression" in line
    write_numbers(folder)
    logistic = ("numbers.csv", "--label", "y", "--metric", "accuracy", "--model", "logistic", *QUICK)
    assert "the labels are numbers, such as " in names(refused("fit", *logistic))
    ridge = ("numbers.csv", "--label", "y", "--metric", "r2", "--model", "ridge", "--task", "classification")
    assert "ridge is not for classification" in refused("fit", *ridge)


def test_a_run_of_nothing(folder):
    for command in (("predict", ".", "train.csv"), ("weights", ".", "train.csv"), ("report", ".")):
        assert "no finished run of `moew fit`" in names(refused(*command))


def test_new_rows_need_their_columns_and_labels():
    moew("fit", *DATA, *WORST, "--model", "logistic", *QUICK, "--features", "a,b")
    pd.read_csv("test.csv").drop(columns=["b", "y"]).to_csv("less.csv", index=False)
    assert "less.csv has no column 'b'" in names(refused("predict", "run", "less.csv"))
    pd.read_csv("test.csv").drop(columns="y").to_csv("unlabelled.csv", index=False)
    assert "no column 'y'" in names(refused("weights", "run", "unlabelled.csv"))
    assert len(in_json("predict", "run", "unlabelled.csv")["predictions"]["row"]) == 246
    assert in_json("predict", "run", "unlabelled.csv", "--out", "x.csv") == {
        "rows": 246,
        "out": "x.csv",
        "unseen_categories": {},
    }
    assert "246 weights are in" in moew("weights", "run", "test.csv", "--out", "w.csv").stdout
    assert "told by their ending" in names(refused("predict", "run", "test.csv", "--out", "x.xlsx"))


def test_missing_packages_are_named(monkeypatch):
    monkeypatch.setattr("moew.cli.runs._folder.find_spec", lambda name: None)
    assert "pip install 'moew[cli]'" in names(refused("fit", *DATA, *WORST))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("labl = 'y'", "there is no setting 'labl'; the nearest is 'label'"),
        ("radius = 3", "Parameters of the search stand in its table [search]"),
        ("search = 3", "search is a table of parameters"),
        ("[search]\nradus = 3", "the nearest is 'radius'"),
        ("config = 'x'", "there is no setting 'config'"),
        ("candidates = 2.5", "'2.5' is not a valid integer"),
        ("compare = 'yes'", "compare is true or false"),
        ("label = ['y']", "takes one value"),
        ("test = 'nowhere.csv'", "there is no file"),
        ("not toml", "is no TOML"),
    ],
)
def test_settings_files_that_cannot_be_used(folder, content, words):
    (folder / "run.toml").write_text(content)
    assert words in names(refused("fit", *DATA, *WORST, "--config", "run.toml"))
    assert not Path("run").exists()


def test_every_option_may_come_from_a_file(folder):
    text = """
    train = "train.csv"
    validation = "valid.csv"
    label = "y"
    features = ["a", "b"]
    metric = "own:profit"
    model = "logistic"
    model-option = {C = 0.5, fit_intercept = true}
    metric-column = {cost = "amount"}
    lower_is_better = true
    candidates = 2
    json = true
    [search]
    embedding = "label"
    batch_size = 2
    radius = 1
    """
    write_module(folder, "own", "def profit(y, decision, cost): return float(cost[y != decision].mean())\n")
    (folder / "run.toml").write_text(text)
    done = moew("fit", "--config", "run.toml", "--out", "elsewhere")
    assert '"metric": "profit", "greater_is_better": false' in done.stdout
    recorded = Path("elsewhere/settings.toml").read_text()
    assert 'model-option = ["C=0.5", "fit_intercept=true"]' in recorded


def test_every_option_of_fit_is_a_setting():
    command = cli.commands().commands["fit"]
    assert {p.name for p in command.params} >= {"train", "out", "metric_command", "set", "jobs"}
    told = {p.name: p.get_help_record(click.Context(command)) for p in command.params}
    assert all(told[name][1] for name in ("metric", "model", "decision", "set"))


def test_what_can_be_set_comes_from_the_library():
    text = " ".join(moew("fit", "--set", "help").stdout.split())
    for registry in (EMBEDDINGS, BASE_WEIGHTS, SAMPLERS):
        assert all(f'"{name}"' in text for name in registry)
    own = {
        "estimator",
        "metric",
        "constraints",
        "strategies",
        "decision",
        "n_candidates",
        "timeout",
        "storage",
    }
    own |= {"n_jobs", "random_state", "join", "search_space", "callbacks"}
    names = {field.name for field in fields(SearchSettings)} - own
    assert all(f" {name} " in text for name in [*names, "embedding.n_dims", "sampler.p", "metric.response"])
    assert ", ".join(rule_examples()) in text


def test_no_list_of_names_is_kept_twice():
    """The command line names a part's name where it is a default; lists are the registries'."""
    names = [*EMBEDDINGS, *BASE_WEIGHTS, *SAMPLERS, *METRICS, *DECISION_RULES]
    defaults = {"directions", "label_shift", "gp_bucb"}
    words = {"accuracy", "label", "random", "uniform", "score", "threshold", "select", "recall"}
    for path in Path(cli.__file__).parent.rglob("*.py"):
        constants = {n.value for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Constant)}
        assert constants & (set(names) - defaults - words) == set(), path


def test_an_interrupted_command_ends_at_once_but_tidies_up():
    code = "import atexit; from moew import cli; atexit.register(print, 'tidied'); cli._leave_at_once(130)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "tidied\n", "")
