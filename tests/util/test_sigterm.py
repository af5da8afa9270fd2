"""SIGTERM ends a fit with a storage like Ctrl-C, unless the user handles it."""

import contextlib
import signal
import sys
import threading

import pytest

from moew._util.processes import sigterm_like_ctrl_c

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")


@pytest.fixture
def default_sigterm():
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGTERM, before)


def test_sigterm_interrupts_and_then_leaves_the_program(default_sigterm):
    stored = []
    with pytest.raises(SystemExit) as left, sigterm_like_ctrl_c():
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            stored.append("what was computed")
    assert left.value.code == 143 and stored
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_an_interruption_that_python_ignored_leaves_the_program_in_the_end(default_sigterm):
    with pytest.raises(SystemExit), sigterm_like_ctrl_c(), contextlib.suppress(KeyboardInterrupt):
        signal.raise_signal(signal.SIGTERM)


def test_nothing_changes_where_the_user_handles_sigterm_or_in_other_threads(default_sigterm):
    came = []
    thread = threading.Thread(target=lambda: came.append(sigterm_like_ctrl_c().__enter__()))
    thread.start()
    thread.join()
    assert came == [None] and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    signal.signal(signal.SIGTERM, lambda *_: came.append("handled"))
    with sigterm_like_ctrl_c():
        signal.raise_signal(signal.SIGTERM)
    assert came == [None, "handled"]
