"""The paper's experiments and what only they need: data, theory, networks of many repeats at once.

Run `python -m experiments NAME`.
"""

from moew.exceptions import MoewError


class OutOfTimeError(MoewError):
    """The time limit of the command has passed; finished batches are kept."""
