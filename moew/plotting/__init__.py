"""Plots of a finished search, with matplotlib (`pip install "moew[plot]"`).

Each takes a fitted `MetricSearch`, and the rows it needs, draws on `ax` or on axes of its own, and
returns the axes. Colours can be told apart by colour-blind people.
"""

from moew.plotting._plots import history as history
from moew.plotting._plots import landscape as landscape
from moew.plotting._plots import metric_over_threshold as metric_over_threshold
from moew.plotting._plots import pareto as pareto
from moew.plotting._plots import reliability_curve as reliability_curve
from moew.plotting._plots import weight_contours as weight_contours
from moew.plotting._plots import weights_by_class as weights_by_class
from moew.plotting._plots import weights_by_column as weights_by_column
