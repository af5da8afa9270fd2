"""The experiments' embedding: the middle layer of an autoencoder of (x, y)."""

from __future__ import annotations

from collections.abc import Collection

from experiments._experiment import Options
from experiments.networks import autoencoder_codes
from moew.models.networks import NetworkSpec
from moew.types import FloatArray

LAMBDA = 0.5  # the paper's weight of the features' loss, which is averaged over them as in the scripts


def middle_layer(
    inputs: FloatArray,
    hidden: int,
    n_dims: int,
    two_values: Collection[int],
    *,
    n_repeats: int,
    seed: int,
    options: Options,
    batch_size: int = 100,
) -> FloatArray:
    """Z (n_repeats, n, d) of autoencoders D-h-d-h-D, one for each repeat.

    inputs: (R or 1, n, D), the label last. two_values: the columns with hinge loss; others have squared loss.
    """
    D = inputs.shape[2]
    sizes = (D, hidden, n_dims, hidden, D)
    spec = NetworkSpec(sizes, "sigmoid", "squared", options.steps, batch_size, precision=options.precision)
    return autoencoder_codes(
        spec, inputs, two_values, LAMBDA, n_repeats=n_repeats, seed=seed, device=options.device
    )
