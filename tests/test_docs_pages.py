"""Code and commands on the documentation's pages run, and print what the pages say but for the numbers."""

import re
from importlib.util import find_spec

import pytest
from pages import DOCS, blocks, commands, make_searches_small, run_command, run_python

PAGES = [("start.md", "report.md"), ("migration.md",), ("when-weights-cannot-help.md",)]  # report goes on


def without_numbers(output: str) -> list[list[str]]:
    """The words of each line, numbers as "#"; notes depend on where a search ended."""
    lines = [line for line in output.splitlines() if line.strip() and not line.startswith("Note:")]
    return [re.sub(r"[-+]?\d[\d,.]*(e-?\d+)?", "#", line).split() for line in lines]


@pytest.mark.parametrize("pages", PAGES, ids=" and ".join)
def test_every_block_runs(pages, own_folder, monkeypatch, capsys):
    """With smaller searches than on the page."""
    make_searches_small(monkeypatch)
    names: dict[str, object] = {}
    for page in pages:
        for language, code, output in blocks(DOCS / page):
            if language == "sh":
                for command, text in commands(code.replace("--repeats 5", "--repeats 2")):
                    run_command(command, text)
            elif "fairlearn" not in code or find_spec("fairlearn"):  # heavy/test_documentation.py has it
                run_python(code.replace("repeats=5", "repeats=2"), page, names)
                printed = capsys.readouterr().out
                if output:
                    assert without_numbers(printed) == without_numbers(output)


def test_every_page_is_in_a_table_of_contents():
    listed = set()
    for page in ("index.md", "guide.md", "background.md"):
        text = (DOCS / page).read_text(encoding="utf-8")
        for entries in re.findall(r"```\{toctree\}\n(.*?)```", text, re.DOTALL):
            listed |= set(entries.split())
    assert {path.stem for path in DOCS.glob("*.md")} - {"index"} <= listed


def test_every_picture_is_there_and_shown():
    shown = {
        name for page in DOCS.glob("*.md") for name in re.findall(r"\]\(images/([^)]+)\)", page.read_text())
    }
    assert shown == {path.name for path in (DOCS / "images").iterdir()}
