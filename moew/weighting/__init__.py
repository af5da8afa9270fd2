"""The weight function, eq. 3: w(x, y; α) = c · π · σ(z(x, y)ᵀ α), and the baselines π."""

from moew.weighting._baselines import BaseBaseline as BaseBaseline
from moew.weighting._baselines import FunctionBaseline as FunctionBaseline
from moew.weighting._baselines import UniformBaseline as UniformBaseline
from moew.weighting._covariate_shift import CovariateShift as CovariateShift
from moew.weighting._label_shift import LabelShift as LabelShift
from moew.weighting._resolve import resolve_baseline as resolve_baseline
from moew.weighting._weights import ExampleWeighting as ExampleWeighting
from moew.weighting._weights import WeightFunction as WeightFunction
