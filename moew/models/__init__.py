"""Models that train many example weightings at once: networks in JAX, and any PyTorch module; and ensembles.

The names are resolved when first used, so that JAX and PyTorch are loaded only by those who need them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moew.models._ensemble import ModelEnsemble as ModelEnsemble
    from moew.models.networks import NetworkClassifier as NetworkClassifier
    from moew.models.networks import NetworkRegressor as NetworkRegressor
    from moew.models.torch import TorchClassifier as TorchClassifier
    from moew.models.torch import TorchRegressor as TorchRegressor

_HOMES = {
    "ModelEnsemble": "moew.models._ensemble",
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
