"""Decision rules: how a score of the positive class becomes a decision, fitted anew for every candidate.

A row is decided positive where its score lies strictly above a threshold. `fit` returns a fitted copy,
`decide` gives booleans, `state` a JSON-able dict. `fit_on` names the rows a rule is fitted on (None:
nothing to fit), `columns` the per-row columns it needs, `needs_labels` whether its fit looks at labels.
`Tuned` is fitted by its `tune`, which asks the metric, also for several classes and for regression.
"""

from moew.decision._resolve import DECISION_RULES as DECISION_RULES
from moew.decision._resolve import resolve_decision as resolve_decision
from moew.decision._resolve import rule_examples as rule_examples
from moew.decision._rules import EqualFalsePositiveRates as EqualFalsePositiveRates
from moew.decision._rules import FixedThreshold as FixedThreshold
from moew.decision._rules import MostAccurate as MostAccurate
from moew.decision._rules import RecallReached as RecallReached
from moew.decision._rules import ShareSelected as ShareSelected
from moew.decision._rules import groups_of_rows as groups_of_rows
from moew.decision._tuned import AdjustedPredictions as AdjustedPredictions
from moew.decision._tuned import ClassOffsets as ClassOffsets
from moew.decision._tuned import GroupThresholds as GroupThresholds
from moew.decision._tuned import Tuned as Tuned
from moew.decision._tuned import TunedThreshold as TunedThreshold
