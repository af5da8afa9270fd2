"""(X, y, weights (K, n)) → K fitted models."""

from moew.training._fit_params import EvalSplit as EvalSplit
from moew.training._fit_params import FitParams as FitParams
from moew.training._fit_params import check_takes_columns as check_takes_columns
from moew.training._fit_params import check_takes_eval_rows as check_takes_eval_rows
from moew.training._fit_params import resolve_fit_params as resolve_fit_params
from moew.training._fit_params import weight_name_of as weight_name_of
from moew.training._jobs import with_seed as with_seed
from moew.training._trainers import EstimatorTrainer as EstimatorTrainer
from moew.training._trainers import ManyTrainer as ManyTrainer
from moew.training._trainers import resolve_trainer as resolve_trainer
