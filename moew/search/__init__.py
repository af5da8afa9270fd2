"""The search: Algorithm 1 as one estimator, the study with its trials, the comparison with other weights."""

from moew.search._callbacks import SearchCallback as SearchCallback
from moew.search._compare import Comparison as Comparison
from moew.search._compare import Row as Row
from moew.search._compare import compare as compare
from moew.search._compare import compare_settings as compare_settings
from moew.search._estimator import ExampleWeightSearch as ExampleWeightSearch
from moew.search._estimator import fitted_search as fitted_search
from moew.search._estimator import run_search as run_search
from moew.search._estimator import train_candidates as train_candidates
from moew.search._evaluate import FinalModel as FinalModel
from moew.search._honest_score import HonestScore as HonestScore
from moew.search._loop import Search as Search
from moew.search._loop import search_side_by_side as search_side_by_side
from moew.search._prepare import Prepared as Prepared
from moew.search._prepare import prepare as prepare
from moew.search._repeats import train_repeats as train_repeats
from moew.search._result import FittedSearch as FittedSearch
from moew.search._result import SearchResult as SearchResult
from moew.search._saved import load as load
from moew.search._settings import SearchSettings as SearchSettings
from moew.search._stop import CutOff as CutOff
from moew.search._stop import Stopped as Stopped
from moew.search._study import Trial as Trial
from moew.search._study import WeightStudy as WeightStudy
