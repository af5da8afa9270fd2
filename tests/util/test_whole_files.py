"""Files are written whole or not at all, and an error names the file."""

import errno
import os
import threading

import pytest

from moew._util.whole_files import write_whole, writing
from moew.exceptions import WriteError


def test_a_file_that_cannot_be_written_is_named_and_leaves_nothing(tmp_path):
    path = tmp_path / "result.json"
    path.write_text("before")

    def fill_the_disk(new):
        new.write_text("half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(WriteError, match=r"result\.json cannot be written: No space left.*; make room"):
        write_whole(path, fill_the_disk)
    assert [entry.name for entry in tmp_path.iterdir()] == ["result.json"]
    assert path.read_text() == "before"


def test_an_interruption_leaves_nothing_either(tmp_path):
    def interrupt(new):
        new.write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "new.txt", interrupt)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.EIO, None])
def test_every_error_of_writing_says_what_to_do(number):
    error = OSError("odd") if number is None else OSError(number, os.strerror(number))
    with pytest.raises(WriteError, match="the file cannot be written: .*; .*name"), writing("the file"):
        raise error


def test_a_broken_pipe_stays_one():
    with pytest.raises(BrokenPipeError), writing("standard output"):
        raise BrokenPipeError


def test_a_link_stays_a_link_and_the_file_keeps_its_rights(tmp_path):
    real, link = tmp_path / "real.txt", tmp_path / "link.txt"
    real.write_text("before")
    real.chmod(0o640)
    link.symlink_to(real)
    write_whole(link, lambda new: new.write_text("after"))
    assert link.is_symlink() and real.read_text() == "after" and real.stat().st_mode & 0o777 == 0o640


def test_a_pipe_is_written_to(tmp_path):
    pipe, got = tmp_path / "pipe.txt", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()))
    reader.start()
    write_whole(pipe, lambda new: new.write_text("through"))
    reader.join()
    assert got == ["through"]
