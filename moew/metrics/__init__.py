"""Metrics: the paper's own, any function through `make_metric`, any scikit-learn scorer or its name.

What `resolve_metric` returns, a `Metric` or a `ScorerMetric`, is used in one way, in two steps, so that
a model is asked once and the metric is then evaluated on any rows without it:

    metric = resolve_metric("roc_auc")
    metric.check_columns(columns, n_rows)                     # before any training
    outputs = metric.respond(model, X, y, columns, pos_label=pos_label)
    part = outputs.take(rows)                                 # any rows: indices or booleans
    value = metric.value(part, X[rows], y[rows], columns_of_rows, pos_label=pos_label)

`outputs` holds per-row arrays only (and the classes), never the model. `Outputs.pooled` puts together
the parts that the models of several folds answered. Where a decision rule decides, its labels (n,), see
`decided_labels`, go to `respond` and to `value` as `decided=` and stand in for the model's own `predict`.
`outputs.uses_decision` says whether the metric looked at decisions at all.

Values are in the metric's own units; `metric.greater_is_better` gives the direction, `metric.bounds` the
lowest and the highest value where known. `metric.needs_two_classes` and `metric.requires_sample_weight`
say what it cannot do without. A metric that has no value on some rows raises `UndefinedMetricError`, or
returns NaN or an infinity.
"""

from moew.metrics._classes import accuracy as accuracy
from moew.metrics._classes import fpr_gap as fpr_gap
from moew.metrics._classes import worst_class_error as worst_class_error
from moew.metrics._metric import Metric as Metric
from moew.metrics._metric import make_metric as make_metric
from moew.metrics._outputs import Outputs as Outputs
from moew.metrics._outputs import decided_labels as decided_labels
from moew.metrics._outputs import positive_score as positive_score
from moew.metrics._outputs import respond as respond
from moew.metrics._ranking import precision_at_recall as precision_at_recall
from moew.metrics._regression import r_squared as r_squared
from moew.metrics._regression import worst_band_relative_error as worst_band_relative_error
from moew.metrics._resolve import AnyMetric as AnyMetric
from moew.metrics._resolve import resolve_metric as resolve_metric
from moew.metrics._scorer import ScorerMetric as ScorerMetric
from moew.metrics._selected import mean_of_selected as mean_of_selected
from moew.metrics._selected import value_per_harm as value_per_harm
