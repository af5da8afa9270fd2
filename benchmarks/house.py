"""How large the package is, and how much of it a fit goes through.

    python benchmarks/house.py

Prints the lines of each room, the files and functions of moew that a default fit of a few rows calls in this
process, the parameters of the search, and the names that the rooms export.
"""

from __future__ import annotations

import ast
import sys
import warnings
from collections import Counter
from inspect import signature
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

import moew

HOUSE = Path(moew.__file__).parent


def main() -> None:
    """Print all figures."""
    lines = lines_by_room()
    for room, n in sorted(lines.items(), key=lambda item: -item[1]):
        print(f"{room:16}{n:8,}")
    print(f"{'all':16}{sum(lines.values()):8,}\n")
    fit()  # what is loaded and prepared once does not count
    called = functions_called()
    files = {file for file, _ in called}
    print(f"a default fit: {len(files)} files, {len(called)} functions")
    for room, n in Counter(Path(file).relative_to(HOUSE).parts[0] for file in files).most_common():
        print(f"  {room:14}{n:8} files")
    print(f"parameters of the search: {len(signature(moew.MetricSearch).parameters)}")
    print(f"names that rooms export: {exported_names()}")


def lines_by_room() -> Counter[str]:
    """Lines of Python by the room, or the file beside the rooms."""
    found: Counter[str] = Counter()
    for path in HOUSE.rglob("*.py"):
        found[path.relative_to(HOUSE).parts[0]] += len(path.read_text().splitlines())
    return found


def fit() -> None:
    """Fit as it comes, but for fewer candidates."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4))
    y = (X[:, 0] + rng.standard_normal(300) > 1).astype(int)
    search = moew.MetricSearch(LogisticRegression(), metric="f1", n_candidates=20, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(X[:200], y[:200], validation=(X[200:], y[200:]))


def functions_called() -> set[tuple[str, str]]:
    """The functions of moew, by file and name, that a fit calls."""
    called: set[tuple[str, str]] = set()

    def look(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(HOUSE)) and not code.co_name.startswith("<"):
            called.add((code.co_filename, code.co_qualname))

    sys.setprofile(look)
    try:
        fit()
    finally:
        sys.setprofile(None)
    return called


def exported_names() -> int:
    """Names that the rooms' `__init__.py` export."""
    n = 0
    for path in HOUSE.rglob("__init__.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                n += sum(alias.asname is not None for alias in node.names)
    return n


if __name__ == "__main__":
    main()
