"""Refuse zip files that would fill the memory, before anything in them is unpacked."""

from __future__ import annotations

from io import BytesIO
from typing import Any
from zipfile import ZipFile

from moew.exceptions import Argument, InvalidInputError
from moew.saving._damage import reading

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
