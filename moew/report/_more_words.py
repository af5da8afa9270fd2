"""The verdict in words where there is a bound that the unweighted model does not keep."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def bound_headline(bound: Mapping[str, Any], way: str, keep: str) -> str:
    """Whether what is handed out, the `way`, keeps the bound."""
    if bound["kept"]:
        start = way[:1].upper() + way[1:]
        return f"{start} {keep} {bound['text']} with its margin; the unweighted model does not."
    return f"Nothing that was tried keeps {bound['text']} with its margin."


def bound_why(bound: Mapping[str, Any]) -> str:
    """Why this way is handed out."""
    if bound["kept"]:
        return "Ways that do not keep the bound were left out, whatever they reach by the metric."
    return "It comes closest to the bound, whatever others reach by the metric."


def bound_advice(bound: Mapping[str, Any]) -> str:
    """What to do about it."""
    if bound["kept"]:
        return "Use it if the bound counts, and see below what it costs by the metric."
    return (
        "What is handed out comes closest. Loosen the bound, try more candidates or another model, or give "
        "more rows to judge on: few rows have wide margins."
    )
