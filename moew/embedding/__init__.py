"""(X, y) → Z (n, d): the low-dimensional coordinates that the weight function is linear in."""

from moew.embedding._base import BaseEmbedding as BaseEmbedding
from moew.embedding._directions import DirectionsEmbedding as DirectionsEmbedding
from moew.embedding._given import ColumnsEmbedding as ColumnsEmbedding
from moew.embedding._given import FunctionEmbedding as FunctionEmbedding
from moew.embedding._given import LabelEmbedding as LabelEmbedding
from moew.embedding._given import TransformerEmbedding as TransformerEmbedding
from moew.embedding._given import columns_of_text as columns_of_text
from moew.embedding._given import resolve_embedding as resolve_embedding
from moew.embedding._networks import AutoencoderEmbedding as AutoencoderEmbedding
from moew.embedding._networks import DiscriminativeEmbedding as DiscriminativeEmbedding

EMBEDDINGS: dict[str, type[BaseEmbedding]] = {
    "autoencoder": AutoencoderEmbedding,
    "label": LabelEmbedding,
    "discriminative": DiscriminativeEmbedding,
    "directions": DirectionsEmbedding,
}
