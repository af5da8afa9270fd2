"""Checksums of stored records, and the words for those that are not what was written."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from moew.search._study import Told
from moew.types import FloatArray


def checksum(*parts: Any) -> str:
    """Of plain values."""
    return digest(json.dumps(parts).encode())


def digest(content: bytes) -> str:
    """Of bytes, short."""
    return hashlib.sha256(content).hexdigest()[:16]


def end_record(
    told: Told, alpha: FloatArray | None, content: str | None = None, place: list[Any] | None = None
) -> dict[str, Any]:
    """The record of a trial's end, with a checksum that its alpha is in, too.

    `content` is the digest of what it was told with, and `place` is where that lies: [file, start, length].
    """
    if told.content is not None:
        content = digest(told.content)
    rows = None if alpha is None else alpha.tolist()
    return {
        "value": told.value,
        "error": told.error,
        "content": content,
        "place": place,
        "checksum": checksum(told.number, rows, told.value, told.error, content, place),
    }
