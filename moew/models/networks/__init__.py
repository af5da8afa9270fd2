"""Multilayer networks in JAX: many example weightings trained at once. The one place that knows JAX."""

from moew.models._shared import jax_is_missing

try:
    import jax as _jax  # noqa: F401
except ImportError as error:
    raise jax_is_missing("networks") from error

from moew.exceptions import TrainingDivergedError as TrainingDivergedError
from moew.models.networks._autoencoder import autoencoder_spec as autoencoder_spec
from moew.models.networks._autoencoder import encode as encode
from moew.models.networks._autoencoder import train_autoencoder as train_autoencoder
from moew.models.networks._estimators import NetworkClassifier as NetworkClassifier
from moew.models.networks._estimators import NetworkRegressor as NetworkRegressor
from moew.models.networks._spec import EarlyStopping as EarlyStopping
from moew.models.networks._spec import NetworkSpec as NetworkSpec
from moew.models.networks._spec import ReconstructionLoss as ReconstructionLoss
from moew.models.networks._spec import layer_widths as layer_widths
