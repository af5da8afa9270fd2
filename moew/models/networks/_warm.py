"""The uniform-weight model that candidates may start from, trained once for the same rows and settings."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from threading import Lock

import numpy as np

from moew.models.networks._engine import refuse_after_fork
from moew.models.networks._groups import train_weightings
from moew.models.networks._spec import Layers, NetworkSpec
from moew.types import FloatArray

# Not the candidate's seed: the start must be the same whatever is trained with a candidate.
UNIFORM_SEED = 0
_KEPT = 32  # enough for the folds of a splitter; a network is small beside the rows it was trained on

_known: OrderedDict[tuple[NetworkSpec, str | None, bytes], Layers] = OrderedDict()
_lock = Lock()


def uniform_layers(spec: NetworkSpec, X: FloatArray, Y: FloatArray, device: str | None) -> Layers:
    """The network trained for `spec.steps` steps with all weights one on X (n, D) and Y (n, C).

    It depends on the rows and the settings only. Every batch of a search needs the same one, so the last
    ones are kept, found by a hash of the rows.
    """
    refuse_after_fork()
    key = (spec, device, _digest(X) + _digest(Y))
    with _lock:  # another thread that needs the same one waits for it
        if key not in _known:
            ones = np.ones((1, len(X)))
            # Always alone in its program, which is cheaper than a group filled up with copies.
            (_known[key],) = train_weightings(spec, X, Y, ones, [UNIFORM_SEED], device, at_once=1)
        _known.move_to_end(key)
        while len(_known) > _KEPT:
            _known.popitem(last=False)
        return _known[key]


def _digest(values: FloatArray) -> bytes:
    shape = repr((values.shape, values.dtype.str)).encode()
    return hashlib.blake2b(np.ascontiguousarray(values).data, digest_size=16, person=b"moew").digest() + shape
