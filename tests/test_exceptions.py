"""Errors carry the argument they are about, and are worded by whoever shows them."""

import pickle

from moew.exceptions import Argument, InPython, InvalidInputError, MoewWarning


def in_capitals(argument: Argument) -> str:
    return argument.name.upper() + (f" {argument.value}" if argument.has_value else "")


def test_a_message_names_arguments_in_the_words_of_its_reader():
    error = InvalidInputError(
        "use ", Argument("decision", None), " or another ", Argument("metric"), InPython(" (see help)"), "."
    )
    assert str(error) == "use decision=None or another metric (see help)."
    assert error.worded(in_capitals) == "use DECISION None or another METRIC."
    assert error.argument is None


def test_errors_and_warnings_survive_pickling():
    for kind in (InvalidInputError, MoewWarning):
        error = kind(Argument("radius"), " must be positive, got ", str(-1), ".", argument="radius")
        again = pickle.loads(pickle.dumps(error))
        assert (str(again), again.argument) == (str(error), "radius")
        assert again.worded(in_capitals) == "RADIUS must be positive, got -1."


def test_a_plain_text_is_a_message_too():
    assert InvalidInputError("no rows").worded(in_capitals) == "no rows"
