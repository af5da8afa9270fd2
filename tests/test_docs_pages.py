"""The code on the documentation's pages runs, and prints what the pages say but for the numbers."""

import re
import warnings
from importlib.util import find_spec
from pathlib import Path

import pytest

from moew import ExampleWeightSearch

DOCS = Path(__file__).parents[1] / "docs"
PAGES = ["start.md", "migration.md", "when-weights-cannot-help.md"]


def without_numbers(output: str) -> list[list[str]]:
    """The words of each line, numbers as "#"; notes depend on where a search ended."""
    lines = [line for line in output.splitlines() if line.strip() and not line.startswith("Note:")]
    return [re.sub(r"[-+]?\d[\d,.]*(e-?\d+)?", "#", line).split() for line in lines]


@pytest.mark.parametrize("page", PAGES)
def test_every_python_block_runs(page, monkeypatch, capsys):
    """With smaller searches than on the page."""
    search = ExampleWeightSearch.fit_prepared

    def small_search(self, *parts, **more):
        return search(self.set_params(n_batches=1, batch_size=2), *parts, **more)

    monkeypatch.setattr(ExampleWeightSearch, "fit_prepared", small_search)
    text = (DOCS / page).read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", text, flags=re.DOTALL)
    assert blocks
    names: dict[str, object] = {}
    for code, output in blocks:
        of_fairlearn = "fairlearn" in code
        if of_fairlearn and find_spec("fairlearn") is None:
            continue  # tests/heavy/test_documentation.py needs it
        with warnings.catch_warnings():
            if of_fairlearn:
                warnings.simplefilter("ignore")  # pandas complains about fairlearn's own code
            exec(compile(code.replace("repeats=5", "repeats=2"), page, "exec"), names)
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
