"""Adult (UCI 2) and COMPAS (ProPublica): people in groups, for fairness examples."""

from __future__ import annotations

import csv
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.datasets._files import DataFile, Source, read_file, read_files
from experiments.datasets._tables import Dataset, TrainTest, as_columns, matrix, numbers, read_columns

_ZIP = "https://archive.ics.uci.edu/static/public/2/adult.zip"
ADULT = (
    DataFile(
        "adult/adult.data",
        "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
        3_974_305,
        (Source(_ZIP, "adult.data"),),
    ),
    DataFile(
        "adult/adult.test",
        "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
        2_003_153,
        (Source(_ZIP, "adult.test"),),
    ),
)
COMPAS = DataFile(
    "compas/compas_compact.csv",
    "438b7791454d48634d49bb147a5882c70edbb42078cd9afdd79557bf5b39ad58",
    529_951,
    origin="it was made from ProPublica's compas-scores-two-years.csv; moew has no code that makes it",
)
_ADULT_NAMES = (
    *(
        "age",
        "workclass",
        "fnlwgt",
        "education",
        "education_num",
        "marital_status",
        "occupation",
        "relationship",
    ),
    *("race", "sex", "capital_gain", "capital_loss", "hours_per_week", "native_country", "income"),
)
_ADULT_FEATURES = ("age", "education_num", "capital_gain", "capital_loss", "hours_per_week")
_ADULT_TEXTS = ("workclass", "education", "marital_status", "occupation", "relationship", "race", "sex")
_COMPAS_FEATURES = ("age", "juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count")
_COMPAS_TEXTS = ("sex", "race", "age_cat", "c_charge_degree", "score_text", "compas_screening_date")
_COMPAS_NUMBERS = ("decile_score", "v_decile_score", "is_recid", "is_violent_recid")


def load_adult() -> TrainTest:
    """Load 32,561 people for training and 16,281 for testing.

    y is 1 for an income above 50,000 dollars, else 0. X has the five numeric features. columns: the texts
    workclass, education, marital_status, occupation, relationship, race, sex and native_country, "?" where
    unknown; and `fnlwgt`, the census' weight of a row.
    """
    train, test = read_files(ADULT)
    return TrainTest(_adults(train), _adults(test))


def _adults(content: bytes) -> Dataset:
    # The test file begins with a comment ("|1x3 Cross validator"); both end with an empty line.
    lines = [line for line in content.decode("ascii").splitlines() if line and not line.startswith("|")]
    table = as_columns(csv.reader(lines, skipinitialspace=True), _ADULT_NAMES)
    columns: dict[str, NDArray[Any]] = {n: np.array(table[n]) for n in (*_ADULT_TEXTS, "native_country")}
    columns["fnlwgt"] = numbers(table["fnlwgt"])
    rich = np.array([income.startswith(">50K") for income in table["income"]], dtype=np.int64)
    return Dataset(matrix(table, _ADULT_FEATURES), rich, _ADULT_FEATURES, columns)


def load_compas() -> Dataset:
    """Load 7,214 defendants; y is 1 for those charged again within two years, else 0.

    X has age and four counts of earlier offences. columns: the texts sex, race, age_cat, c_charge_degree,
    score_text and compas_screening_date; the numbers decile_score, v_decile_score, is_recid and
    is_violent_recid (outcomes, not to be learnt from) and days_b_screening_arrest, NaN where unknown; and
    `analysed`: the 6,172 rows that ProPublica analysed, screened within 30 days of the arrest.
    """
    table = read_columns(read_file(COMPAS))
    columns: dict[str, NDArray[Any]] = {name: np.array(table[name]) for name in _COMPAS_TEXTS}
    columns |= {name: numbers(table[name]) for name in _COMPAS_NUMBERS}
    days = numbers([cell or "nan" for cell in table["days_b_screening_arrest"]])
    columns |= {"days_b_screening_arrest": days, "analysed": np.abs(days) <= 30}
    y = numbers(table["two_year_recid"]).astype(np.int64)
    return Dataset(matrix(table, _COMPAS_FEATURES), y, _COMPAS_FEATURES, columns)
