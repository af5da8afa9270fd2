"""Where the next alphas come from: pure functions of what is known, and the domains they search."""

from __future__ import annotations

from collections.abc import Callable

from moew.samplers._domains import Ball as Ball
from moew.samplers._domains import BallAndBox as BallAndBox
from moew.samplers._domains import Box as Box
from moew.samplers._gp_bucb import GpBucb as GpBucb
from moew.samplers._samplers import Halving as Halving
from moew.samplers._samplers import RandomSampler as RandomSampler
from moew.samplers._samplers import check_known as check_known
from moew.samplers._samplers import resolve_sampler as resolve_sampler
from moew.types import Sampler

SAMPLERS: dict[str, Callable[[], Sampler]] = {"gp_bucb": GpBucb, "random": RandomSampler}
