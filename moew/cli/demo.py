"""`moew demo`: Figure 1 of the paper."""

from __future__ import annotations

from pathlib import Path

import click

from moew.cli.paper import EXPERIMENTS, run


def command() -> click.Command:
    @click.command()
    @click.option("--jobs", type=click.IntRange(min=1), default=2, show_default=True, metavar="N")
    @click.option(
        "--repeats",
        type=click.IntRange(min=2),
        default=EXPERIMENTS["toy"].repeats,
        show_default=True,
        metavar="N",
        help="Of the whole experiment, for margins.",
    )
    @click.option(
        "--out",
        type=click.Path(file_okay=False, path_type=Path),
        default=Path("out"),
        show_default=True,
        help="Folder of all results.",
    )
    @click.pass_context
    def demo(ctx: click.Context, jobs: int, repeats: int, out: Path) -> None:
        """Figure 1 of the paper: a table here, a picture in a folder.

        Precision at 95 % recall with uniform, random, importance and learned
        weights. Run again, it goes on where it was interrupted.
        """
        given = {"repeats": repeats, "n_jobs": jobs, "out": out, "model": "logistic", "search": "gp_bucb"}
        status, line = run("toy", given, click.echo)
        if line:
            click.echo(f"moew: {line}", err=True)
        else:
            folder = out / "toy"
            click.echo(f"\nThe picture: {folder / 'figure-1.png'}\nThe numbers: {folder / 'toy.json'}")
        ctx.exit(status)

    return demo
