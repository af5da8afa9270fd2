"""Models that train many example weightings at once: networks in JAX, and any PyTorch module; and ensembles.

Estimators are resolved when first used, so that JAX and PyTorch are loaded only by those who need them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from moew.models._calibration import CALIBRATIONS as CALIBRATIONS
from moew.models._calibration import Calibration as Calibration
from moew.models._calibration import can_be_calibrated as can_be_calibrated
from moew.models._calibration import fit_calibration as fit_calibration
from moew.models._calibration import scores_to_calibrate as scores_to_calibrate
from moew.models._ensemble import ModelEnsemble as ModelEnsemble
from moew.models._ensemble import checked_votes as checked_votes
from moew.models._ensemble import class_scores as class_scores
from moew.models._ensemble import member_name as member_name
from moew.models._ensemble import member_names as member_names
from moew.models._ensemble import weighted_majority as weighted_majority
from moew.models._ensemble import weighted_mean as weighted_mean
from moew.models._shared import jax_is_missing as jax_is_missing

if TYPE_CHECKING:
    from moew.models.networks import NetworkClassifier as NetworkClassifier
    from moew.models.networks import NetworkRegressor as NetworkRegressor
    from moew.models.torch import TorchClassifier as TorchClassifier
    from moew.models.torch import TorchRegressor as TorchRegressor

_HOMES = {
    "NetworkClassifier": "moew.models.networks",
    "NetworkRegressor": "moew.models.networks",
    "TorchClassifier": "moew.models.torch",
    "TorchRegressor": "moew.models.torch",
}
__all__ = ["ModelEnsemble", "NetworkClassifier", "NetworkRegressor", "TorchClassifier", "TorchRegressor"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'moew.models' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
