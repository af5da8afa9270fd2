"""Numbers about a finished search, which `moew.plotting` draws and `moew.report` shows."""

from moew.inspection._candidates import Landscape as Landscape
from moew.inspection._candidates import Trace as Trace
from moew.inspection._candidates import landscape as landscape
from moew.inspection._candidates import pareto_front as pareto_front
from moew.inspection._candidates import trace as trace
from moew.inspection._probabilities import Reliability as Reliability
from moew.inspection._probabilities import ThresholdCurve as ThresholdCurve
from moew.inspection._probabilities import reliability as reliability
from moew.inspection._probabilities import threshold_curve as threshold_curve
from moew.inspection._scores import ChangedDecisions as ChangedDecisions
from moew.inspection._scores import ModelScore as ModelScore
from moew.inspection._scores import Tested as Tested
from moew.inspection._scores import changed_decisions as changed_decisions
from moew.inspection._scores import on_test_rows as on_test_rows
from moew.inspection._scores import score_models as score_models
from moew.inspection._trained import TrainedRows as TrainedRows
from moew.inspection._trained import effective_size as effective_size
from moew.inspection._trained import table_columns as table_columns
from moew.inspection._trained import trained_rows as trained_rows
from moew.inspection._weights import ColumnSlices as ColumnSlices
from moew.inspection._weights import Group as Group
from moew.inspection._weights import LabelGroups as LabelGroups
from moew.inspection._weights import Slice as Slice
from moew.inspection._weights import groups_by_label as groups_by_label
from moew.inspection._weights import slices_of as slices_of
