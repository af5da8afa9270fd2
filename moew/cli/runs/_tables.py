"""Tables in files: CSV and other separated text, Parquet and Feather, by the file's ending.

What separates the cells of a text is found by looking at its first lines, or told.
"""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from moew._util.whole_files import write_whole
from moew.exceptions import InvalidInputError

_FORMATS = dict.fromkeys((".csv", ".tsv", ".txt", ".data"), "csv")
_FORMATS |= {".parquet": "parquet", ".pq": "parquet", ".feather": "feather", ".arrow": "feather"}
# What may be a formula for a spreadsheet: not a sign alone, as labels have it, and not a plain number.
_FORMULA = re.compile(r"[=@\t\r]|[+-](?!$)(?!\d+(\.\d+)?$)")
_PADDED = r"^\s*[+-]?0\d"  # whole numbers written with zeros in front
NAMES = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " "}
_LOOKED_FOR = ",;\t|"
_LINES = 200  # that are looked at
# A number with a decimal comma, perhaps with dots between thousands.
_DECIMAL_COMMA = r"\s*[+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?([eE][+-]?\d+)?\s*"


def read_table(
    path: Path,
    texts: Sequence[str] = (),
    *,
    label: str | None = None,
    ids: str | None = None,
    separator: str | None = None,
) -> Any:
    """The file as a data frame with rows; columns named in `texts` are read as text, digits or not.

    A CSV does not say what is a number. Labels that begin with a zero too many, such as 007, are texts, and
    so are ids, letter by letter, unless all are plain whole numbers. Nor does it say what its `separator` is:
    that is found unless it is given. Where it is no comma, commas may be decimal.
    """
    pandas, form = _pandas(), _format(path)
    with _parsing(path):
        if form == "csv":
            between = separator_in(path, separator)
            _check_header(path, between)
            # pandas ignores names in dtype that the file does not have.
            frame = pandas.read_csv(path, sep=between, low_memory=False, dtype=dict.fromkeys(texts, str))
            if not isinstance(
                frame.index, pandas.RangeIndex
            ):  # pandas took the first column for names of rows
                raise InvalidInputError(f"{path}: its rows have more cells than its first line has names.")
            frame = _as_written(frame, path, between, label if label not in texts else None, ids)
            if between != ",":
                frame = _with_decimal_commas(frame, [*texts, ids])
        elif form == "parquet":
            frame = pandas.read_parquet(path)
        else:
            from pyarrow import feather  # type: ignore[import-untyped]

            # Making a frame of damaged columns can end the interpreter.
            feather.read_table(path, memory_map=False).validate(full=True)
            frame = pandas.read_feather(path)
    frame.columns = [str(name) for name in frame.columns]
    if not len(frame):
        raise _empty(path)
    return frame.reset_index(drop=True)


def ids_as_written(frame: Any, path: Path, ids: str | None, separator: str | None = None) -> Any:
    """The frame of `read_table` with ids as they stand in the file; only their column is read again."""
    if _format(path) != "csv":
        return frame
    with _parsing(path):
        return _as_written(frame, path, separator_in(path, separator), None, ids)


def read_header(path: Path, separator: str | None = None) -> list[str]:
    """The names of a file's columns, without its rows."""
    pandas, form = _pandas(), _format(path)
    with _parsing(path):
        if form == "csv":
            between = separator_in(path, separator)
            _check_header(path, between)
            frame = pandas.read_csv(path, sep=between, nrows=0)
        else:
            from pyarrow import ipc, parquet

            schema = parquet.read_schema(path) if form == "parquet" else ipc.open_file(path).schema
            frame = schema.empty_table().to_pandas()  # without columns that are the frame's index
    return [str(name) for name in frame.columns]


@contextmanager
def _parsing(path: Path) -> Iterator[None]:
    """Turn a parser's error into one that names the file."""
    try:
        yield
    except FileNotFoundError:
        raise InvalidInputError(f"there is no file {path}.") from None
    except InvalidInputError:
        raise
    except MemoryError as error:
        if type(error) is MemoryError:
            raise
        raise _unreadable(path, error) from error  # Arrow's, of a file that says it holds more than there is
    except OSError as error:
        if error.errno is not None:  # the disk's; others are what parsers say about the content
            raise
        raise _unreadable(path, error) from error
    except ImportError as error:
        raise InvalidInputError(f"reading {path} needs pyarrow: pip install 'moew[cli]'.") from error
    except _pandas().errors.EmptyDataError:
        raise _empty(path) from None
    except Exception as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> InvalidInputError:
    reason = " ".join(str(error).split()) or type(error).__name__
    return InvalidInputError(f"{path} cannot be read as {_format(path)}: {reason}")


def write_table(columns: dict[str, Any], path: Path | None, *, private: bool = False) -> str:
    """Write the columns by the file's ending; without a file, the CSV text is given back.

    In a CSV, texts that a spreadsheet would run as formulas are escaped. Cells are separated by commas, in
    .tsv by tabs.
    """
    frame = _pandas().DataFrame(columns)
    if path is None:
        return str(_without_formulas(frame).to_csv(index=False, lineterminator="\n"))
    form = _format(path)

    def write(new: Path) -> None:
        if form == "csv":
            between = "\t" if ".tsv" in path.suffixes[-2:] else ","
            _without_formulas(frame).to_csv(new, sep=between, index=False)
        elif form == "parquet":
            frame.to_parquet(new, index=False)
        else:
            frame.to_feather(new)

    write_whole(path, write, private=private)
    return ""


def _without_formulas(frame: Any) -> Any:
    """The frame with an apostrophe before texts and names of columns that spreadsheets take for formulas."""

    def escaped(value: Any) -> Any:
        return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value

    texts = [name for name in frame.columns if frame[name].dtype.kind not in "biufmMc"]
    frame = frame.assign(**{name: frame[name].map(escaped) for name in texts})
    return frame.rename(columns=escaped)


def _as_written(frame: Any, path: Path, separator: str, label: str | None, ids: str | None) -> Any:
    """The frame of a CSV, with the text of those labels and ids that are more than a number."""

    def is_whole(name: str | None) -> bool:
        return name in frame and frame[name].dtype.kind in "iu"

    looked_at = {label} if is_whole(label) else set()
    looked_at |= {ids} if ids in frame else set()
    if not looked_at:
        return frame
    # keep_default_na=False: an id may be the text NA.
    written = _pandas().read_csv(path, sep=separator, usecols=[*looked_at], dtype=str, keep_default_na=False)
    changed: dict[Any, Any] = {}
    if label in written and written[label].str.contains(_PADDED).any():
        changed[label] = written[label]
    if ids in written and not (is_whole(ids) and (written[ids] == frame[ids].astype(str)).all()):
        changed[ids] = written[ids]
    return frame.assign(**changed)


def _check_header(path: Path, separator: str) -> None:
    """Raise if two columns have the same name: pandas would rename the second."""
    names = _header_of(path, separator)
    if not names:
        raise _empty(path)
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidInputError(f"{path} has more than one column named {twice}; give each its own name.")


def _empty(path: Path) -> InvalidInputError:
    return InvalidInputError(f"{path} is empty: it needs a line of column names and at least one row.")


def _format(path: Path) -> str:
    ending = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    form = _FORMATS.get(ending.lower())
    if form is None or (path.suffix == ".gz" and form != "csv"):
        known = ", ".join([*_FORMATS, ".csv.gz"])
        raise InvalidInputError(f"{path}: tables are told by their ending, one of {known}.")
    return form


def _pandas() -> Any:
    try:
        import pandas
    except ImportError as error:
        raise InvalidInputError("tables need pandas: pip install 'moew[cli]'.") from error
    return pandas


def separator_from(text: str | None) -> str | None:
    """The separator of an option's text: one character, or its name; None where it is to be found."""
    if text is None:
        return None
    found = NAMES.get(text, text)
    if len(found) != 1 or found.isalnum() or found in "\"'.\n\r\0":
        raise InvalidInputError(
            f"--separator is one character, such as ';', or {', '.join(n for n in NAMES if n.isalpha())}; "
            f"got {text!r}.",
            argument="separator",
        )
    return found


def separator_in(path: Path, given: str | None = None) -> str:
    """What separates the cells of a file: as given, a tab in .tsv, or as its first lines show.

    Of the characters that cut every line into as many cells as the first, it is the one that makes the most
    columns; where none does, as lines of different length have it, the one that cuts the first line most.
    """
    if given is not None:
        return given
    if Path(path.stem if path.suffix == ".gz" else path.name).suffix.lower() == ".tsv":
        return "\t"
    widths = {separator: _widths(path, separator) for separator in _LOOKED_FOR}
    even = {s: of[0] for s, of in widths.items() if of and of[0] > 1 and len(set(of)) == 1}
    columns = even or {s: of[0] for s, of in widths.items() if of}
    most = max(columns.values(), default=0)
    likely = [separator for separator, n in columns.items() if n == most]
    if most > 1 and len(likely) > 1:
        raise InvalidInputError(
            f"{path}: its first line has {most} columns with {' as with '.join(map(repr, likely))} between "
            f"them. Say which it is: --separator '{likely[0]}'.",
            argument="separator",
        )
    return likely[0] if likely else ","


def _header_of(path: Path, separator: str) -> list[str]:
    """The names in the first line of a file; none of an empty one."""
    return next(iter(_lines(path, separator, 1)), [])


def _with_decimal_commas(frame: Any, texts: Sequence[Any]) -> Any:
    """The frame with numbers in columns of which every text is a number with a decimal comma; those in
    `texts` stay."""
    from pandas import to_numeric

    changed = {}
    for name in frame.columns:
        values = frame[name].dropna()
        if name in texts or values.dtype.kind in "biufc" or not len(values):
            continue
        if not (isinstance(values.iloc[0], str) and re.fullmatch(_DECIMAL_COMMA, values.iloc[0])):
            continue  # most columns end here
        if values.str.fullmatch(_DECIMAL_COMMA).all() and values.str.contains(",", regex=False).any():
            plain = frame[name].str.replace(".", "", regex=False).str.replace(",", ".", regex=False)
            changed[name] = to_numeric(plain.astype(object)).astype(float)
    return frame.assign(**changed) if changed else frame


def _widths(path: Path, separator: str) -> list[int]:
    """How many cells the first lines have; blank lines are no rows."""
    try:
        return [len(cells) for cells in _lines(path, separator, _LINES) if cells]
    except csv.Error:  # such as a cell that is too long
        return []


def _lines(path: Path, separator: str, n: int) -> list[list[str]]:
    open_text: Callable[..., Any] = partial(gzip.open, mode="rt") if path.suffix == ".gz" else Path.open
    with open_text(path, encoding="utf-8-sig", newline="") as file:
        return list(islice(csv.reader(file, delimiter=separator), n))
