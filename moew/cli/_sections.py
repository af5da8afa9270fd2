"""Commands whose help has its options under headings."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    ParamType = click.ParamType[Any]
else:
    ParamType = click.ParamType  # older versions of click have no type variable here


class SectionOption(click.Option):
    """An option that stands under a heading in the help.

    `words` makes the help when it is shown, from names that it would take long to load.
    """

    section: str = "Other"

    def __init__(self, names: list[str], *, words: Callable[[], str] | None = None, **settings: Any) -> None:
        super().__init__(names, **settings)
        self._words = words

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        if self._words is not None:
            self.help = self._words()
        return super().get_help_record(ctx)

    def get_help_extra(self, ctx: click.Context) -> Any:
        extra = super().get_help_extra(ctx)
        extra.pop("range", None)  # ranges are told when they are violated
        return extra


class NameOf(ParamType):
    """A name of a registry, which is loaded when a name is checked."""

    name = "name"

    def __init__(self, registry: Callable[[], Iterable[str]]) -> None:
        self._registry = registry

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        known = list(self._registry())
        if value not in known:
            self.fail(f"{value!r} is not one of {', '.join(map(repr, known))}.", param, ctx)
        return value


class Folds(ParamType):
    """A number of folds from 2 on, "auto" or "none"."""

    name = "folds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        text = str(value)
        if text in ("auto", "none"):
            return text
        if not (text.isdecimal() and int(text) >= 2):
            self.fail(f"{text!r} is not auto, none or a whole number of at least 2.", param, ctx)
        return int(text)


class Jobs(ParamType):
    """A number of models that are trained at a time, from 1 on; -1 for as many as there are cores, "auto" for
    that as soon as it pays."""

    name = "jobs"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        text = str(value)
        if text == "auto":
            return text
        if text != "-1" and not (text.isdecimal() and int(text) >= 1):
            self.fail(f"{text!r} is not a whole number of at least 1, -1 for all cores, or auto.", param, ctx)
        return int(text)


class NumberOr(ParamType):
    """A number from `least` on, or one of a few names."""

    name = "number"

    def __init__(self, *names: str, least: float) -> None:
        self._names, self._least = names, least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        text = str(value)
        if text in self._names:
            return text
        try:
            given = float(text)
        except ValueError:
            given = math.nan
        if not (math.isfinite(given) and given >= self._least):
            names = ", ".join(self._names)
            self.fail(f"{text!r} is not {names} or a number of at least {self._least:g}.", param, ctx)
        return given


class SectionCommand(click.Command):
    """A command whose help has its options under headings."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                sections.setdefault(getattr(parameter, "section", "Output"), []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records, col_max=min(26, formatter.width // 2 - 4))


def with_parameters(parameters: list[click.Parameter]) -> Callable[[Callable[..., Any]], SectionCommand]:
    """A decorator that makes a command of a function; its docstring is the help."""

    def decorate(function: Callable[..., Any]) -> SectionCommand:
        return SectionCommand(
            function.__name__,
            callback=function,
            params=parameters,
            help=function.__doc__,
            no_args_is_help=True,
        )

    return decorate


def option(name: str, **settings: Any) -> SectionOption:
    """The option `--name`."""
    return SectionOption([f"--{name}"], **settings)


def flag(names: str, words: str, hidden: bool = False) -> SectionOption:
    """An option without a value."""
    return SectionOption([names], default=False, help=words, hidden=hidden)


def section(title: str, *parameters: click.Parameter) -> list[click.Parameter]:
    """Put the parameters under a heading of the help."""
    for parameter in parameters:
        parameter.section = title  # type: ignore[attr-defined]
    return list(parameters)
