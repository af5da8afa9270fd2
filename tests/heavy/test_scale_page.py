"""The programs and the commands of docs/scale.md, on real clusters and a real database on this machine."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import gettempdir
from uuid import uuid4

import pytest
from conftest import free_port
from pages import DOCS, ROOT

pytestmark = pytest.mark.heavy
PAGE = (DOCS / "scale.md").read_text(encoding="utf-8")
BIN = Path(sys.executable).parent
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": str(ROOT),
    "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
    "PYTHONWARNINGS": "ignore",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    # A folder of its own (not pytest's: paths of sockets must be short), so that neither this cluster is
    # taken for one of the user's nor the other way round; its processes are known by it.
    "RAY_TMPDIR": f"{gettempdir()}/ray-{uuid4().hex[:8]}",
}


def commands() -> set[str]:
    """Every command of the page, without its remark."""
    lines = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]
    return {line.partition("  #")[0].strip() for line in lines}


class Runner:
    """Runs the page's commands in a folder with its programs, and remembers which."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.done: set[str] = set()

    def run(self, command: str, **places: object) -> str:
        """What it prints; `places` are filled in."""
        printed, said = self.folder / "printed", self.folder / "said"
        with (
            printed.open("w") as out,
            said.open("w") as err,
        ):  # not pipes, which what it starts would keep open
            done = subprocess.run(
                **self._call(command, places), stdout=out, stderr=err, timeout=300, check=False
            )
        assert done.returncode == 0, said.read_text()[-3000:]
        return printed.read_text()

    @contextmanager
    def running(self, command: str, **places: object):
        call = self._call(command, places)
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        with subprocess.Popen(**call, **quiet) as process:
            yield process
            process.terminate()

    def _call(self, command: str, places: dict[str, object]) -> dict[str, object]:
        assert command in commands()
        self.done.add(command)
        for name, value in places.items():
            command = command.replace(name, str(value))
        words, variables = shlex.split(command), {}
        while "=" in words[0]:
            name, _, value = words.pop(0).partition("=")
            variables[name] = value
        return {"args": words, "env": ENVIRONMENT | variables, "cwd": self.folder, "text": True}


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scale")
    for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        if (named := re.match(r"# (\w+\.py)\n", code)) is not None:  # others are parts, to read
            (folder / named[1]).write_text(code, encoding="utf-8")
    Path(ENVIRONMENT["RAY_TMPDIR"]).mkdir()
    yield Runner(folder)
    shutil.rmtree(ENVIRONMENT["RAY_TMPDIR"], ignore_errors=True)


@pytest.fixture(scope="module")
def alone(page):
    return found(page.run("python search.py"))


def end_cluster() -> None:
    """End what was started here, and not, as `ray stop` would, every cluster on the machine."""
    import psutil

    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get("RAY_TMPDIR") == ENVIRONMENT["RAY_TMPDIR"]:
                process.kill()


def found(printed: str) -> str:
    """The score and alpha, before which stands the backend."""
    return printed.strip().splitlines()[-1].split(" ", 1)[1]


def test_one_machine(page, alone):
    assert re.match(r"0\.\d+ \[", alone)
    assert found(page.run("python search.py loky")) == alone


def test_dask(page, alone):
    pytest.importorskip("distributed", reason="dask[distributed] is not installed")
    assert found(page.run("python search.py dask")) == alone
    places = {"SCHEDULER": "127.0.0.1", "8799": free_port()}
    with (
        page.running("dask scheduler --port 8799", **places),
        page.running("dask worker tcp://SCHEDULER:8799 --nworkers 2 --nthreads 1", **places),
    ):
        assert found(page.run("python search.py dask tcp://SCHEDULER:8799", **places)) == alone


def test_ray(page, alone):
    pytest.importorskip("ray", reason="ray is not installed")
    assert found(page.run("python search.py ray")) == alone
    places = {"HEAD": "127.0.0.1", "6399": free_port()}
    try:
        page.run("ray start --head --port 6399", **places)
        page.run("RAY_AUTH_MODE=token ray start --address HEAD:6399", **places)
        assert found(page.run("RAY_ADDRESS=auto python search.py ray", **places)) == alone
    finally:
        end_cluster()


def test_a_shared_study(page, server):
    pytest.importorskip("psycopg", reason="psycopg (the PostgreSQL driver) is not installed")
    command = "python worker.py postgresql://moew@DATABASE:5432/postgres 8"
    host, _, port = server.partition("@")[2].partition("/")[0].partition(":")
    places = {"DATABASE": host, "5432": port}
    with page.running(command, **places) as other:
        page.run(command, **places)
        assert other.wait(120) == 0
    assert re.match(r"\d+ 0\.\d+ \[", page.run(command, **places))


def test_these_are_all_commands_of_the_page(page):
    """Comes last: those that install something are looked at only."""
    installs = {command for command in commands() if command.startswith("pip install")}
    assert commands() - installs - page.done == set()
