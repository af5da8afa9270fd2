"""Numbers about a finished search, which `moew.plotting` draws and `moew.report` shows."""

from moew.inspection._again import given_rows as given_rows
from moew.inspection._again import train_again as train_again
from moew.inspection._again import values_again as values_again
from moew.inspection._classes import Group as Group
from moew.inspection._classes import LabelGroups as LabelGroups
from moew.inspection._classes import groups_by_label as groups_by_label
from moew.inspection._landscape import Landscape as Landscape
from moew.inspection._landscape import landscape as landscape
from moew.inspection._rows import TrainedRows as TrainedRows
from moew.inspection._rows import effective_size as effective_size
from moew.inspection._rows import table_columns as table_columns
from moew.inspection._rows import trained_rows as trained_rows
from moew.inspection._slices import ColumnSlices as ColumnSlices
from moew.inspection._slices import Slice as Slice
from moew.inspection._slices import quantile_slices as quantile_slices
from moew.inspection._slices import slices_of as slices_of
from moew.inspection._tested import Tested as Tested
from moew.inspection._tested import on_test_rows as on_test_rows
from moew.inspection._tested import score_models as score_models
from moew.inspection._trace import Trace as Trace
from moew.inspection._trace import trace as trace
from moew.inspection._validation_rows import ValidationRows as ValidationRows
from moew.inspection._validation_rows import validation_rows_for as validation_rows_for
