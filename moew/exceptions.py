"""One base for every error and one for every warning, so that callers can catch them all."""


class MoewError(Exception):
    """Base of every error that moew raises on purpose."""


class InvalidInputError(MoewError, ValueError):
    """What was passed in cannot be used; the message says what was got and what to do."""


class UnsupportedEstimatorError(MoewError, TypeError):
    """The estimator cannot be trained with example weights the way it is set up."""


class UndefinedMetricError(MoewError, ValueError):
    """The metric has no value on these rows (a class is missing, nothing was selected, …)."""


class SearchFailedError(MoewError, ValueError, TypeError):
    """No candidate could be trained and scored; the message shows the first failure.

    Where all fail, the cause is nearly always bad input, which the estimator would have reported as one
    of the two built-in errors.
    """


class TrainingDivergedError(MoewError, FloatingPointError):
    """Training ended with parameters that are not finite."""


class StateError(MoewError, ValueError):
    """A saved state cannot be written or read; the message says what to do."""


class DataFileError(MoewError, OSError):
    """A file of a dataset cannot be found, downloaded or trusted; the message says what was tried."""


class MoewWarning(UserWarning):
    """Base of every warning that moew gives."""
