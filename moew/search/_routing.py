"""Fit parameters from an argument of their own, or by scikit-learn's metadata routing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sklearn import get_config
from sklearn.utils.metadata_routing import process_routing

from moew.exceptions import InvalidInputError


def routed_params(
    owner: Any, fit_params: Mapping[str, Any] | None, params: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    """`fit_params` together with those of `params` that the owner's estimator requests.

    `params` are what the user passed to the owner's `fit` by name.
    """
    if not params:
        return fit_params
    if not get_config()["enable_metadata_routing"]:
        given = ", ".join(f"{name!r}: …" for name in params)
        raise InvalidInputError(
            f"fit takes no {', '.join(map(repr, params))}. What the model's fit takes is passed as "
            f"fit_params={{{given}}}, or by name with scikit-learn's metadata routing, "
            "sklearn.set_config(enable_metadata_routing=True).",
            argument="fit_params",
        )
    routed = dict(process_routing(owner, "fit", **params).estimator.fit)
    if twice := sorted(set(routed) & set(fit_params or {})):
        raise InvalidInputError(
            f"{', '.join(map(repr, twice))} are passed by name and in fit_params; leave out one of them.",
            argument="fit_params",
        )
    return {**(fit_params or {}), **routed}
