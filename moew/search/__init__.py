"""Which alphas to try next: pure functions of what is known."""

from moew.search._cover import CoverSearch as CoverSearch
from moew.search._gp_bucb import GpBucb as GpBucb
from moew.search._random import RandomSearch as RandomSearch
from moew.search._resolve import resolve_search as resolve_search
