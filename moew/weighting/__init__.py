"""The weight function, eq. 3: w(x, y; α) = c · π · σ(z(x, y)ᵀ α), and the base weights π."""

from moew.weighting._base_weights import BaseWeightsEstimator as BaseWeightsEstimator
from moew.weighting._base_weights import CovariateShift as CovariateShift
from moew.weighting._base_weights import FunctionBaseWeights as FunctionBaseWeights
from moew.weighting._base_weights import JointShift as JointShift
from moew.weighting._base_weights import LabelShift as LabelShift
from moew.weighting._base_weights import UniformBaseWeights as UniformBaseWeights
from moew.weighting._base_weights import resolve_base_weights as resolve_base_weights
from moew.weighting._density_ratio import joint_density_ratio as joint_density_ratio
from moew.weighting._density_ratio import rows_like as rows_like
from moew.weighting._sampling import downsample_rows as downsample_rows
from moew.weighting._weights import AveragedWeights as AveragedWeights
from moew.weighting._weights import ExampleWeighting as ExampleWeighting
from moew.weighting._weights import ListedWeighting as ListedWeighting
from moew.weighting._weights import PowersOfTarget as PowersOfTarget
from moew.weighting._weights import PowerWeights as PowerWeights
from moew.weighting._weights import RandomWeighting as RandomWeighting
from moew.weighting._weights import TrainingRowsOnly as TrainingRowsOnly
from moew.weighting._weights import WeightFunction as WeightFunction
from moew.weighting._weights import mini_batch_divisor as mini_batch_divisor
from moew.weighting._weights import over_fold as over_fold

BASE_WEIGHTS: dict[str, type[BaseWeightsEstimator]] = {
    "uniform": UniformBaseWeights,
    "label_shift": LabelShift,
    "covariate_shift": CovariateShift,
}
