"""The weight function, eq. 3: w(x, y; α) = c · π · σ(z(x, y)ᵀ α), and the base weights π."""

from moew.weighting._averaged import AveragedWeights as AveragedWeights
from moew.weighting._base_weights import BaseWeightsEstimator as BaseWeightsEstimator
from moew.weighting._base_weights import FunctionBaseWeights as FunctionBaseWeights
from moew.weighting._base_weights import UniformBaseWeights as UniformBaseWeights
from moew.weighting._covariate_shift import CovariateShift as CovariateShift
from moew.weighting._fixed import FixedWeighting as FixedWeighting
from moew.weighting._fixed import RandomWeighting as RandomWeighting
from moew.weighting._label_shift import LabelShift as LabelShift
from moew.weighting._powers import PowersOfTarget as PowersOfTarget
from moew.weighting._powers import PowerWeights as PowerWeights
from moew.weighting._resolve import resolve_base_weights as resolve_base_weights
from moew.weighting._sampling import downsample_rows as downsample_rows
from moew.weighting._sampling import draw_in_proportion as draw_in_proportion
from moew.weighting._sampling import expected_weights as expected_weights
from moew.weighting._weights import ExampleWeighting as ExampleWeighting
from moew.weighting._weights import WeightFunction as WeightFunction

BASE_WEIGHTS: dict[str, type[BaseWeightsEstimator]] = {
    "uniform": UniformBaseWeights,
    "label_shift": LabelShift,
    "covariate_shift": CovariateShift,
}
