"""Messages of the library in the words of the command line: options instead of Python's arguments."""

from __future__ import annotations

import re

# What the library advises, and the same here. Each is met by a wrong usage in the tests.
_WORDS = [
    (r"got <U\d+", "got texts"),
    (r"use decision=None", "leave out --decision"),
    (
        r"pass X_val and y_val, or validation as a share; with a splitter",
        "--validation or --validation-share; with --folds",
    ),
    (
        r"pass X_val and y_val, or a splitter as validation",
        "or name a file of validation rows with --validation",
    ),
    (r"honest=['\"]holdout['\"]", "--honest holdout"),
    (r"decision=FixedThreshold\(([^()]+)\)", r"--decision score=\1"),
    (r"(base_weights|embedding|response)='(\w+)'", r"--\1 \2"),
    (r", and warnings\.simplefilter\('ignore', MoewWarning\) if this is meant", ""),
    (r", or name (its argument|the argument that does) with sample_weight_name", ""),
    (r"(the metric's )?pos_label=", "--positive "),
    (r"(rows') sample_weight must", r"\1 --sample-weight must"),
    (r"\(on='(\w+)'\)", r"(@\1)"),
    (r"pass metric=make_metric\(\w+, (.*?)\)(?=[,.])", r"say \1"),
    (r"greater_is_better=False", "--lower-is-better"),
    (
        r"the storage already holds a study .*",
        "the run was begun with other data, another model or metric, or other settings of the search; take "
        "the same to go on with it, another --out, or --force to begin anew.",
    ),
    (r"not asked for \(honest=None\)", "not asked for"),
    (r", --response", " --response"),
    (r"or the scorer's name: metric='(\w+)'", r"or name the scorer: --metric \1"),
]
_NUMPY = re.compile(
    r"np\.(?:str_|bool_?|u?int\d+|float\d+)\(('[^']*'|\"[^\"]*\"|[^()]*)\)"
)  # as np.str_('a'), which NumPy shows for 'a'


def on_the_command_line(message: str) -> str:
    """The message on one line, with options where it spoke of Python."""
    line = _NUMPY.sub(r"\1", " ".join(message.split()))
    for pattern, words in _WORDS:
        line = re.sub(pattern, words, line)
    return line
