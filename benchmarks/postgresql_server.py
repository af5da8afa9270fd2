"""A PostgreSQL server of our own, for benchmarks and tests that need a real one."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any


class NotInstalledError(Exception):
    """A program of PostgreSQL, or its driver, is not there."""


def free_port() -> int:
    """A port of this machine that nobody uses."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


class Server(str):
    """The URL of a running server, which can be stopped and started again."""

    _control: Callable[..., Any]

    def stop(self) -> None:
        """Stop it at once, as a crash would."""
        self._control("-m", "immediate", "stop")

    def start(self) -> None:
        """Start it again."""
        self._control("-w", "start")

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)  # other processes get the URL


@contextlib.contextmanager
def postgresql_server() -> Iterator[Server]:
    """The URL of a server that runs within. PostgreSQL refuses to run as root, so root becomes `postgres`.

    Its folder is a new one: those of pytest are for root alone, and every run of pytest makes them so again.
    """
    initdb, pg_ctl = _program("initdb"), _program("pg_ctl")
    folder = Path(tempfile.mkdtemp(prefix="moew-postgresql-"))
    try:
        user = {"user": "postgres", "group": "postgres"} if os.geteuid() == 0 else {}
        if user:
            shutil.chown(folder, "postgres", "postgres")
        port = free_port()
        data, log = folder / "data", folder / "log"
        quiet: dict[str, Any] = {"capture_output": True, "cwd": folder, **user}
        subprocess.run([initdb, "-D", data, "-U", "moew", "-A", "trust"], check=True, **quiet)
        options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1"

        def control(*words: str) -> None:
            subprocess.run([pg_ctl, "-D", data, "-o", options, "-l", log, *words], check=True, **quiet)

        server = Server(f"postgresql://moew@127.0.0.1:{port}/postgres")
        server._control = control
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _program(name: str) -> str:
    places = [shutil.which(name), *sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), reverse=True)]
    found = next((str(place) for place in places if place), None)
    if found is None:
        raise NotInstalledError(f"PostgreSQL's {name} is not installed")
    return found
