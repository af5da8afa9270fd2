"""Decision rules: how a score of the positive class becomes a decision, fitted anew for every candidate.

A row is decided positive where its score lies strictly above a threshold. `fit` returns a fitted copy,
`decide` gives booleans, `state` a JSON-able dict. `fit_on` names the rows a rule is fitted on (None:
nothing to fit), `columns` the per-row columns it needs, `needs_labels` whether its fit looks at labels.
"""

from moew.decision._equal_rates import EqualFalsePositiveRates as EqualFalsePositiveRates
from moew.decision._resolve import DECISION_RULES as DECISION_RULES
from moew.decision._resolve import named_rule as named_rule
from moew.decision._resolve import resolve_decision as resolve_decision
from moew.decision._resolve import rule_examples as rule_examples
from moew.decision._thresholds import FixedThreshold as FixedThreshold
from moew.decision._thresholds import MostAccurate as MostAccurate
from moew.decision._thresholds import RecallReached as RecallReached
from moew.decision._thresholds import ShareSelected as ShareSelected
