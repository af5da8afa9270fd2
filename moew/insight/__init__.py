"""What a finished search has to tell, as numbers: what `moew.plotting` draws and `moew.report` shows."""

from moew.insight._again import given_rows as given_rows
from moew.insight._again import train_again as train_again
from moew.insight._again import values_again as values_again
from moew.insight._classes import Group as Group
from moew.insight._classes import LabelGroups as LabelGroups
from moew.insight._classes import groups_by_label as groups_by_label
from moew.insight._landscape import Landscape as Landscape
from moew.insight._landscape import landscape as landscape
from moew.insight._rows import TrainedRows as TrainedRows
from moew.insight._rows import effective_size as effective_size
from moew.insight._rows import table_columns as table_columns
from moew.insight._rows import trained_rows as trained_rows
from moew.insight._slices import ColumnSlices as ColumnSlices
from moew.insight._slices import Slice as Slice
from moew.insight._slices import quantile_slices as quantile_slices
from moew.insight._slices import slices_of as slices_of
from moew.insight._tested import Tested as Tested
from moew.insight._tested import on_test_rows as on_test_rows
from moew.insight._trace import Trace as Trace
from moew.insight._trace import trace as trace
