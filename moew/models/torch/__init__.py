"""Any PyTorch module, many example weightings trained at once. The one place that knows PyTorch."""

try:
    import torch as _torch  # noqa: F401  # PyTorch itself: imports are absolute
except ImportError as error:
    raise ImportError(
        "moew's TorchClassifier needs PyTorch, which is not installed: pip install 'moew[torch]', or for a "
        "CPU-only build first pip install torch --index-url https://download.pytorch.org/whl/cpu."
    ) from error

from moew.exceptions import TrainingDivergedError as TrainingDivergedError
from moew.models.torch._estimators import TorchClassifier as TorchClassifier
from moew.models.torch._estimators import TorchRegressor as TorchRegressor
