"""Multilayer networks in JAX: many example weightings trained at once. The one place that knows JAX."""

from moew.exceptions import TrainingDivergedError as TrainingDivergedError
from moew.models.networks._autoencoder import encode as encode
from moew.models.networks._autoencoder import train_autoencoder as train_autoencoder
from moew.models.networks._autoencoder import train_autoencoder_on_blocks as train_autoencoder_on_blocks
from moew.models.networks._devices import name_of_device as name_of_device
from moew.models.networks._engine import forward as forward
from moew.models.networks._engine import train_networks as train_networks
from moew.models.networks._estimators import NetworkClassifier as NetworkClassifier
from moew.models.networks._estimators import NetworkRegressor as NetworkRegressor
from moew.models.networks._repeats import PlacedRows as PlacedRows
from moew.models.networks._repeats import RepeatedNetworks as RepeatedNetworks
from moew.models.networks._repeats import RepeatRows as RepeatRows
from moew.models.networks._repeats import TrainedNetworks as TrainedNetworks
from moew.models.networks._repeats import autoencoder_codes as autoencoder_codes
from moew.models.networks._spec import EarlyStopping as EarlyStopping
from moew.models.networks._spec import NetworkSpec as NetworkSpec
from moew.models.networks._spec import ReconstructionLoss as ReconstructionLoss
