"""Where the next alphas come from: pure functions of what is known, and the domains they search."""

from collections.abc import Callable

from moew.samplers._annealing import Annealing as Annealing
from moew.samplers._cover import CoverSampler as CoverSampler
from moew.samplers._differential_evolution import DifferentialEvolution as DifferentialEvolution
from moew.samplers._domains import Ball as Ball
from moew.samplers._domains import BallAndBox as BallAndBox
from moew.samplers._domains import Box as Box
from moew.samplers._gp_bucb import GpBucb as GpBucb
from moew.samplers._grid import GridSampler as GridSampler
from moew.samplers._halving import Halving as Halving
from moew.samplers._random import RandomSampler as RandomSampler
from moew.samplers._resolve import resolve_sampler as resolve_sampler
from moew.samplers._swarm import Swarm as Swarm
from moew.types import Sampler

SAMPLERS: dict[str, Callable[[], Sampler]] = {
    "gp_bucb": GpBucb,
    "random": RandomSampler,
    "annealing": Annealing,
    "swarm": Swarm,
    "differential_evolution": DifferentialEvolution,
    "grid": GridSampler,
    "cover": CoverSampler,
}
