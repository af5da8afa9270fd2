"""Text tables with other separators than commas, and categories that the training rows did not have."""

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from problems import mixed_frame
from tables import QUICK, in_json, moew, refused

from moew.cli.runs import load_run, read_table
from moew.cli.runs._tables import read_header, separator_from, separator_in, write_table
from moew.exceptions import InvalidInputError

pytestmark = pytest.mark.usefixtures("own_folder")


def written(name, text):
    path = Path(name)
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "separator"),
    [
        ("a,b\n1,2\n", ","),
        ("a;b\n1;2\n", ";"),
        ("a\tb\n1\t2\n", "\t"),
        ("a|b\n1|2\n", "|"),
        ("a;b\n1,5;2,5\n", ";"),  # decimal commas in every row
        ("a,b\nx;y,2\n", ","),
        ('a,b;c\n1,"x;y;z"\n', ","),  # the header alone has both
        ('"a;b";c\n"1;2";3\n', ";"),
        ("a,b;c,d;e\n1,2;3,4;5\n", None),
        ("a\n1\n", ","),
        ("a;b;c\n1;2\n", ";"),  # a short row
        ("a,b\n\n1,2\n", ","),
    ],
)
@pytest.mark.parametrize("name", ["t.csv", "t.data", "t.txt.gz"])
def test_the_separator_is_found_by_looking(name, text, separator):
    path = written(name, text)
    if separator is None:
        with pytest.raises(InvalidInputError, match=r"3 columns with ',' as with ';'.*--separator ','"):
            separator_in(path)
        assert read_header(path, ";") == ["a,b", "c,d", "e"]
    else:
        assert separator_in(path) == separator
        assert len(read_table(path)) == 1


def test_a_tsv_has_tabs():
    frame = pd.DataFrame({"text": ["a,b", "c;d", None], "n": [1, 2, 3]})
    write_table(dict(frame), Path("t.tsv"))
    assert Path("t.tsv").read_text().startswith("text\tn\n")
    found = read_table(Path("t.tsv"))
    assert found["text"].isna().tolist() == [False, False, True]
    pd.testing.assert_frame_equal(found.fillna(""), frame.fillna(""), check_dtype=False)
    assert separator_in(written("one.tsv", "a;b\n1;2\n")) == "\t"


def test_separators_by_name_and_refused_ones():
    assert [separator_from(text) for text in ("tab", "\\t", ";", "^", None)] == ["\t", "\t", ";", "^", None]
    for text in ("", ";;", "x", '"'):
        with pytest.raises(InvalidInputError, match="one character"):
            separator_from(text)


def test_decimal_commas_are_numbers_where_no_comma_separates():
    text = "n;thousands;codes;mixed;y\n1,5;1.234,5;1,5;1,5;a\n-2;20,25;x;2.5;b\n;;;;a\n"
    frame = read_table(written("t.csv", text), ["codes"])
    np.testing.assert_array_equal(frame["n"], [1.5, -2.0, np.nan])
    np.testing.assert_array_equal(frame["thousands"], [1234.5, 20.25, np.nan])
    assert frame["codes"].tolist()[:2] == ["1,5", "x"] and frame["mixed"].tolist()[:2] == ["1,5", "2.5"]
    quoted = read_table(written("c.csv", 'a,b\n"1,500",2\n'))  # may be thousands
    assert quoted["a"].tolist() == ["1,500"]


def test_a_file_that_is_one_column_or_has_no_names_is_refused_with_advice():
    written("t.csv", "a;y\n1;0\n2;1\n")
    common = ("--label", "y", "--metric", "accuracy")
    assert "what separates its columns" in refused("fit", "t.csv", *common, "--separator", ",")
    written("wine.data", "1,14.23\n2,13.1\n")
    assert "must hold the names of the columns" in refused("fit", "wine.data", *common)
    assert "--separator is one character" in refused("fit", "t.csv", *common, "--separator", "and")


@pytest.fixture
def spreadsheet(own_folder):
    """train.csv and new.csv as a spreadsheet of many countries writes them."""
    frame, y = mixed_frame(seed=0)
    frame = frame.assign(y=y)
    frame.to_csv("train.csv", sep=";", decimal=",", index=False)
    frame.to_csv("plain.csv", index=False)
    return frame


@pytest.mark.heavy
def test_a_spreadsheets_file_gives_the_run_of_a_plain_one(spreadsheet):
    model = ("--label", "y", "--metric", "accuracy", "--model", "logistic", *QUICK)
    moew("fit", "train.csv", *model, "--separator", ";")
    moew("fit", "plain.csv", *model, "--out", "plain")
    pd.testing.assert_frame_equal(*(pd.read_parquet(f"{run}/weights.parquet") for run in ("run", "plain")))
    run, plain = load_run(Path("run")), load_run(Path("plain"))
    assert run.schema.features == plain.schema.features and run.schema.categories == plain.schema.categories
    assert run.schema.separator == ";" and plain.schema.separator is None
    assert 'separator = ";"' in Path("run/settings.toml").read_text()
    answers = moew("predict", "plain", "plain.csv").stdout
    assert moew("predict", "plain", "train.csv").stdout == answers  # found by looking
    assert moew("predict", "run", "train.csv").stdout == answers  # by the run's
    assert "has no column" in refused("predict", "run", "plain.csv")
    assert moew("predict", "run", "plain.csv", "--separator", ",").stdout == answers
    weights = moew("weights", "run", "plain.csv", "--separator", "comma").stdout
    assert weights == moew("weights", "run", "train.csv").stdout

    # Categories that are new.
    texts = [name for name, kind in run.schema.features.items() if kind == "text"]
    assert in_json("predict", "plain", "plain.csv")["unseen_categories"] == {}
    column = texts[0]
    new = spreadsheet.copy()
    new[column] = new[column].astype(object)
    new.loc[new.index[:7], column] = ["teal"] * 3 + ["pink", "grey", "lime"] + [np.nan]
    new.to_csv("new.csv", index=False)
    done = moew("predict", "plain", "new.csv", "--out", "p.tsv")
    (line,) = (line for line in done.stderr.splitlines() if "warning" in line)
    assert (
        f"6 of {len(new)} rows have a category in '{column}' that no training row had: 'teal' (3 rows)"
        in line
    )
    assert "and 1 other." in line
    assert len(pd.read_csv("p.tsv", sep="\t")) == len(new)
    told = in_json("predict", "plain", "new.csv")
    assert told["unseen_categories"] == {column: {"teal": 3, "pink": 1, "grey": 1, "lime": 1}}
    assert in_json("predict", "plain", "new.csv", "--out", "p.csv")["unseen_categories"][column]["teal"] == 3
