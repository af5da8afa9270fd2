"""What cannot work is told before anything is trained, in the words of the command line."""

import ast
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from tables import PAPER, QUICK, moew, refused, write_classes, write_module, write_numbers

import moew as package
from moew import cli
from moew.cli._ending import message_of, say
from moew.exceptions import Argument, InPython, InvalidInputError, MoewWarning
from moew.metrics import precision_at_recall

TWO = ("fit", "train.csv", "--validation", "valid.csv", "--label", "y", "--id", "id", *QUICK)
NUMBERS = ("fit", "numbers.csv", "--label", "y", *QUICK)
THREE = ("fit", "three/train.csv", "--label", "y", "--drop", "id", "--model", "logistic", *QUICK)
LOGISTIC, RIDGE = ("--model", "logistic"), ("--model", "ridge")
# What only helps in Python: arguments with values, calls, NumPy's way to show a text.
PYTHON = re.compile(
    r"\b(?!C\b)[a-z_]+=['(NTF…{]|make_\w+\(|simplefilter|np\.|X_val|y_val|sample_weight\b|<U\d|None\b"
)
MINE = """
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier

def needs_more(x): return LogisticRegression()
def broken(): raise OSError("no disk")
"""


@pytest.fixture(autouse=True)
def folder(own_folder):
    write_classes(own_folder)
    write_numbers(own_folder)
    (own_folder / "three").mkdir()
    write_classes(own_folder / "three", 3)
    write_module(own_folder, "mine", MINE)
    train = pd.read_csv("train.csv")
    train.assign(y="no").to_csv("one-class.csv", index=False)
    train.assign(amount=-1).to_csv("negative.csv", index=False)
    train.assign(y=["yes", *["no"] * (len(train) - 1)]).to_csv("rare.csv", index=False)
    pd.read_csv("valid.csv").assign(y="old").to_csv("other.csv", index=False)
    train.to_csv("semicolons.csv", index=False, sep=";")
    return own_folder


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((*TWO, *LOGISTIC, "--metric", "r_squared"), "--metric r_squared cannot evaluate a classification"),
        (
            (*TWO, *LOGISTIC, "--metric", "r2"),
            "such as ['no', 'yes']: it needs labels that are numbers.",
        ),
        ((*TWO, *LOGISTIC, "--metric", "worst_band_relative_error"), "cannot evaluate a classification"),
        (
            (*TWO, *LOGISTIC, "--metric", "mean_of_selected"),
            "needs y in numbers, such as a graded quality, got",
        ),
        ((*TWO, *LOGISTIC, "--metric", "neg_brier_score"), "--positive LABEL, one of ['no', 'yes']"),
        ((*NUMBERS, *RIDGE, "--metric", "worst_class_error"), "evaluates classes, but numbers are predicted"),
        (
            (*NUMBERS, *RIDGE, "--metric", "accuracy"),
            "such as --metric r_squared, or a classifier",
        ),
        ((*NUMBERS, *RIDGE, "--metric", "f1"), "--metric f1 cannot evaluate a regression with"),
        (
            (*NUMBERS, *RIDGE, "--metric", "roc_auc"),
            "decision_function or predict_proba, which Ridge does not",
        ),
        (
            (*NUMBERS, *RIDGE, "--metric", "r2", "--decision", "accurate"),
            "got a regressor; use no --decision",
        ),
        ((*NUMBERS, *LOGISTIC, "--metric", "accuracy"), "--model logistic predicts classes here"),
        ((*THREE, "--metric", "f1"), "related ones are f1_macro, f1_micro, f1_weighted"),
        ((*THREE, "--metric", "roc_auc"), "related ones are roc_auc_ovo"),
        (
            (*TWO, *LOGISTIC, "--metric", "sklearn.metrics:log_loss"),
            "pass --lower-is-better, --set metric.response=proba, or",
        ),
        (
            (*TWO, *LOGISTIC, "--metric", "sklearn.metrics:roc_auc_score"),
            "the scorer's name: --metric roc_auc.",
        ),
        ((*TWO, *LOGISTIC, "--metric", "mine:"), "must be module:object"),
        ((*TWO, *LOGISTIC, "--metric", "acuracy"), "perhaps accuracy, top_k_accuracy"),
        ((*TWO, "--metric", "accuracy", "--model", "mine:Ridge"), "--model mine:Ridge predicts numbers here"),
        ((*TWO, "--metric", "accuracy", "--model", "mine:needs_more"), "needs_more() failed: TypeError"),
        ((*TWO, "--metric", "accuracy", "--model", "mine:broken"), "broken() failed: OSError: no disk"),
        (
            (*TWO, "--metric", "accuracy", "--model", "mine:KNeighborsClassifier"),
            "whose fit takes sample weights.",
        ),
        (
            (*TWO, *LOGISTIC, "--metric", "accuracy", "--model-option", "C=-1"),
            "The 'C' parameter of Logistic",
        ),
        (
            (*TWO, *LOGISTIC, "--metric", "accuracy", "--set", "embedding=columns="),
            "name at least one column",
        ),
        (("fit", "one-class.csv", "--label", "y", "--metric", "accuracy"), "hold only one class ('no')"),
        (
            ("fit", "rare.csv", "--label", "y", "--metric", "accuracy"),
            "Give more rows of them, or pass --validation.",
        ),
        (
            ("fit", "semicolons.csv", "--label", "y", "--separator", ","),
            "Say with --separator what separates its columns.",
        ),
        (
            ("fit", "negative.csv", "--label", "y", "--metric", "accuracy", "--sample-weight", "amount"),
            "rows' --sample-weight must be",
        ),
        (
            (
                "fit",
                "train.csv",
                "--label",
                "y",
                "--metric",
                "accuracy",
                "--set",
                "evaluate_on=3",
                "--set",
                "honest=holdout",
            ),
            "--set honest=holdout needs validation rows: pass --validation, or a share of the rows as --set",
        ),
        (
            ("fit", "train.csv", "--label", "y", "--metric", "accuracy", "--validation", "other.csv", *QUICK),
            "use --set base_weights=uniform or --set base_weights=covariate_shift; else",
        ),
    ],
)
def test_what_cannot_work_is_told_before_training(arguments, words):
    if arguments[1] == "semicolons.csv":
        arguments = (*arguments, "--metric", "accuracy")
    line = refused(*arguments)
    assert words in line and not Path("run").exists()
    assert line.startswith("moew: ") and line.count("\n") == 1
    assert not PYTHON.search(line.replace("sample_weight'", "")), line


def test_warnings_speak_of_options():
    pd.read_csv("valid.csv").query("y == 'no'").to_csv("valid.csv", index=False)
    said = moew(*TWO, *LOGISTIC, "--metric", "accuracy").stderr
    warning = next(line for line in said.splitlines() if "do not occur in the validation set" in line)
    assert "Use --set base_weights=uniform if" in warning and not PYTHON.search(warning)


@pytest.mark.parametrize("metric", ["neg_brier_score", "f1", "average_precision"])
def test_a_positive_label_is_all_that_was_missing(metric):
    moew(*TWO, *LOGISTIC, "--metric", metric, "--positive", "yes", "--set", "honest=none", *PAPER)


@pytest.mark.heavy
@pytest.mark.parametrize("metric", ["neg_mean_poisson_deviance", "neg_mean_squared_log_error", "r2"])
def test_made_up_answers_are_such_as_these_metrics_take(metric):
    moew(*NUMBERS, *RIDGE, "--metric", metric)


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        (Argument("decision", None), "no --decision"),
        (Argument("decision", "score=0"), "--decision score=0"),
        (Argument("validation"), "--validation"),
        (Argument("test"), "--test"),
        (Argument("columns"), "--metric-column"),
        (Argument("constraints"), "--constraint"),
        (Argument("evaluate_on"), "--set evaluate_on"),
        (Argument("evaluate_on", 0.3), "--set evaluate_on=0.3"),
        (Argument("evaluate_on", 3), "--set evaluate_on=3"),
        (Argument("evaluate_on", "validation"), "--set evaluate_on=validation"),
        (Argument("pos_label", "no"), "--positive no"),
        (Argument("greater_is_better", False), "--lower-is-better"),
        (Argument("base_weights", "uniform"), "--set base_weights=uniform"),
        (Argument("alpha_zero_repeats"), "--set alpha_zero_repeats"),
        (Argument("n_candidates"), "--candidates"),
        (Argument("random_state"), "--seed"),
        (Argument("on", "train"), "@train"),
        (Argument("join", True), "--join"),
    ],
    ids=str,
)
def test_arguments_are_said_as_options(argument, words):
    assert say(argument) == words


def test_what_helps_only_in_python_is_left_out():
    error = InvalidInputError("use ", Argument("metric", "f1"), InPython(", or make_metric(…)"), ".")
    assert str(error) == "use metric='f1', or make_metric(…)."
    assert message_of(error) == "use --metric f1."
    assert message_of(MoewWarning("in\n two lines")) == "in two lines"
    assert message_of(MemoryError()) == "MemoryError"


def test_the_library_names_arguments_that_are_options_here():
    """What a message calls an argument is an option of a command, but for what only Python users set."""
    commands = cli.commands().commands.values()
    options = {name for one in commands for p in one.params for name in (*p.opts, *p.secondary_opts)}
    rooms = [path for path in Path(package.__file__).parent.rglob("*.py") if path.parts[-2] != "paper"]
    calls = [node for path in rooms for node in ast.walk(ast.parse(path.read_text())) if _is_argument(node)]
    names = {node.args[0].value for node in calls if isinstance(node.args[0], ast.Constant)}
    assert {"metric", "base_weights", "validation", "evaluate_on"} <= names
    of_python = {"on", "sample_weight_name", "radius", "by", "classes", "models", "votes"}
    of_python |= {"measure", "sigma", "start", "search_space", "strategies"}
    said = {name: say(Argument(name)).split()[0] for name in names - of_python}
    assert {name: option for name, option in said.items() if option not in options} == {}


def _is_argument(node):
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Argument"


def test_labels_are_shown_as_python_writes_them():
    rows = pd.read_csv("one-class.csv")
    search = package.MetricSearch(LogisticRegression())
    with pytest.raises(InvalidInputError, match=r"\('no'\)"):
        search.fit(rows[["a"]], rows["y"].to_numpy(dtype=str))
    metric = precision_at_recall(pos_label=np.str_("old"))
    train = pd.read_csv("train.csv")
    with pytest.raises(InvalidInputError, match="pos_label='old' is not one of"):
        package.MetricSearch(LogisticRegression(), metric=metric).fit(train[["a"]], train["y"])
