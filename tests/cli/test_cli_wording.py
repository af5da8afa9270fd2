"""What cannot work is told before anything is trained, in the words of the command line."""

import re
from pathlib import Path

import pandas as pd
import pytest
from tables import QUICK, moew, refused, write_classes, write_module, write_numbers

from moew.cli._wording import _WORDS, on_the_command_line

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
    train.assign(y=["old", *train["y"][1:]]).to_csv("other.csv", index=False)
    train.to_csv("semicolons.csv", index=False, sep=";")
    return own_folder


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((*TWO, *LOGISTIC, "--metric", "r_squared"), "--metric r_squared cannot judge a classification"),
        (
            (*TWO, *LOGISTIC, "--metric", "r2"),
            "such as ['no', 'yes']: could not convert string to float: 'no'",
        ),
        ((*TWO, *LOGISTIC, "--metric", "worst_band_relative_error"), "cannot judge a classification"),
        (
            (*TWO, *LOGISTIC, "--metric", "mean_of_selected"),
            "needs y in numbers, such as a graded quality, got",
        ),
        ((*TWO, *LOGISTIC, "--metric", "neg_brier_score"), "--positive LABEL, one of ['no', 'yes']"),
        ((*NUMBERS, *RIDGE, "--metric", "worst_class_error"), "judges classes, but numbers are predicted"),
        ((*NUMBERS, *RIDGE, "--metric", "accuracy"), "such as r_squared, or say --task classification"),
        ((*NUMBERS, *RIDGE, "--metric", "f1"), "--metric f1 cannot judge a regression with 120 different"),
        (
            (*NUMBERS, *RIDGE, "--metric", "roc_auc"),
            "decision_function or predict_proba, which Ridge does not",
        ),
        (
            (*NUMBERS, *RIDGE, "--metric", "r2", "--decision", "accurate"),
            "got a regressor; leave out --decision",
        ),
        ((*NUMBERS, *LOGISTIC, "--metric", "accuracy"), "--model logistic predicts classes here"),
        ((*THREE, "--metric", "f1"), "related ones are f1_macro, f1_micro, f1_weighted"),
        ((*THREE, "--metric", "roc_auc"), "related ones are roc_auc_ovo"),
        (
            (*TWO, *LOGISTIC, "--metric", "sklearn.metrics:log_loss"),
            "say --lower-is-better --response proba, or",
        ),
        (
            (*TWO, *LOGISTIC, "--metric", "sklearn.metrics:roc_auc_score"),
            "name the scorer: --metric roc_auc.",
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
        ((*TWO, *LOGISTIC, "--metric", "accuracy", "--embedding", "columns="), "name at least one feature"),
        (("fit", "one-class.csv", "--label", "y", "--metric", "accuracy"), "hold only one class ('no')"),
        (
            ("fit", "rare.csv", "--label", "y", "--metric", "accuracy"),
            "file of validation rows with --validation",
        ),
        (("fit", "semicolons.csv", "--label", "y"), "separated by something else than commas?"),
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
                "--folds",
                "3",
                "--honest",
                "holdout",
            ),
            "--honest holdout needs validation rows: --validation or --validation-share; with --folds every",
        ),
        (
            ("fit", "train.csv", "--label", "y", "--metric", "accuracy", "--validation", "other.csv", *QUICK),
            "use --base-weights uniform or 'covariate_shift'",
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
    assert "Use --base-weights uniform if" in warning and not PYTHON.search(warning)


@pytest.mark.parametrize("metric", ["neg_brier_score", "f1", "average_precision"])
def test_a_positive_label_is_all_that_was_missing(metric):
    moew(*TWO, *LOGISTIC, "--metric", metric, "--positive", "yes", "--honest", "none")


@pytest.mark.parametrize("metric", ["neg_mean_poisson_deviance", "neg_mean_squared_log_error", "r2"])
def test_made_up_answers_are_such_as_these_metrics_take(metric):
    moew(*NUMBERS, *RIDGE, "--metric", metric)


def test_values_are_shown_as_they_are_written():
    shown = on_the_command_line("got np.str_('a b') and\n np.float64(1.5), np.int64(3) of np.str_(\"it's\")")
    assert shown == "got 'a b' and 1.5, 3 of \"it's\""
    assert all(re.compile(pattern) for pattern, _ in _WORDS)
