"""(X, y, weights (K, n)) → K fitted models."""

from moew.training._checks import resolve_trainer as resolve_trainer
from moew.training._estimators import EstimatorTrainer as EstimatorTrainer
from moew.training._jobs import with_seed as with_seed
from moew.training._many import ManyTrainer as ManyTrainer
