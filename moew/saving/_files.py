"""The one file of a saved search: written and read; errors in words, its unpacked size, its versions."""

from __future__ import annotations

import json
import platform
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile, ZipInfo

from moew._util.whole_files import write_whole
from moew.exceptions import Argument, InvalidInputError, MoewError, MoewWarning, StateError


@contextmanager
def reading(path: Any) -> Iterator[None]:
    """Turn every error within into a StateError about the file."""
    try:
        yield
    except FileNotFoundError as error:
        raise InvalidInputError(f"there is no file {path}.") from error
    except (OSError, MemoryError):
        raise
    except MoewError as error:
        raise StateError(f"{path} cannot be used: {error}") from error
    except Exception as error:
        raise damaged(path, error) from error


@contextmanager
def using(path: Any) -> Iterator[None]:
    """As `reading`, but errors about the user's rows stay as they are."""
    try:
        yield
    except (MoewError, OSError, MemoryError):
        raise
    except Exception as error:
        raise damaged(path, error) from error


def damaged(path: Any, error: Exception) -> StateError:
    """What is wrong with a file whose reading raised `error`."""
    return StateError(
        f"{path} is damaged or of another version: {in_words(error)}. Make it again, or take a copy of it."
    )


def in_words(error: Exception) -> str:
    """What an error in reading says about the content, as a sentence without its full stop."""
    if isinstance(error, KeyError):
        return f"it has no entry {', '.join(map(repr, error.args))}"
    if isinstance(error, json.JSONDecodeError):
        return f"its JSON cannot be read on from line {error.lineno}, column {error.colno}"
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start} is no text"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, BadZipFile | EOFError):
        return "it is no zip file, or its end is missing"
    if isinstance(error, MoewError):
        return str(error).rstrip(".")
    what = str(error).rstrip(".") or "no more is known"
    return f"something in it is not as moew writes it ({type(error).__name__}: {what})"


def write_files(path: Path, files: Mapping[str, bytes]) -> None:
    """Write files into one, a zip that is not compressed, for its owner alone."""

    def pack(new: Path) -> None:
        with ZipFile(new, "w") as packed:
            for name, content in files.items():
                packed.writestr(ZipInfo(name), content)  # without the time: the same bytes each time

    write_whole(path, pack, private=True)


def read_files(path: Path, trusted: bool = False) -> dict[str, bytes]:
    """The files in one that `write_files` wrote; a damaged one, or one that would fill the memory, is an
    error."""
    with reading(path):
        data = path.read_bytes()
    if not trusted:
        check_unpacked_size(data, path)
    with reading(path):
        packed = ZipFile(BytesIO(data))  # from memory, where no damage is an error of the disk
    files = {}
    with packed:
        for name in packed.namelist():
            with reading(path / name):
                files[name] = packed.read(name)
    return files


# What moew writes is not compressed, so that it takes as much memory as the file is large. Others may have
# compressed it, which may take this much; a file of a few megabytes could hold a thousand times its size.
MOST_UNPACKED = 512 * 2**20


def check_unpacked_size(content: bytes, path: Any) -> None:
    """Raise if what a zip file holds is larger than the file itself and than MOST_UNPACKED.

    The sizes are those that the file states; zipfile reads no more of an entry than its stated size.
    """
    on_disk = len(content)
    with reading(path), ZipFile(BytesIO(content)) as packed:
        unpacked = sum(entry.file_size for entry in packed.infolist())
    if unpacked > max(MOST_UNPACKED, on_disk):
        raise InvalidInputError(
            f"{path} has {_megabytes(on_disk)} and would take {_megabytes(unpacked)} when it is unpacked. "
            "What moew saves is not compressed; compressed files are unpacked up to "
            f"{_megabytes(MOST_UNPACKED)}, so that none made on purpose fills the memory. If you trust who "
            "made it, add ",
            Argument("trusted", True),
            ".",
            argument="trusted",
        )


def _megabytes(n: int) -> str:
    return f"{n / 2**20:,.1f} MB"


# Packages that may matter to a model, and their modules.
_PACKAGES = {
    "moew": "moew",
    "scikit-learn": "sklearn",
    "numpy": "numpy",
    "jax": "jax",
    "lightgbm": "lightgbm",
    "xgboost": "xgboost",
    "xgboost-cpu": "xgboost",
    "skops": "skops",
}


def versions(loaded_only: bool = False) -> dict[str, str]:
    """The versions of Python and of the packages that are installed, or loaded, and may matter to a model."""
    found = {"python": platform.python_version()}
    for package, module in _PACKAGES.items():
        if loaded_only and module not in sys.modules:
            continue
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def warn_of_other_versions(path: Any, saved: Mapping[str, str]) -> None:
    """Give a warning that names the versions that differ from those of this process."""
    here = versions()
    if not isinstance(saved, dict) or not all(isinstance(text, str) for text in saved.values()):
        raise StateError("its versions are no texts.")
    other = [
        f"{name} {saved[name]} (here {here.get(name, 'none')})"
        for name in saved
        if saved[name] != here.get(name)
    ]
    if other:
        warnings.warn(
            f"{path} was saved with {', '.join(other)}: its predictions may differ, or it may not load.",
            MoewWarning,
            stacklevel=3,
        )
