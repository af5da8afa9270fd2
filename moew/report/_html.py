"""Pieces of markup that all sections share."""

from __future__ import annotations

from html import escape


def figure(picture: str, words: str = "") -> str:
    """A picture with words under it, or nothing where there is none."""
    if not picture:
        return ""
    caption = f"<figcaption>{escape(words)}</figcaption>" if words else ""
    return f"<figure>{picture}{caption}</figure>"


def section(name: str, title: str, body: str) -> str:
    """A section of the page under a heading."""
    return f'<section id="{name}"><h2>{escape(title)}</h2>{body}</section>'
