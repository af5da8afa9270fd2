"""Cases that end in known ways; they import little, so that processes for them start fast."""

import os
import time

from fuzz_cases import WrongAnswer


def works(rng):
    assert rng.random() < 1


def is_wrong(rng):
    raise WrongAnswer("two and two are five")


def sleeps(rng):
    time.sleep(60)


def leaves(rng):
    os._exit(3)
