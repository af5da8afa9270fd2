"""Exit statuses of the command line; 0 is success."""

FAILED, WRONG_USAGE, INTERRUPTED = 1, 2, 130
