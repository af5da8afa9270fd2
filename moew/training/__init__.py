"""(X, y, weights (K, n)) → K fitted models."""

from moew.training._jobs import with_seed as with_seed
from moew.training._trainers import EstimatorTrainer as EstimatorTrainer
from moew.training._trainers import ManyTrainer as ManyTrainer
from moew.training._trainers import resolve_trainer as resolve_trainer
