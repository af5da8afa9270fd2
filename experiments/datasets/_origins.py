"""Rows of mixed origin: calls through a crisis, claims of three years, days of decades, a crowd's answers."""

from __future__ import annotations

import csv
import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.datasets._files import DataFile, read_file, read_files
from experiments.datasets._tables import Dataset, as_columns, matrix, numbers, read_columns

BANK = DataFile(
    "bank/bank-additional-full.csv",
    "74adfc578bf77a7ff4bb1ba4a9f8709d9e3c6907342959c2c8416847e0afb4d8",
    5_834_924,
    origin="UCI 222 (bank marketing) offers it as a zip inside a zip, which moew does not read",
)
CAR_FRAUD = DataFile(
    "car_fraud/fraud_oracle.csv",
    "8bb5870f82bb78cceb2bee7747c68c2a8d617af4e22b2de55fbb40c214883255",
    3_618_573,
    origin="it is given only after a login",
)
WEATHER = DataFile(
    "weather/weather.csv",
    "3c38f05bdc5c4cb115f122414c66976e3662c875d96d7199d9e47fc46aff150e",
    772_138,
    origin="its publisher has it in several files; moew has no code that joins them",
)
CROWD = (
    DataFile(
        "music_crowd/answers.csv",
        "48f9d57d5b49d9eae3a114123aa000b47fcdb7c8ce078c82063d71cbd1ef2a68",
        67_068,
        origin="it was made from the authors' files (Rodrigues, Pereira and Ribeiro, 2013)",
    ),
    *(
        DataFile(f"music_crowd/songs_{part}.csv", sha256, size, origin="see music_crowd/answers.csv")
        for part, sha256, size in (
            ("train", "cb7c0bd548baa22b6cce52c167b82701a54f6ca757a55da743a4a2070cd708c2", 784_148),
            ("test", "4eaa4aae9f0cdfb30ad873684073c0f9bcf10524fdbe1217b924c35af51e86c1", 337_559),
        )
    ),
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_CALL_NUMBERS = (
    *("age", "campaign", "pdays", "previous", "emp.var.rate", "cons.price.idx", "cons.conf.idx"),
    *("euribor3m", "nr.employed"),
)
_CALL_TEXTS = ("job", "marital", "education", "default", "housing", "loan", "contact", "poutcome")
_NO_FEATURES_OF_CLAIMS = ("FraudFound_P", "PolicyNumber", "Year", "Age", "RepNumber")
_FIRST_DAY, _DAYS_OF_A_YEAR = 1949.8, 365.25  # of the station's record, about


def load_bank() -> Dataset:
    """Load 41,188 calls of a bank in order of their date, May 2008 to November 2010.

    y is 1 for a deposit (11.27 %). X has the numbers and indicators of the texts, without `duration`, which
    is known only after the call, and without the date; columns: `month`, counted from January 2008.
    """
    lines = csv.reader(io.StringIO(read_file(BANK).decode("ascii")), delimiter=";")
    table = as_columns(lines)
    of_year = np.array([_MONTHS.index(name) for name in table["month"]])
    years = np.cumsum(np.diff(of_year, prepend=of_year[0]) < 0)
    names, X = _with_indicators(table, _CALL_NUMBERS, _CALL_TEXTS)
    y = np.array([cell == "yes" for cell in table["y"]], dtype=np.int64)
    return Dataset(X, y, names, {"month": 12 * years + of_year})


def load_car_fraud() -> Dataset:
    """Load 15,420 claims after car accidents of 1994 to 1996; y is 1 for fraud (6 %).

    X has the numbers and indicators of the texts, without the year; columns: `year`.
    """
    table = read_columns(read_file(CAR_FRAUD))
    features = [name for name in table if name not in _NO_FEATURES_OF_CLAIMS]
    plain = tuple(name for name in features if all(cell.isdigit() for cell in table[name]))
    names, X = _with_indicators(table, plain, tuple(name for name in features if name not in plain))
    year = numbers(table["Year"]).astype(np.int64)
    return Dataset(X, numbers(table["FraudFound_P"]).astype(np.int64), names, {"year": year})


def load_weather() -> Dataset:
    """Load 18,159 days of one station in order, 1949 to 1999; y is 1 for rain (31.4 %).

    X has eight measurements; columns: `year`, about, from the place in the file.
    """
    table = read_columns(read_file(WEATHER))
    names = tuple(name for name in table if name != "target")
    days = np.arange(len(table["target"]))
    year = np.floor(_FIRST_DAY + days / _DAYS_OF_A_YEAR).astype(np.int64)
    return Dataset(matrix(table, names), numbers(table["target"]).astype(np.int64), names, {"year": year})


def load_music_crowd() -> tuple[Dataset, Dataset]:
    """Load 2,945 answers of 44 annotators about the genres of 700 songs, and 300 other songs with the truth.

    X has 124 features of a song. y of the first is what the annotator said (columns: `annotator`, `truth`,
    `song`), y of the second is the truth.
    """
    answers, heard, others = (read_columns(content) for content in read_files(CROWD))
    names = tuple(name for name in heard if name.startswith("feature"))
    place = {song: k for k, song in enumerate(heard["id"])}
    rows = np.array([place[song] for song in answers["id"]])
    columns: dict[str, NDArray[Any]] = {
        "annotator": np.array(answers["annotator"]),
        "truth": np.array(heard["class"])[rows],
        "song": np.array(answers["id"]),
    }
    said = Dataset(matrix(heard, names)[rows], np.array(answers["answer"]), names, columns)
    return said, Dataset(matrix(others, names), np.array(others["class"]), names, {})


def _with_indicators(table: Any, plain: tuple[str, ...], texts: tuple[str, ...]) -> Any:
    """The names of the numbers and of each text's levels but the first, and their values (n, D)."""
    names, parts = list(plain), [numbers(table[name]) for name in plain]
    for name in texts:
        cells = np.array(table[name])
        for value in np.unique(cells)[1:]:
            names.append(f"{name}={value}")
            parts.append((cells == value).astype(np.float64))
    return tuple(names), np.column_stack(parts)
