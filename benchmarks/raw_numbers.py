"""Raw numbers of a benchmark: one line of a CSV for each case and repeat, written as soon as it is measured.

What the file has is not measured again, so that a command can be interrupted, and its tables be printed from
the file alone. Remove the file to measure other code.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

RESULTS = Path(__file__).resolve().parents[1] / "docs" / "results"
Value = float | str
Line = tuple[Value, ...]  # in the order of the fields


def measured(
    path: Path,
    fields: Sequence[str],
    measure: Callable[[str, int], Sequence[Any]],
    cases: Sequence[str],
    repeats: int,
    jobs: int,
) -> dict[str, list[Line]]:
    """The values of all repeats of every case, in order; `measure(case, repeat)` gives those that the file
    has not, in the order of `fields`."""
    known = read(path, fields)
    missing = [(case, k) for case in cases for k in range(repeats) if (case, k) not in known]
    if missing:
        path.parent.mkdir(parents=True, exist_ok=True)
        whole = _whole_lines(path)
        path.write_text(whole, encoding="utf-8", newline="")  # without a line that an end cut off
        found = Parallel(n_jobs=jobs, return_as="generator_unordered")(
            delayed(_one)(measure, case, k) for case, k in missing
        )
        with path.open("a", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            if not whole:
                writer.writerow(["case", "repeat", *fields])
            for case, k, values in found:
                writer.writerow([case, k, *values])
                file.flush()
        known = read(path, fields)
    return {case: [known[case, k] for k in range(repeats)] for case in cases}


def read(path: Path, fields: Sequence[str]) -> Mapping[tuple[str, int], Line]:
    """The lines of the file by case and repeat; a line cut off by an end is left out."""
    whole = _whole_lines(path)
    if not whole:
        return {}
    heads, *rows = csv.reader(io.StringIO(whole, newline=""))
    if heads != ["case", "repeat", *fields]:
        raise SystemExit(f"{path} has the columns {', '.join(heads)}; remove it to measure again")
    return {(row[0], int(row[1])): tuple(map(_value, row[2:])) for row in rows}


def replace_below(page: Path, heading: str, text: str) -> None:
    """Replace what stands below a heading at the end of a page."""
    above, found, _ = page.read_text(encoding="utf-8").partition(heading)
    if not found:
        raise SystemExit(f"{page} has no heading {heading.strip()!r}")
    page.write_text(f"{above}{found}{text}\n", encoding="utf-8")


def _whole_lines(path: Path) -> str:
    text = path.read_bytes().decode("utf-8") if path.exists() else ""
    return text[: text.rfind("\n") + 1]


def _one(measure: Callable[[str, int], Sequence[Any]], case: str, k: int) -> tuple[str, int, list[str]]:
    values = measure(case, k)
    return case, k, [value if isinstance(value, str) else repr(float(value)) for value in values]


def _value(cell: str) -> Value:
    try:
        return float(cell)
    except ValueError:
        return cell
