"""Rows of data: records of them, splits, encoding as numbers, reading in chunks, read-only views.

Tables are encoded in one way everywhere: numeric columns are scaled, columns of two values (booleans, 0/1,
−1/1, two texts) become 0/1, categories one-hot. A missing number becomes the column's mean and sets a flag
column; a missing or unknown category is all zeros.
"""

from moew.data._chunks import CHUNK_ROWS as CHUNK_ROWS
from moew.data._chunks import iter_chunks as iter_chunks
from moew.data._chunks import iter_rows as iter_rows
from moew.data._columns import Column as Column
from moew.data._columns import are_numbers as are_numbers
from moew.data._columns import check_same_columns as check_same_columns
from moew.data._columns import check_weights as check_weights
from moew.data._columns import column_names as column_names
from moew.data._columns import huge_columns as huge_columns
from moew.data._columns import in_order as in_order
from moew.data._columns import is_missing as is_missing
from moew.data._columns import is_numeric_array as is_numeric_array
from moew.data._columns import label_levels as label_levels
from moew.data._columns import label_positions as label_positions
from moew.data._columns import n_rows as n_rows
from moew.data._columns import number_labels as number_labels
from moew.data._columns import plain as plain
from moew.data._columns import read_only as read_only
from moew.data._columns import two_dimensional as two_dimensional
from moew.data._columns import without_columns as without_columns
from moew.data._encoders import Block as Block
from moew.data._encoders import TabularEncoder as TabularEncoder
from moew.data._encoders import TargetEncoder as TargetEncoder
from moew.data._encoders import centre_and_spread as centre_and_spread
from moew.data._encoders import encode as encode
from moew.data._encoders import row_blocks as row_blocks
from moew.data._groups import bootstrap_samples as bootstrap_samples
from moew.data._groups import coded_groups as coded_groups
from moew.data._groups import copies_together as copies_together
from moew.data._groups import count_groups as count_groups
from moew.data._groups import deal_groups as deal_groups
from moew.data._groups import lone_labels as lone_labels
from moew.data._rows import LabelledRows as LabelledRows
from moew.data._rows import Rows as Rows
from moew.data._rows import as_rows as as_rows
from moew.data._rows import check_same_rows as check_same_rows
from moew.data._rows import check_training_labels as check_training_labels
from moew.data._rows import columns_from as columns_from
from moew.data._rows import labelled_rows as labelled_rows
from moew.data._rows import with_shared_groups as with_shared_groups
from moew.data._splits import Fold as Fold
from moew.data._splits import SearchData as SearchData
from moew.data._splits import by_weight as by_weight
from moew.data._splits import cross_validation as cross_validation
from moew.data._splits import drawn_by_weight as drawn_by_weight
from moew.data._splits import evaluated_rows as evaluated_rows
from moew.data._splits import given_validation as given_validation
from moew.data._splits import held_out_validation as held_out_validation
from moew.data._splits import of_equal_weight as of_equal_weight
from moew.data._splits import out_of_fold as out_of_fold
from moew.data._splits import set_aside as set_aside
from moew.data._splits import strata_of as strata_of
from moew.data._splits import stratified_halves as stratified_halves
from moew.data._splits import weight_notes as weight_notes
