"""From what the user wrote to an embedding object."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from moew._util.functions import check_takes_rows
from moew.embedding._base import BaseEmbedding
from moew.embedding._columns import ColumnsEmbedding
from moew.embedding._given import FunctionEmbedding, TransformerEmbedding
from moew.exceptions import Argument, InvalidInputError
from moew.types import Embedding

_COLUMNS = "columns="


def resolve_embedding(thing: Any) -> Embedding:
    """An embedding to fit, from a name, an embedding, columns, a transformer or a function.

    An embedding of moew's is copied, so that what the user passed is never changed.
    """
    from moew.embedding import EMBEDDINGS

    if hasattr(thing, "tolist") and not callable(thing):
        thing = thing.tolist()  # an array or a pandas Index of columns
    if isinstance(thing, str) and thing in EMBEDDINGS:
        return EMBEDDINGS[thing]()
    if isinstance(thing, str) and thing.startswith(_COLUMNS):
        return ColumnsEmbedding(columns_of_text(thing))
    if isinstance(thing, BaseEmbedding):
        copy: BaseEmbedding = clone(thing)
        return copy
    if isinstance(thing, list | tuple) and thing and all(_is_column(item) for item in thing):
        return ColumnsEmbedding(list(thing))
    if not isinstance(thing, str | type):  # a class has the methods too, but is no object to fit
        if isinstance(thing, Embedding):
            return thing
        if hasattr(thing, "fit") and hasattr(thing, "transform"):
            return TransformerEmbedding(thing)
        if callable(thing):
            check_takes_rows(thing, "embedding")
            return FunctionEmbedding(thing)
    raise InvalidInputError(
        Argument("embedding"),
        f" must be one of {sorted(EMBEDDINGS)}, 'columns=A,B', a list of column names or positions, an "
        "embedding object such as LabelEmbedding(), a scikit-learn transformer such as PCA(3), or a function "
        f"of (X, y) that gives an array (n, d); got {thing!r}.",
        argument="embedding",
    )


def columns_of_text(text: str) -> list[str]:
    """The columns of a text such as "columns=age,income"."""
    columns = [name.strip() for name in text.removeprefix(_COLUMNS).split(",") if name.strip()]
    if not columns:
        raise InvalidInputError(
            Argument("embedding", text),
            ": name at least one column, as in columns=A,B.",
            argument="embedding",
        )
    return columns


def _is_column(item: Any) -> bool:
    return isinstance(item, str | int | np.integer) and not isinstance(item, bool)
