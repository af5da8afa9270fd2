"""Store studies in files and databases through Optuna: each trial is a trial of an Optuna study.

`_trials` has the records and what every storage of Optuna's can do, `_journal` and `_database` what several
processes at once and many trials in one write need, `_opening` finds and checks a study, `_patience` tries
again what fails for a moment.
"""

from moew.exceptions import InvalidInputError

try:
    import optuna as _  # noqa: F401
except ImportError as error:
    raise InvalidInputError(
        "a study in a file or a database needs Optuna, which is not installed: pip install 'moew[storage]', "
        "or do without a storage.",
        argument="storage",
    ) from error

from moew.search._storage._opening import open_trials as open_trials
from moew.search._storage._opening import storage_name as storage_name
