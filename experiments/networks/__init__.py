"""Networks of several searches at once: R repeats × K candidates in one program, or in a kernel for GPUs."""

from experiments.networks._at_once import train_networks as train_networks
from experiments.networks._repeats import PlacedRows as PlacedRows
from experiments.networks._repeats import RepeatedNetworks as RepeatedNetworks
from experiments.networks._repeats import RepeatRows as RepeatRows
from experiments.networks._repeats import TrainedNetworks as TrainedNetworks
from experiments.networks._repeats import autoencoder_codes as autoencoder_codes
from experiments.networks._repeats import forward as forward
from experiments.networks._repeats import name_of_device as name_of_device
from experiments.networks._train_repeats import train_repeats as train_repeats
