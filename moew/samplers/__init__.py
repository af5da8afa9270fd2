"""Where the next alphas come from: pure functions of what is known, and the domains they search."""

from moew.samplers._cover import CoverSearch as CoverSearch
from moew.samplers._domains import Ball as Ball
from moew.samplers._domains import Box as Box
from moew.samplers._gp_bucb import GpBucb as GpBucb
from moew.samplers._random import RandomSearch as RandomSearch
from moew.samplers._resolve import resolve_search as resolve_search
