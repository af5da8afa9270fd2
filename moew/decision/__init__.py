"""Decision rules: how a score of the positive class becomes a decision, fitted anew for every candidate.

A row is decided positive where its score lies strictly above a threshold. `fit` returns a fitted copy,
`decide` gives booleans, `state` a JSON-able dict. `fit_on` names the rows a rule is fitted on (None:
nothing to fit), `columns` the per-row columns it needs, `needs_labels` whether its fit looks at labels.
`Tuned` is fitted by `tune`, which asks the metric, also for several classes and for regression.
"""

from functools import partial

from moew.decision._equal_rates import EqualFalsePositiveRates as EqualFalsePositiveRates
from moew.decision._resolve import NamedRule as NamedRule
from moew.decision._resolve import named_rule as named_rule
from moew.decision._resolve import resolve_decision as resolve_decision
from moew.decision._resolve import rule_examples as rule_examples
from moew.decision._thresholds import FixedThreshold as FixedThreshold
from moew.decision._thresholds import MostAccurate as MostAccurate
from moew.decision._thresholds import RecallReached as RecallReached
from moew.decision._thresholds import ShareSelected as ShareSelected
from moew.decision._tuned import AdjustedPredictions as AdjustedPredictions
from moew.decision._tuned import ClassOffsets as ClassOffsets
from moew.decision._tuned import GroupThresholds as GroupThresholds
from moew.decision._tuned import Tuned as Tuned
from moew.decision._tuned import TunedRule as TunedRule
from moew.decision._tuned import TunedThreshold as TunedThreshold
from moew.decision._tuned import tune as tune

DECISION_RULES = {
    "threshold": NamedRule(partial(FixedThreshold, of="probability"), "0.5", (), "a probability"),
    "score": NamedRule(FixedThreshold, "0", ()),
    "accurate": NamedRule(MostAccurate, ""),
    "select": NamedRule(ShareSelected, "0.05", ("train", "validation", "each")),
    "recall": NamedRule(RecallReached, "0.95"),
    "equal_fpr": NamedRule(EqualFalsePositiveRates, "0.2", meaning="the share selected"),
    "tuned": NamedRule(Tuned, "", ()),
}
