"""Multilayer networks in JAX: many example weightings trained at once. The one place that knows JAX."""

from moew.exceptions import TrainingDivergedError as TrainingDivergedError
from moew.nets._autoencoder import encode as encode
from moew.nets._autoencoder import train_autoencoder as train_autoencoder
from moew.nets._autoencoder import train_autoencoder_on_blocks as train_autoencoder_on_blocks
from moew.nets._devices import name_of_device as name_of_device
from moew.nets._engine import forward as forward
from moew.nets._engine import train_networks as train_networks
from moew.nets._estimators import NetworkClassifier as NetworkClassifier
from moew.nets._estimators import NetworkRegressor as NetworkRegressor
from moew.nets._repeats import RepeatedNetworks as RepeatedNetworks
from moew.nets._spec import EarlyStopping as EarlyStopping
from moew.nets._spec import NetworkSpec as NetworkSpec
from moew.nets._spec import ReconstructionLoss as ReconstructionLoss
