"""A real database server for the tests that need one."""

import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def _program(name):
    places = [shutil.which(name), *sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), reverse=True)]
    found = next((str(place) for place in places if place), None)
    return found or pytest.skip(f"PostgreSQL's {name} is not installed")


@pytest.fixture(scope="module")
def server():
    """The URL of a server of our own. PostgreSQL refuses to run as root, so root becomes `postgres`.

    pytest's folders are for root alone, and every run of pytest makes them so again: this one is elsewhere.
    """
    folder = Path(tempfile.mkdtemp(prefix="moew-postgresql-"))
    user = {"user": "postgres", "group": "postgres"} if os.geteuid() == 0 else {}
    if user:
        shutil.chown(folder, **user)
    port = free_port()
    data, log = folder / "data", folder / "log"
    initdb, pg_ctl = _program("initdb"), _program("pg_ctl")
    quiet = {"check": True, "capture_output": True, "cwd": folder, **user}
    subprocess.run([initdb, "-D", data, "-U", "moew", "-A", "trust"], **quiet)
    options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1"
    subprocess.run([pg_ctl, "-D", data, "-o", options, "-l", log, "-w", "start"], **quiet)
    yield f"postgresql+psycopg://moew@127.0.0.1:{port}/postgres"
    subprocess.run([pg_ctl, "-D", data, "-m", "immediate", "stop"], **quiet)
    shutil.rmtree(folder, ignore_errors=True)
