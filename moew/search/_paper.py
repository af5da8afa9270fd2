"""The settings of the paper's experiments, for any data."""

from __future__ import annotations

from typing import Any

from moew.embedding import AutoencoderEmbedding
from moew.samplers import GpBucb


def paper_settings() -> dict[str, Any]:
    """Arguments of `ExampleWeightSearch`, apart from estimator and metric; see `as_in_the_paper` there."""
    return {
        "embedding": AutoencoderEmbedding(hidden=100, trade_off=0.5, steps=10_000, standardize=False),
        "base_weights": "label_shift",
        "sampler": GpBucb(p=68.3, q=68.3, width="domain", noise="repeats"),
        "radius": 5.0,  # the text gives no R; this is that of the authors' script with 100 hidden nodes
        "n_batches": 10,
        "batch_size": 20,
        "alpha_zero_repeats": 10,  # the text does not say how many models tell the noise
        "validation": None,
        "final": "best",
        "guard": False,
    }
