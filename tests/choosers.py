"""Judges of made-up candidates, for several tests."""

from dataclasses import replace

import numpy as np

from moew.data import LabelledRows
from moew.decision import Tuned
from moew.metrics import Predictions, resolve_metric
from moew.search._choices import Chooser, Effort
from moew.search._evaluate import Evaluator

N = 80
CLASSES = np.array([0, 1])


def decided(scores, response="decision"):
    """Predictions of two classes by scores, as an evaluator records them."""
    return Predictions({response: (scores > 0).astype(int)}, scores=scores)


def chooser_of(metric, m=6, seed=0, effort=None, rule=None, task="classification", always_tuned=False, n=N):
    """A chooser of m made-up candidates."""
    rng = np.random.default_rng(seed)
    metric = resolve_metric(metric)
    response = metric.response or "predict"
    if task == "regression":
        y = rng.standard_normal(n)
        made = [
            Predictions({response: y + rng.standard_normal(n)}, estimator_type="regressor") for _ in range(m)
        ]
        classes = None
    else:
        y = rng.integers(0, 2, n)
        signals = [0.5 * (2 * y - 1) + rng.standard_normal(n) + 0.3 * rng.standard_normal() for _ in range(m)]
        made = [decided(signal, response) for signal in signals]
        made = [replace(one, classes=CLASSES, estimator_type="classifier") for one in made]
        classes = CLASSES
    evaluator = Evaluator(metric, rule, classes, Tuned(), always_tuned)
    rows = LabelledRows(np.zeros((n, 1)), y)
    values = np.array([evaluator.value(one, rows) for one in made])
    return Chooser(evaluator, rows, task, made, values, effort or Effort())
