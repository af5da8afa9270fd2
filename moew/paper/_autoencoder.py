"""What the experiments' autoencoders of (x, y) share."""

from __future__ import annotations

LAMBDA = 0.5  # the paper's weight of the label's loss


def label_beside_mean_of_features(n_columns: int) -> list[float]:
    """The weight of each column's loss; the label is the last.

    (1 − λ)·L_x + λ·L_y, where L_x is the mean over the features, as in the authors' scripts. With the sum in
    its place, the label is one column among many, and hardly gets into the embedding.
    """
    n_features = n_columns - 1
    return [(1 - LAMBDA) / n_features] * n_features + [LAMBDA]
