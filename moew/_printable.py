"""Text that comes from files, made safe to show: a terminal obeys control characters that are printed to it.

A name with escape sequences could delete or rewrite the lines around it, such as the question whether to
trust a file; marks that change the direction of writing could reorder them.
"""

from __future__ import annotations

import unicodedata

_KEPT = {"\n", "\t"}
_MOST = 4000  # characters of a message that are kept; users' exceptions can hold whole tables


def printable(text: str) -> str:
    r"""The text with control characters, and others that are not shown as they are, written as escapes.

    Line breaks and tabs stay.

    >>> print(printable("run\x1b[2K\u202e"))
    run\x1b[2K\u202e
    """
    if text.isprintable():
        return text
    return "".join(character if _is_shown(character) else _escape(character) for character in text)


def shortened(text: str, most: int = _MOST) -> str:
    """The text, or where it has more than `most` characters its beginning and end, with a note in between."""
    if len(text) <= most:
        return text
    n_end = most // 4  # the end of a message often says what went wrong
    n_begin = most - n_end
    return f"{text[:n_begin]} … ({len(text) - most:,} characters are left out) … {text[-n_end:]}"


def _is_shown(character: str) -> bool:
    return character.isprintable() or character in _KEPT or unicodedata.category(character) == "Zs"


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
