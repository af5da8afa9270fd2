"""Rows of data: records of them, splits, encoding as numbers, reading in chunks, read-only views.

Tables are encoded in one way everywhere: numeric columns are scaled, columns of two values (booleans, 0/1,
−1/1, two texts) become 0/1, categories one-hot. A missing number becomes the column's mean and sets a flag
column; a missing or unknown category is all zeros.
"""

from moew.data._chunks import CHUNK_ROWS as CHUNK_ROWS
from moew.data._chunks import Chunk as Chunk
from moew.data._chunks import check_readable_again as check_readable_again
from moew.data._chunks import iter_chunks as iter_chunks
from moew.data._chunks import iter_rows as iter_rows
from moew.data._chunks import map_chunks as map_chunks
from moew.data._columns import centre_and_spread as centre_and_spread
from moew.data._columns import is_missing as is_missing
from moew.data._columns import label_levels as label_levels
from moew.data._columns import label_positions as label_positions
from moew.data._columns import number_labels as number_labels
from moew.data._encoders import Block as Block
from moew.data._encoders import LabelSummary as LabelSummary
from moew.data._encoders import Moments as Moments
from moew.data._encoders import TableSummary as TableSummary
from moew.data._encoders import TabularEncoder as TabularEncoder
from moew.data._encoders import TargetEncoder as TargetEncoder
from moew.data._read_only import read_only as read_only
from moew.data._rows import LabelledRows as LabelledRows
from moew.data._rows import UserRows as UserRows
from moew.data._rows import labelled_rows as labelled_rows
from moew.data._rows import two_dimensional as two_dimensional
from moew.data._splits import Fold as Fold
from moew.data._splits import SearchData as SearchData
from moew.data._table import check_same_columns as check_same_columns
from moew.data._table import column_names as column_names
from moew.data._table import huge_columns as huge_columns
