"""Find a data file, or download it, and check that its content is the expected one."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import io
import os
import tempfile
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from moew.exceptions import MoewError

_SECONDS = 60  # timeout of a download
_MOST_BYTES = 1 << 28  # the largest download


class DataFileError(MoewError, OSError):
    """A file of a dataset cannot be found, downloaded or verified; the message says what was tried."""


@dataclass(frozen=True)
class Source:
    """The URL of a file, gzipped or not, or of a zip archive that contains it as `member`."""

    url: str
    member: str | None = None


@dataclass(frozen=True)
class DataFile:
    """A data file, identified by its content.

    name : its path below a data folder, with or without ".gz" at the end
    sha256, size : of the decompressed content, because two gzips of the same content differ
    sources : where it can be downloaded from
    origin : for a file without sources, what it was made from and why that is not done here
    """

    name: str
    sha256: str
    size: int
    sources: tuple[Source, ...] = ()
    origin: str = ""


def read_files(files: Sequence[DataFile]) -> list[bytes]:
    """The checked contents of all `files` of one dataset, downloaded into the cache where needed."""
    return [_read(file, files) for file in files]


def read_file(file: DataFile) -> bytes:
    """The checked content of the only file of a dataset."""
    return _read(file, [file])


def find(file: DataFile) -> Path | None:
    """The path of the file in MOEW_DATA or else in the cache; None where it is in neither."""
    for folder in _folders():
        for path in (folder / f"{file.name}.gz", folder / file.name):
            if path.is_file():
                return path
    return None


def _folders() -> list[Path]:
    named = os.environ.get("MOEW_DATA")
    if named and not Path(named).is_dir():
        raise DataFileError(f"MOEW_DATA names {named!r}, which is not a folder. Correct it or unset it.")
    return ([Path(named)] if named else []) + [_cache()]


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "moew"


def _read(file: DataFile, siblings: Sequence[DataFile]) -> bytes:
    path = find(file)
    if path is None:
        return _download(file, siblings)
    try:
        return _checked(path.read_bytes(), file, None)
    except _WrongContentError as wrong:
        # Going on to the next folder would hide that the user's own copy is a different file.
        raise DataFileError(
            f"{path} is not the file that moew knows: {wrong}. Remove it or put the right one in its place."
        ) from wrong


class _WrongContentError(Exception):
    """The content is not that of the expected file."""


def _checked(raw: bytes, file: DataFile, member: str | None) -> bytes:
    """The content in `raw`, which may be a zip or a gzip; never more than one byte beyond the known size."""
    try:
        if member is not None:
            with zipfile.ZipFile(io.BytesIO(raw)) as archive, archive.open(member) as part:
                content = part.read(file.size + 1)
        elif raw[:2] == b"\x1f\x8b":
            with gzip.open(io.BytesIO(raw)) as stream:
                content = stream.read(file.size + 1)
        else:
            content = raw
    except (OSError, EOFError, KeyError, RuntimeError, zlib.error, zipfile.BadZipFile) as error:
        raise _WrongContentError(f"it cannot be decompressed ({error})") from error
    if len(content) != file.size:
        longer = f"{len(content)}" if len(content) < file.size else f"more than {file.size}"
        raise _WrongContentError(f"its content has {longer} bytes instead of {file.size}")
    found = hashlib.sha256(content).hexdigest()
    if found != file.sha256:
        raise _WrongContentError(f"its content has SHA-256 {found} instead of {file.sha256}")
    return content


def _download(file: DataFile, siblings: Sequence[DataFile]) -> bytes:
    """Download from the first source that has the right content, and keep it in the cache."""
    tried = [f"{folder} has no such file" for folder in _folders()]
    for source in file.sources:
        try:
            content = _checked(_fetch(source.url), file, source.member)
        except urllib.error.HTTPError as error:
            error.close()
            tried.append(f"{source.url} answered {error.code} {error.reason}")
        except _WrongContentError as error:
            tried.append(f"{source.url} has another file: {error}")
        except (OSError, http.client.HTTPException) as error:
            tried.append(f"{source.url} cannot be reached: {error}")
        else:
            _keep(content, _cache() / file.name)
            return content
    if not file.sources:
        tried.append(f"it cannot be downloaded: {file.origin}")
    names = ", ".join(f"{sibling.name}[.gz]" for sibling in siblings)
    raise DataFileError(
        f"{file.name} was not found:\n  - "
        + "\n  - ".join(tried)
        + f"\nSet the environment variable MOEW_DATA to a folder with: {names}."
    )


def _fetch(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=_SECONDS) as response:
        raw: bytes = response.read(_MOST_BYTES + 1)
        declared = response.headers.get("Content-Length")
    if len(raw) > _MOST_BYTES:
        raise _WrongContentError(f"it has more than {_MOST_BYTES} bytes")
    # A read with a limit does not complain by itself when the connection ends early.
    if declared is not None and len(raw) < int(declared):
        raise http.client.IncompleteRead(raw, int(declared) - len(raw))
    return raw


def _keep(content: bytes, path: Path) -> None:
    """Write the whole file or nothing, also when two processes download at the same time."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, part = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}.")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(content)
            Path(part).replace(path)
        except BaseException:
            Path(part).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise DataFileError(
            f"{path.name} was downloaded but cannot be kept in {path.parent} ({error}). Set XDG_CACHE_HOME "
            "to a folder that can be written to."
        ) from error
