"""Text from files cannot give orders to a terminal."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moew._printable import printable, shortened
from moew.exceptions import Argument, InvalidInputError, MoewWarning, StateError


@given(st.text(alphabet=st.characters()))
def test_nothing_that_a_terminal_obeys_is_left(text):
    shown = printable(text)
    assert all(c in "\n\t" or unicodedata.category(c)[0] not in "C" for c in shown)
    assert printable(shown) == shown


@given(st.text(alphabet=st.characters(categories=("L", "N", "P", "S", "Zs"))))
def test_words_of_any_language_stay_as_they_are(text):
    assert printable(text) == text


@pytest.mark.parametrize("odd", ["\x1b[2K", "\x9b2K", "\r", "\u202e", "\u2028", "\udc80", "\x08", "\x7f"])
def test_messages_show_control_characters_as_escapes(odd):
    for error in (StateError(f"{odd}kind"), InvalidInputError(Argument(f"a{odd}")), MoewWarning(odd)):
        assert odd not in str(error) and "\\" in str(error)
        assert odd not in error.worded(lambda argument: argument.name)


def test_long_messages_are_cut_with_a_note():
    text = "begin" + "x" * 5_000_000 + "end"
    for shown in (str(StateError(text)), StateError(text).worded(str), shortened(text)):
        assert len(shown) < 5000 and shown.startswith("begin") and shown.endswith("end")
        assert "characters are left out" in shown
    assert shortened("x" * 4000) == "x" * 4000
