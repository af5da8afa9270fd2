"""The lock between processes, which ends with its holder."""

import subprocess
import sys
import threading

import pytest

from moew._util import file_lock
from moew._util.file_lock import FileLock

HOLDER = """
import sys
from pathlib import Path
from moew._util.file_lock import FileLock

with FileLock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "file"
    path.touch()
    return path


def test_a_killed_holder_leaves_no_lock(path, monkeypatch):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout.readline() == b"held\n"
    with monkeypatch.context() as patch:
        patch.setattr(file_lock, "_LONGEST_WAIT", 0.1)
        with pytest.raises(OSError, match="another process holds its lock"):
            FileLock(path).acquire()
    holder.kill()
    holder.communicate()
    with FileLock(path):
        assert list(path.parent.iterdir()) == [path]


def test_the_holder_may_take_it_again_and_others_wait(path):
    lock, other, order = FileLock(path), FileLock(path), []

    def wait():
        with other:
            order.append("other")

    with lock, lock:
        thread = threading.Thread(target=wait)
        thread.start()
        with lock:
            thread.join(0.1)
            order.append("holder")
    thread.join()
    assert order == ["holder", "other"]


def test_a_file_that_is_gone_is_told_and_leaves_the_lock_free(path):
    lock = FileLock(path)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        lock.acquire()
    path.touch()
    with lock:
        pass
