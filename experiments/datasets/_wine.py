"""Wine reviews (Kaggle, 130k, version 2): log price from the words of the review and the points."""

from __future__ import annotations

from csv import DictReader
from csv import Error as CsvError
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.datasets._files import DataFile, read_file
from experiments.datasets._tables import Dataset, Texts, as_columns, matrix, numbers, read_columns
from moew.exceptions import InvalidInputError

_ORIGIN = (
    "it was made from winemag-data-130k-v2.csv, which Kaggle gives only after a login. If you have it, "
    "load_wine(csv=...) reads it"
)
SAMPLE = DataFile(
    "wine/wine.csv",
    "b30794257bbab33e4c51d02ef2933061e2a2e92537f95e468fc26ab5f560d5d1",
    828_344,
    origin=_ORIGIN,
)
FULL = DataFile(
    "wine/wine_full_no_words.csv",
    "4c48edeab483044b2938d8cbf8cc7f61ce9d052862a8baecbd3ed5f64bf70dcf",
    5_086_469,
    origin=_ORIGIN,
)
# The paper's 39 words; "_" stands for a blank.
WORDS = (
    *("acid", "angular", "austere", "barnyard", "bright", "butter", "cassis", "charcoal"),
    *("cigar", "complex", "cream", "crisp", "dense", "earth", "elegant", "flabby"),
    *("flamboyant", "fleshy", "food_friendly", "grip", "hint_of", "intellectual", "jam", "juicy"),
    *("laser", "lees", "mineral", "oak", "opulent", "refined", "silk", "steel"),
    *("structure", "tannin", "tight", "toast", "unctuous", "unoaked", "velvet"),
)
_KAGGLE_COLUMNS = ("", "description", "points", "price")  # the column of row numbers has an empty name


def load_wine(csv: str | Path | None = None) -> Dataset:
    """Load priced wines with the paper's 40 features: 39 words (1 where the review has it) and the points.

    csv : Kaggle's winemag-data-130k-v2.csv, for all its priced rows (the paper's 120,975). A word counts
        where the review has it as a substring, in upper or lower case. The file's content is not checked.
        Without it: the 9,315 priced rows among the first 10,001.

    y is the natural logarithm of the price; columns: `price` in dollars, `id`, Kaggle's row number.
    """
    if csv is None:
        return _wines(read_columns(read_file(SAMPLE)), (*WORDS, "points"))
    try:
        return _wines(_flags_of(Path(csv)), (*WORDS, "points"))
    except (OSError, ValueError, CsvError) as error:
        raise InvalidInputError(
            f"csv={str(csv)!r} cannot be read: {error}. Pass Kaggle's winemag-data-130k-v2.csv as it is.",
            argument="csv",
        ) from error


def load_wine_full() -> Dataset:
    """Load all 120,975 priced wines, without words: X is the points alone.

    columns: `price`, `id`, and the texts `country` (42), `variety` (697), `taster` (19), empty where unknown.
    """
    return _wines(read_columns(read_file(FULL)), ("points",), ("country", "variety", "taster"))


def _wines(table: Texts, features: tuple[str, ...], texts: tuple[str, ...] = ()) -> Dataset:
    price = numbers(table["price"])
    if not np.all(price > 0):
        raise InvalidInputError(f"a price is {price[~(price > 0)][0]}")
    columns: dict[str, NDArray[Any]] = {"price": price, "id": np.array(table["id"], dtype=np.int64)}
    columns |= {name: np.array(table[name]) for name in texts}
    return Dataset(matrix(table, features), np.log(price), features, columns)


def _flags_of(path: Path) -> Texts:
    """The columns of wine.csv, made from Kaggle's file."""
    phrases = [word.replace("_", " ") for word in WORDS]
    rows: list[tuple[str, ...]] = []
    with path.open(encoding="utf-8", newline="") as stream:
        reader = DictReader(stream, restval="")
        missing = [name for name in _KAGGLE_COLUMNS if name not in (reader.fieldnames or ())]
        if missing:
            wanted = ", ".join(name or "one without a name (the row's number)" for name in missing)
            raise InvalidInputError(f"it has not the columns {wanted}; its columns are {reader.fieldnames}")
        for row in reader:
            if row["price"]:
                review = row["description"].lower()
                flags = ("1" if phrase in review else "0" for phrase in phrases)
                rows.append((row[""], row["price"], row["points"], *flags))
    if not rows:
        raise InvalidInputError("it has no row with a price")
    return as_columns(rows, ("id", "price", "points", *WORDS))
