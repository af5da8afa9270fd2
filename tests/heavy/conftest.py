"""A real database server for the tests that need one."""

import pytest
from benchmark_modules import importable

with importable():
    from postgresql_server import NotInstalledError, free_port, postgresql_server

__all__ = ["free_port"]


@pytest.fixture(scope="module")
def server():
    """The URL of a server of our own."""
    try:
        with postgresql_server() as url:
            yield url
    except NotInstalledError as missing:
        pytest.skip(str(missing))
