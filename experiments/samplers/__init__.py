"""Other derivative-free searches that the paper names, and every point of an ε-cover, as samplers of `moew`.

`ExampleWeights(sampler=Annealing())` searches with one. None was better than GP-BUCB: docs/samplers.md.
Optuna's, by `OptunaSampler` in `experiments.samplers.optuna`, need Optuna.
"""

from experiments.samplers._annealing import Annealing as Annealing
from experiments.samplers._cover import CoverSampler as CoverSampler
from experiments.samplers._differential_evolution import DifferentialEvolution as DifferentialEvolution
from experiments.samplers._grid import GridSampler as GridSampler
from experiments.samplers._swarm import Swarm as Swarm
