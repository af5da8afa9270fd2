"""Theorem 1 and Theorem 2 of the paper as tools, beside the library: no fit needs them.

Theorem 1 says for which metrics some example weights make ordinary training optimal. `optimal_weights`
computes them, from the losses that models can achieve or by training models; `optimal_class_weights` from the
scores of one model. Theorem 2 bounds how far a search over α can be from the best α; `validation_rows_for`
has the validation rows that a wanted gap needs, with the constants of a finished search.
"""

from experiments.theory._losses import Losses as Losses
from experiments.theory._losses import class_errors as class_errors
from experiments.theory._losses import confusion_cells as confusion_cells
from experiments.theory._measures import ConcaveMeasure as ConcaveMeasure
from experiments.theory._measures import RatioMeasure as RatioMeasure
from experiments.theory._measures import expected_cost as expected_cost
from experiments.theory._measures import f_measure as f_measure
from experiments.theory._measures import g_mean as g_mean
from experiments.theory._measures import h_mean as h_mean
from experiments.theory._measures import jaccard as jaccard
from experiments.theory._measures import precision as precision
from experiments.theory._measures import q_mean as q_mean
from experiments.theory._optimal_weights import OptimalWeights as OptimalWeights
from experiments.theory._optimal_weights import optimal_weights as optimal_weights
from experiments.theory._theorem_2 import Theorem2 as Theorem2
from experiments.theory._theorem_2 import cover_size as cover_size
from experiments.theory._theorem_2 import steepest_slope as steepest_slope
from experiments.theory._trained import OptimalExampleWeights as OptimalExampleWeights
from experiments.theory._trained import optimal_class_weights as optimal_class_weights
from experiments.theory._trained import optimal_example_weights as optimal_example_weights
from experiments.theory._validation_rows import ValidationRows as ValidationRows
from experiments.theory._validation_rows import validation_rows_for as validation_rows_for
