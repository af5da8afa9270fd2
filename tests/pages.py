"""Pages of the documentation as a reader would follow them: their code and commands, one after another."""

import re
import shlex
import subprocess
import sys
import tomllib
import warnings
from collections.abc import Iterator
from dataclasses import replace
from importlib import invalidate_caches
from pathlib import Path
from typing import NamedTuple

from tables import moew

from moew import MetricSearch
from moew.embedding import AutoencoderEmbedding

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
_BLOCK = re.compile(r"```(python|sh)\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)


class Block(NamedTuple):
    language: str  # python or sh
    code: str
    output: str  # what the page says it prints; empty where it says nothing


def blocks(path: Path) -> list[Block]:
    """Everything on a page that runs."""
    found = [Block(*parts) for parts in _BLOCK.findall(path.read_text(encoding="utf-8"))]
    assert found
    return found


def make_searches_small(monkeypatch) -> None:
    """Two candidates for every search, whatever the page says, and the default embedding trained shortly."""
    settings = MetricSearch.settings
    start = AutoencoderEmbedding.__init__
    short = tuple(100 if default == 10_000 else default for default in start.__defaults__)

    def small_settings(self):
        return replace(settings.fget(self), n_candidates=2, batch_size=2)

    monkeypatch.setattr(MetricSearch, "settings", property(small_settings))
    monkeypatch.setattr(start, "__defaults__", short)


def run_python(code: str, page: str, names: dict[str, object]) -> None:
    with warnings.catch_warnings():
        if "fairlearn" in code:
            warnings.simplefilter("ignore")  # pandas complains about fairlearn's own code
        exec(compile(code, page, "exec"), names)


def without_numbers(output: str) -> list[list[str]]:
    """The words of each line, numbers as "#", but for what depends on where a search ended: notes, and what
    is selected."""
    ended = ("Note:", "Corrected for the choice among the strategies")
    lines = [line for line in output.splitlines() if line.strip() and not line.startswith(ended)]
    lines = [re.sub(r"( selected$|Selected: .*)", "", line) for line in lines]
    return [re.sub(r"[-+−]?\d[\d,.]*(e-?\d+)?", "#", line).split() for line in lines]


def commands(block: str) -> Iterator[tuple[str, str | None]]:
    """(command, text of its here-document) one after another."""
    place = 0
    lines = block.split("\n")
    while place < len(lines):
        line = lines[place]
        place += 1
        while line.endswith("\\"):
            line = line[:-1] + lines[place]
            place += 1
        text = None
        if line.endswith("<<'EOF'"):
            end = lines.index("EOF", place)
            text = "\n".join(lines[place:end]) + "\n"
            line, place = line.removesuffix("<<'EOF'").strip(), end + 1
        if line.strip():
            yield line, text


def run_command(command: str, text: str | None = None) -> None:
    """Run it in the current folder; what would set up a machine is only looked up."""
    words = shlex.split(command, comments=True)
    if words[0] == "moew":  # in this process, where everything is loaded already
        moew(*words[1:])
    elif words[:2] == ["cat", ">"]:
        Path(words[2]).write_text(text, encoding="utf-8")
        invalidate_caches()
    elif words[0] == "make":
        assert words[1] in make_targets()
    elif words[:2] == ["pip", "install"]:
        assert set(extras(words[2])) <= set(known_extras())
    else:
        assert words[0] == "python", f"nobody knows how to test {command!r}"
        subprocess.run([sys.executable, *words[1:]], input=text, text=True, check=True)


def extras(requirement: str) -> list[str]:
    """Those of `.[a,b]`."""
    return re.findall(r"\w+", requirement.partition("[")[2])


def known_extras() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return list(project["optional-dependencies"])


def make_targets() -> list[str]:
    return re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
