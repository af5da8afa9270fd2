"""Write settings as TOML, which the standard library can only read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any


def toml_text(settings: Mapping[str, Any], comment: str = "") -> str:
    """Settings (texts, numbers, truths and lists of them) as a TOML file; None is left out."""
    lines = [f"# {line}" for line in comment.splitlines()]
    lines += [f"{_key(name)} = {_value(value)}" for name, value in settings.items() if value is not None]
    return "\n".join([*lines, ""])


def _key(name: str) -> str:
    bare = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
    return name if bare else _value(name)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        # JSON's escapes are TOML's, but for one character that TOML wants escaped, too.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Sequence):
        return f"[{', '.join(map(_value, value))}]"
    raise TypeError(f"no TOML for {type(value).__name__}")
