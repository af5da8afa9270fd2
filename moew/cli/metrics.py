"""`moew metrics`: what `--metric` can name."""

from __future__ import annotations

import re
from inspect import getdoc
from typing import Any

import click

from moew.cli import _shown
from moew.cli._ending import one_line_errors


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of tables.")
@one_line_errors()
def metrics(as_json: bool) -> None:
    """List the metrics that --metric can name, with one line each."""
    ours, scorers = _ours(), _scorers()
    if as_json:
        _shown.show_json({"moew": ours, "scikit-learn": scorers})
        return
    click.echo("moew's metrics:\n")
    _show(ours)
    click.echo("\nscikit-learn's scorers (higher is better):\n")
    _show(scorers)
    click.echo(
        "\nColumns come by --metric-column NAME=COLUMN. Your own: --metric module:function,\n"
        'or a program in any language: --metric-command "./score {predictions}".'
    )


def _show(entries: list[dict[str, Any]]) -> None:
    needs = [f" Needs {', '.join(entry['columns'])}." if entry["columns"] else "" for entry in entries]
    rows = [(entry["name"], entry["summary"] + more) for entry, more in zip(entries, needs, strict=True)]
    _shown.show_table(("name", "what"), rows, texts=2)


def _ours() -> list[dict[str, Any]]:
    from moew.metrics import METRICS

    return [
        {
            "name": f"{name}={factory.example}" if factory.example else name,
            "summary": _first_line(factory.make),
            "greater_is_better": (made := factory.make()).greater_is_better,
            "columns": list(made.required_columns),
        }
        for name, factory in METRICS.items()
    ]


def _scorers() -> list[dict[str, Any]]:
    from sklearn.metrics import get_scorer, get_scorer_names

    scorers = {name: get_scorer(name) for name in get_scorer_names()}
    return [
        {"name": name, "summary": _of_scorer(name, scorer), "greater_is_better": True, "columns": []}
        for name, scorer in scorers.items()
        # Without scorers of clusterings and of several labels in a row.
        if ".cluster" not in scorer._score_func.__module__ and not name.endswith("_samples")
    ]


def _of_scorer(name: str, scorer: Any) -> str:
    line = re.sub(":math:`(.*?)`", r"\1", _first_line(scorer._score_func)).removesuffix(".")
    if not line:  # no docstring
        line = name.removeprefix("neg_").replace("_", " ").capitalize()
    average = scorer._kwargs.get("multi_class", ""), scorer._kwargs.get("average", "binary")
    kinds = [kind for kind in average if kind not in ("", "binary")]
    of_classes = f" ({', '.join(kinds)})" if kinds else ""
    return f"{line}{of_classes}{', negated' if scorer._sign < 0 else ''}."


def _first_line(function: Any) -> str:
    """The first sentence of a docstring."""
    paragraph = " ".join((getdoc(function) or "").partition("\n\n")[0].split())
    return paragraph if paragraph.endswith(".") else f"{paragraph.rstrip(':')}."
