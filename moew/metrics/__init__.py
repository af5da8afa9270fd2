"""Metrics: the paper's own, any function through `make_metric`, any scikit-learn scorer or its name.

What `resolve_metric` returns, a `FunctionMetric` or a `ScorerMetric`, is used in two steps: the model
predicts once, and the metric is then evaluated on any of the rows without the model:

    metric = resolve_metric("roc_auc")
    metric.check_columns(rows)                                # LabelledRows; before any training
    predictions = metric.respond(model, rows, pos_label=pos_label)
    value = metric.value(predictions.take(some), rows.take(some), pos_label=pos_label)

`Predictions` hold per-row arrays (and the classes), never the model. With a decision rule, its labels (n,),
see `decided_labels`, are passed to `respond` and to `value` as `decided=` and replace the model's own
`predict`. Values are in the metric's own units.
"""

from moew.metrics._metric import FunctionMetric as FunctionMetric
from moew.metrics._metric import hint_of_direction as hint_of_direction
from moew.metrics._metric import make_metric as make_metric
from moew.metrics._own import METRICS as METRICS
from moew.metrics._own import accuracy as accuracy
from moew.metrics._own import fpr_gap as fpr_gap
from moew.metrics._own import g_mean as g_mean
from moew.metrics._own import mean_of_selected as mean_of_selected
from moew.metrics._own import precision_at_recall as precision_at_recall
from moew.metrics._own import q_mean as q_mean
from moew.metrics._own import r_squared as r_squared
from moew.metrics._own import value_per_harm as value_per_harm
from moew.metrics._own import worst_band_relative_error as worst_band_relative_error
from moew.metrics._own import worst_class_error as worst_class_error
from moew.metrics._predictions import Predictions as Predictions
from moew.metrics._predictions import decided_labels as decided_labels
from moew.metrics._predictions import decision_basis as decision_basis
from moew.metrics._predictions import model_classes as model_classes
from moew.metrics._predictions import model_name as model_name
from moew.metrics._predictions import own_decisions as own_decisions
from moew.metrics._predictions import predicts_by_its_scores as predicts_by_its_scores
from moew.metrics._predictions import respond as respond
from moew.metrics._rehearsal import rehearse as rehearse
from moew.metrics._resolve import Constraint as Constraint
from moew.metrics._resolve import Metric as Metric
from moew.metrics._resolve import is_vectorised as is_vectorised
from moew.metrics._resolve import named_metric as named_metric
from moew.metrics._resolve import resolve_constraints as resolve_constraints
from moew.metrics._resolve import resolve_metric as resolve_metric
from moew.metrics._resolve import resolve_metrics as resolve_metrics
from moew.metrics._resolve import sum_of_excess as sum_of_excess
from moew.metrics._scorer import ScorerMetric as ScorerMetric
