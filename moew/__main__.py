"""`python -m moew`: the same as the command `moew`."""

from moew.cli import main

main()
