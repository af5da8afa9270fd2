"""Rows of any table as numbers: what embeddings, base weights and networks see of X and y.

Numeric columns are scaled, columns of yes and no (booleans, 0/1, −1/1, two texts) become 0/1, categories
one-hot. A missing number becomes the column's mean and raises a flag column; a missing or unknown category
is all zeros.
"""

from __future__ import annotations

from moew.data._column import centre_and_spread as centre_and_spread
from moew.data._column import is_missing as is_missing
from moew.data._encoders import Block as Block
from moew.data._encoders import TabularEncoder as TabularEncoder
from moew.data._encoders import TargetEncoder as TargetEncoder
from moew.data._labels import label_levels as label_levels
from moew.data._labels import label_positions as label_positions
from moew.data._labels import number_labels as number_labels
from moew.data._summaries import LabelSummary as LabelSummary
from moew.data._summaries import Moments as Moments
from moew.data._summaries import TableSummary as TableSummary
from moew.data._table import check_same_columns as check_same_columns
from moew.data._table import column_names as column_names
from moew.data._table import huge_columns as huge_columns
