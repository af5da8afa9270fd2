"""Train a model for the metric it will be judged by: metric-optimized example weights.

The names are resolved when first used (PEP 562), so that importing moew loads nothing heavy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moew._util.state import load_state as load_state
    from moew.data import Rows as Rows
    from moew.metrics import make_metric as make_metric
    from moew.models.networks import NetworkClassifier as NetworkClassifier
    from moew.models.networks import NetworkRegressor as NetworkRegressor
    from moew.search import ExampleWeights as ExampleWeights
    from moew.search import MetricSearch as MetricSearch
    from moew.search import StudyStorage as StudyStorage
    from moew.search import TrainingOptions as TrainingOptions
    from moew.search import WeightStudy as WeightStudy
    from moew.search import compare as compare
    from moew.search import load as load

__version__ = "0.1.0"

_HOMES = {
    "ExampleWeights": "moew.search",
    "MetricSearch": "moew.search",
    "NetworkClassifier": "moew.models.networks",
    "NetworkRegressor": "moew.models.networks",
    "Rows": "moew.data",
    "StudyStorage": "moew.search",
    "TrainingOptions": "moew.search",
    "WeightStudy": "moew.search",
    "compare": "moew.search",
    "load": "moew.search",
    "load_state": "moew._util.state",
    "make_metric": "moew.metrics",
}
__all__ = [
    "ExampleWeights",
    "MetricSearch",
    "NetworkClassifier",
    "NetworkRegressor",
    "Rows",
    "StudyStorage",
    "TrainingOptions",
    "WeightStudy",
    "__version__",
    "compare",
    "load",
    "load_state",
    "make_metric",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'moew' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
