"""The experiments' embedding: the middle layer of an autoencoder of (x, y)."""

from __future__ import annotations

from collections.abc import Collection

from moew.models.networks import NetworkSpec, ReconstructionLoss, RepeatedNetworks
from moew.paper._experiment import Options
from moew.types import FloatArray

LAMBDA = 0.5  # the paper's weight of the label's loss


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
    weights = label_beside_mean_of_features(D)
    squared = tuple((column, weights[column]) for column in range(D) if column not in two_values)
    hinge = tuple((column, weights[column]) for column in range(D) if column in two_values)
    loss = ReconstructionLoss(squared, hinge, ())
    sizes = (D, hidden, n_dims, hidden, D)
    spec = NetworkSpec(sizes, "sigmoid", loss, options.steps, batch_size, precision=options.precision)
    networks = RepeatedNetworks(spec, inputs, inputs, n_repeats, seed, device=options.device)
    return networks.hidden(networks.train(networks.uniform_weights(1), 0), inputs, depth=2)[:, 0]


def label_beside_mean_of_features(n_columns: int) -> list[float]:
    """The weight of each column's loss; the label is the last.

    (1 − λ)·L_x + λ·L_y, where L_x is the mean over the features, as in the authors' scripts. With the sum in
    its place, the label is one column among many, and hardly gets into the embedding.
    """
    n_features = n_columns - 1
    return [(1 - LAMBDA) / n_features] * n_features + [LAMBDA]
