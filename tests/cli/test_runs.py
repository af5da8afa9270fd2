"""Run folders: nothing in them is executed, damaged ones say so, tables keep their kinds."""

import json
import os
import pickle
import sys
import tomllib
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import skops.io
from hypothesis import given
from hypothesis import strategies as st
from tables import (
    PAPER,
    QUICK,
    SEARCH,
    WITHOUT_FOLDS,
    change_entries,
    contents,
    entries,
    fit_once,
    in_json,
    moew,
    refused,
    write_classes,
    write_module,
)

from moew._util.state import plain
from moew.cli._coded_labels import CodedLabels
from moew.cli._options import toml_text
from moew.cli.runs import built_in_model, read_table
from moew.cli.runs._schema import Roles, Schema, learn_schema, named_columns
from moew.cli.runs._tables import read_header, write_table
from moew.exceptions import InvalidInputError
from moew.metrics import fpr_gap

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
EVIL = """
from pathlib import Path
from sklearn.linear_model import LogisticRegression

Path("executed").touch()

class Model(LogisticRegression):
    pass

def function(X, y):
    return X[["a"]].to_numpy()
"""


@pytest.fixture(autouse=True)
def folder(own_folder):
    write_classes(own_folder)
    return own_folder


def forget(name):
    """As a new process would: the module is not imported, and left no trace."""
    sys.modules.pop(name, None)
    Path("executed").unlink(missing_ok=True)


class Payload:
    def __reduce__(self):
        return os.mkdir, ("executed",)


def test_a_pickle_is_loaded_only_when_trusted():
    fit_once(*FIT, "--model", "logistic")
    change_entries({"model.skops": None, "model.pickle": pickle.dumps(Payload())})
    line = refused("predict", "run", "test.csv")
    assert "runs whatever code its maker put in" in line and "--trust" in line
    assert not Path("executed").exists()
    refused("predict", "run", "test.csv", "--trust", status=1)  # what came out is no model; its code did run
    assert Path("executed").exists()


def test_a_model_that_only_pickle_can_hold(folder):
    code = "from sklearn.linear_model import LogisticRegression\n\nclass Model(LogisticRegression):\n"
    code += "    def __getstate__(self): return {'it': self.__dict__, 'f': print}\n"
    code += "    def __setstate__(self, state): self.__dict__.update(state['it'])\n"
    code += "    def __sklearn_clone__(self): return Model()\n"
    write_module(folder, "pickled", code)
    found = moew(*FIT, "--model", "pickled:Model", "--drop", "id", "--out", "run").stdout
    assert "will ask for --trust" in found
    assert "model.pickle" in entries() or "model.skops" in entries()  # if skops learned to hold it, as code
    refused("predict", "run", "test.csv")
    assert moew("predict", "run", "test.csv", "--trust").stdout.startswith("row,prediction")


def test_a_users_class_is_not_imported_without_trust(folder):
    write_module(folder, "evil", EVIL)
    found = in_json(*FIT, "--model", "evil:Model", "--drop", "id")
    assert found["model"] == {"file": "search.moew", "needs_trust": True}
    forget("evil")
    assert "evil.Model" in refused("predict", "run", "test.csv")
    assert not Path("executed").exists() and "evil" not in sys.modules
    moew("predict", "run", "test.csv", "--trust")
    assert Path("executed").exists()


def test_a_users_function_is_not_imported_without_trust(folder):
    write_module(folder, "evil", EVIL)
    hard = ("--metric", "worst_class_error", "--strategies", "example weights")
    moew(*FIT[:-8], *WITHOUT_FOLDS[2:], "--set", "embedding=evil:function", "--model", "logistic", *hard)
    expected = pd.read_parquet("run/weights.parquet")["weight"]
    assert expected.nunique() > 1
    forget("evil")
    moew("predict", "run", "test.csv")  # the model does not need it
    assert "only with --trust" in refused("weights", "run", "train.csv")
    assert not Path("executed").exists() and "evil" not in sys.modules
    moew("weights", "run", "train.csv", "--trust", "--out", "w.parquet")
    np.testing.assert_allclose(pd.read_parquet("w.parquet")["weight"], expected, rtol=1e-12)


def test_a_folder_made_by_hand_executes_nothing(folder):
    fit_once(*FIT, "--model", "logistic")
    write_module(folder, "evil", EVIL)
    Path("run/settings.toml").write_text(
        'model = "evil:Model"\nmetric-command = "touch executed {predictions}"\n'
    )
    whole = json.loads(entries()["search.json"])
    for kind in ("evil:Model", "os:system", "moew.evil:Model", "moew._util.state:Stateful"):
        odd = {**whole, "weight_function": {**whole["weight_function"], "kind": kind}}
        for content in (odd, {**whole, "decision": {"kind": kind, "version": 1}}):
            change_entries({"search.json": json.dumps(content)})
            for command in ("predict", "weights"):
                refused(command, "run", "test.csv", status=1)
    model = json.dumps({"kind": "evil:Model", "version": 1})
    change_entries({"search.json": json.dumps(whole), "model.json": model})
    refused("predict", "run", "test.csv", status=1)
    assert not Path("executed").exists() and "evil" not in sys.modules


@pytest.mark.parametrize("name", ["model.skops", "search.json"])
def test_damaged_files_are_said(name):
    fit_once(*FIT, "--model", "logistic")
    change_entries({name: "{"})
    assert f"search.moew/{name} is damaged" in refused("predict", "run", "test.csv", status=1)
    change_entries({name: "{}"})
    words = {"model.skops": "damaged", "search.json": "it is no search that moew saved"}[name]
    assert words in refused("predict", "run", "test.csv", status=1)


def test_types_that_are_read_as_data_are_few_and_known():
    moew(*FIT, "--model", "random_forest", "--model-option", "n_estimators=2")
    content = entries()["model.skops"]
    assert set(skops.io.get_untrusted_types(data=content)) <= {"numpy.dtype", "sklearn.tree._tree.Tree"}


def test_coded_labels_answer_as_the_classifier_inside():
    from sklearn.linear_model import LogisticRegression

    train = pd.read_csv("train.csv")
    coded = CodedLabels(LogisticRegression()).fit(train[["a", "b"]], train["y"])
    plain_model = LogisticRegression().fit(train[["a", "b"]], train["y"])
    np.testing.assert_array_equal(coded.predict(train[["a", "b"]]), plain_model.predict(train[["a", "b"]]))
    np.testing.assert_array_equal(
        coded.predict_proba(train[["a", "b"]]), plain_model.predict_proba(train[["a", "b"]])
    )


def test_texts_of_digits_stay_texts_in_every_file(folder):
    pd.DataFrame({"code": ["01", "2", "x"], "n": [1, 2, 3], "y": ["1", "2", "a"]}).to_csv(
        "t.csv", index=False
    )
    schema = learn_schema(read_table(Path("t.csv")), Path("t.csv"), Roles("y"))
    assert schema.features == {"code": "text", "n": "number"} and schema.label_kind == "text"
    pd.DataFrame({"n": [1.5, None], "code": ["01", None], "y": [1, 2], "other": 1}).to_csv(
        "v.csv", index=False
    )
    rows = schema.read(Path("v.csv"))
    assert list(rows.X.columns) == ["code", "n"] and rows.X["code"].tolist()[0] == "01"
    assert rows.X["code"].isna().tolist() == [False, True] and rows.y.tolist() == ["1", "2"]
    assert Schema(**json.loads(json.dumps(asdict(schema)))) == schema


def test_the_metrics_texts_of_digits_stay_texts_too(folder):
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "group": ["1", "2", "other"], "y": [0, 1, 1]})
    schema = learn_schema(frame, Path("t.csv"), Roles("y", columns={"group": "group"}))
    for write in (lambda part: part.to_csv("v.csv", index=False), lambda part: part.to_parquet("v.parquet")):
        write(frame[:2].assign(group=[1, 2]))
    for name in ("v.csv", "v.parquet"):
        assert schema.read(Path(name)).columns["group"].tolist() == ["1", "2"]
    assert Schema(**json.loads(json.dumps(asdict(schema)))) == schema
    categories = frame.astype({"group": "category"})
    assert learn_schema(categories, Path("t.csv"), Roles("y", columns={"group": "group"})) == schema


def test_a_run_decides_by_the_column_that_it_was_told(folder):
    rng = np.random.default_rng(1)
    x, region = rng.normal(size=600), rng.choice(["a", "b"], 600)
    rows = pd.DataFrame({"x": x + (region == "b"), "group": rng.choice(["a", "b"], 600), "region": region})
    rows["y"] = (x + rng.normal(size=600) > 0).astype(int)
    rows[:300].to_csv("t.csv", index=False)
    rows[300:].to_csv("v.csv", index=False)
    wanted = ("--metric", "fpr_gap", "--metric-column", "group=region", "--model", "logistic")
    rule = ("--decision", "equal_fpr=0.3@validation", "--out", "told")
    moew("fit", "t.csv", "--validation", "v.csv", "--label", "y", *wanted, *rule, *QUICK, *PAPER)
    moew("predict", "told", "v.csv", "--out", "p.csv")
    columns = {"group": region[300:]}
    gap = fpr_gap()(rows["y"].to_numpy()[300:], pd.read_csv("p.csv")["prediction"].to_numpy(), columns)
    assert gap == pytest.approx(json.loads(Path("told/result.json").read_text())["moew"]["apparent"])


@pytest.mark.parametrize("command", ["predict", "weights"])
def test_a_file_is_not_overwritten_by_what_is_read_from_it(folder, command):
    before = Path("valid.csv").read_bytes()
    fit_once(*FIT, "--model", "logistic", "--drop", "id")
    assert "is the file that is read" in refused(command, "run", "valid.csv", "--out", "./valid.csv")
    assert Path("valid.csv").read_bytes() == before


def test_a_column_without_a_value_is_no_feature(folder):
    frame = pd.DataFrame({"x": np.arange(40.0), "empty": np.nan, "y": np.arange(40) > 20})
    X = frame[["x", "empty"]]
    for name in ("hist_gradient_boosting", "logistic"):
        assert built_in_model(name, X, "classification").fit(X, frame["y"]).score(X, frame["y"]) > 0.8
    with pytest.raises(InvalidInputError, match="nothing but missing values"):
        built_in_model("logistic", frame[["empty"]], "classification")


@pytest.mark.parametrize("name", ["t.parquet", "t.feather", "t.csv.gz"])
def test_files_of_every_kind_give_the_same_rows(name):
    frame = pd.DataFrame(
        {
            "truth": [True, False, None],
            "text": pd.Categorical(["u", None, "v"]),
            "whole": pd.array([1, None, 3], dtype="Int64"),
            "real": [0.5, 1.5, 2.5],
            "y": [True, False, True],
        }
    )
    written = {".parquet": frame.to_parquet, ".feather": frame.to_feather, ".gz": frame.to_csv}[
        Path(name).suffix
    ]
    written(name, index=False) if name.endswith(".gz") else written(name)
    path = Path(name)
    table = read_table(path)
    rows = learn_schema(table, path, Roles("y")).rows(table, path)
    np.testing.assert_array_equal(rows.X["truth"], [1.0, 0.0, np.nan])
    np.testing.assert_array_equal(rows.X["whole"], [1.0, np.nan, 3.0])
    assert rows.X["text"].fillna("–").tolist() == ["u", "–", "v"]
    assert rows.y.tolist() == [True, False, True] and rows.ids.tolist() == [0, 1, 2]


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet", "t.feather"])
def test_a_header_is_read_without_its_rows(name, monkeypatch):
    frame = pd.DataFrame({"a": [1, 2], "b c": ["x", None], "3": [0.5, 1.5]}, index=[7, 8])
    if ".csv" in name:
        frame.to_csv(name, index=False)
    else:
        written = frame.to_parquet if name.endswith("parquet") else frame.reset_index(drop=True).to_feather
        written(name)
    assert read_header(Path(name)) == list(read_table(Path(name)).columns) == ["a", "b c", "3"]
    Path(name).write_text("")
    with pytest.raises(InvalidInputError, match="is empty|cannot be read as|needs a line"):
        read_header(Path(name))


def test_every_file_is_read_once(monkeypatch):
    whole = []
    read_csv = pd.read_csv

    def counted(path, **how):
        if "usecols" not in how and how.get("nrows") is None:
            whole.append(Path(path).name)
        return read_csv(path, **how)

    monkeypatch.setattr(pd, "read_csv", counted)
    columns = ("--metric-column", "cost=amount", "--id", "a", "--features", "a,b")
    write_module(Path.cwd(), "costs", "def lost(y, decision, cost, b):\n    return float(cost.sum())\n")
    fit = [word if word != "accuracy" else "costs:lost" for word in FIT]
    moew(*fit, "--model", "logistic", *columns, "--test", "test.csv")
    assert whole == ["train.csv", "valid.csv", "test.csv"]


def test_a_run_is_written_when_all_is_done_and_replaces_the_old_one_then(monkeypatch):
    fit = (*FIT, "--model", "logistic", "--drop", "id")
    fit_once(*fit)
    before = contents("run")

    def fail(job):
        raise OSError("no more power")

    again = (*fit, "--seed", "1", "--compare", "--repeats", "2", "--test", "test.csv")
    with monkeypatch.context() as patch:
        patch.setattr("moew.cli.fit.run_comparison", fail)
        assert "no more power" in refused(*again, "--force", status=1).splitlines()[-1]
    assert contents("run") == before
    new = {"settings.toml", "study.db"}
    assert {entry.name for entry in Path("run.moew-new").iterdir()} == new
    moew(*again, "--resume")
    assert not Path("run.moew-new").exists() and not Path("run.moew-old").exists()
    assert json.loads(Path("run/result.json").read_text())["comparison"]["repeats"] == 2


def test_dates_are_refused(folder):
    frame = pd.DataFrame({"when": pd.to_datetime(["2020-01-01", "2021-01-01"]), "y": [0, 1]})
    frame.to_parquet("dates.parquet")
    with pytest.raises(InvalidInputError, match="'when' holds dates; turn it into numbers"):
        learn_schema(read_table(Path("dates.parquet")), Path("dates.parquet"), Roles("y"))


def test_a_name_with_a_comma_stays_whole():
    frame = pd.DataFrame({"a,b": [1], "c": [2], "d": [3]})
    assert named_columns(["a,b", "c, d"], frame) == ["a,b", "c", "d"]


@given(
    st.dictionaries(
        st.text(min_size=1),
        st.text() | st.integers(-(2**40), 2**40) | st.booleans() | st.lists(st.text())
        | st.floats(allow_nan=False, allow_infinity=False),
    ),
    st.text(alphabet=st.characters(categories=("L", "N", "Zs"))),
)  # fmt: skip
def test_toml_is_read_as_it_was_written(settings, comment):
    assert tomllib.loads(toml_text(settings, comment)) == settings


@given(st.lists(st.floats(allow_nan=False, width=64), min_size=1, max_size=5))
def test_numbers_keep_all_their_digits_in_csv(values):
    text = write_table({"x": np.array(values)}, None)
    read = [float(line) for line in text.splitlines()[1:]]
    assert read == values


def test_json_has_no_numbers_that_are_none():
    odd = {"a": np.float64("nan"), "b": [np.int64(3), float("inf")], "c": np.array([True])}
    assert plain(odd) == {"a": None, "b": [3, None], "c": [True]}


def test_a_model_that_is_not_for_the_task_is_refused():
    with pytest.raises(InvalidInputError, match="not for regression"):
        built_in_model("logistic", pd.DataFrame({"a": [1.0]}), "regression")


@pytest.mark.parametrize("name", ["rows.parquet", "rows.feather", "rows.csv.gz"])
def test_tables_that_are_damaged_anywhere_are_refused_by_name(name):
    rng, frame = np.random.default_rng(0), pd.DataFrame({"a": np.arange(40.0), "b": ["x", "y"] * 20})
    path, refused_ones = Path(name), 0
    write_table({column: frame[column] for column in frame}, path)
    whole = path.read_bytes()
    for where in rng.integers(len(whole), size=60):
        path.write_bytes(whole[:where] + b"\x00\xff" + whole[where + 2 :])
        try:
            read_table(path)
        except InvalidInputError as error:
            assert name in str(error)
            refused_ones += 1
    assert refused_ones > 10


def test_a_digit_that_changed_in_a_run_is_noticed():
    fit_once(*FIT, "--model", "logistic")
    whole = SEARCH.read_bytes()
    SEARCH.write_bytes(whole.replace(b'"log_top": -0.', b'"log_top": -1.'))
    assert SEARCH.read_bytes() != whole
    assert "run/search.moew/search.json is damaged" in refused("predict", "run", "test.csv", status=1)
