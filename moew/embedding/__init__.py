"""(X, y) → Z (n, d): the low-dimensional coordinates that the weight function is linear in."""

from moew.embedding._autoencoder import AutoencoderEmbedding as AutoencoderEmbedding
from moew.embedding._base import BaseEmbedding as BaseEmbedding
from moew.embedding._columns import ColumnsEmbedding as ColumnsEmbedding
from moew.embedding._directions import DirectionsEmbedding as DirectionsEmbedding
from moew.embedding._discriminative import DiscriminativeEmbedding as DiscriminativeEmbedding
from moew.embedding._given import FunctionEmbedding as FunctionEmbedding
from moew.embedding._given import TransformerEmbedding as TransformerEmbedding
from moew.embedding._label import LabelEmbedding as LabelEmbedding
from moew.embedding._resolve import resolve_embedding as resolve_embedding

EMBEDDINGS: dict[str, type[BaseEmbedding]] = {
    "autoencoder": AutoencoderEmbedding,
    "label": LabelEmbedding,
    "discriminative": DiscriminativeEmbedding,
    "directions": DirectionsEmbedding,
}
