"""Theorem 1 and Theorem 2 of the paper as tools.

Theorem 1 says for which metrics some example weights make ordinary training optimal. `optimal_weights`
computes them, from the losses that models can achieve or by training models; `optimal_class_weights` from the
scores of one model. Theorem 2 bounds how far a search over α can be from the best α.
"""

from moew.theory._losses import Losses as Losses
from moew.theory._losses import class_errors as class_errors
from moew.theory._losses import confusion_cells as confusion_cells
from moew.theory._measures import ConcaveMeasure as ConcaveMeasure
from moew.theory._measures import RatioMeasure as RatioMeasure
from moew.theory._measures import expected_cost as expected_cost
from moew.theory._measures import f_measure as f_measure
from moew.theory._measures import g_mean as g_mean
from moew.theory._measures import h_mean as h_mean
from moew.theory._measures import jaccard as jaccard
from moew.theory._measures import precision as precision
from moew.theory._measures import q_mean as q_mean
from moew.theory._optimal_weights import OptimalWeights as OptimalWeights
from moew.theory._optimal_weights import optimal_weights as optimal_weights
from moew.theory._theorem_2 import Theorem2 as Theorem2
from moew.theory._theorem_2 import cover_size as cover_size
from moew.theory._theorem_2 import steepest_slope as steepest_slope
from moew.theory._trained import OptimalExampleWeights as OptimalExampleWeights
from moew.theory._trained import optimal_class_weights as optimal_class_weights
from moew.theory._trained import optimal_example_weights as optimal_example_weights
