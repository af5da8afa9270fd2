"""Check trees of scikit-learn that come from a file: its compiled code does not check node numbers.

A node that points outside of its tree, or back, would crash the process or never end. scikit-learn puts
every node after its parent, so that a walk from the root ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from moew.exceptions import StateError


def check_trees(model: Any) -> None:
    """Raise a StateError unless every tree within the model can be walked safely."""
    from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
    from sklearn.tree._tree import Tree

    there, checked = set(), set()
    for found in _within(model):
        if isinstance(found, Tree | TreePredictor):
            there.add(id(found))
        trees = _trees_of(found)
        n_features: Any = getattr(found, "__dict__", {}).get("n_features_in_")
        if trees and (type(n_features) is not int or _covered_methods(found)):
            raise StateError(f"its {type(found).__name__} does not check what its trees look at.")
        for tree in trees:
            if isinstance(tree, Tree):
                _check_tree(tree, n_features)
            else:
                _check_predictor(tree, n_features, found._bin_mapper)
            checked.add(id(tree))
    if there - checked:
        raise StateError("it holds a tree outside of an estimator of trees.")


def _trees_of(found: Any) -> list[Any]:
    """The trees that an estimator calls without a check of the rows."""
    from sklearn.ensemble._forest import BaseForest
    from sklearn.ensemble._gb import BaseGradientBoosting
    from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import BaseHistGradientBoosting
    from sklearn.tree import BaseDecisionTree

    attributes = getattr(found, "__dict__", {})
    if isinstance(found, BaseDecisionTree):
        return [attributes[name] for name in ("tree_",) if name in attributes]
    if isinstance(found, BaseForest | BaseGradientBoosting):
        return [tree.tree_ for tree in np.ravel(attributes.get("estimators_", []))]
    if isinstance(found, BaseHistGradientBoosting):
        return [tree for several in attributes.get("_predictors", []) for tree in several]
    return []


def _check_tree(tree: Any, n_features: int) -> None:
    # node_count is what the file says, capacity what there is.
    if tree.node_count != tree.capacity or tree.node_count < 1 or tree.n_features != n_features:
        raise StateError("a tree of it has another size than it says.")
    inner = np.flatnonzero(tree.children_left != -1)
    _check_nodes(inner, tree.children_left, tree.children_right, tree.feature, tree.node_count, n_features)


def _check_predictor(tree: Any, n_features: int, bins: Any) -> None:
    nodes, bitsets = tree.nodes, tree.raw_left_cat_bitsets
    is_categorical = np.asarray(bins.is_categorical_)
    if nodes.ndim != 1 or not len(nodes) or is_categorical.shape != (n_features,):
        raise StateError("a tree of it has another size than it says.")
    inner = np.flatnonzero(nodes["is_leaf"] == 0)
    _check_nodes(inner, nodes["left"], nodes["right"], nodes["feature_idx"], len(nodes), n_features)
    by_category = inner[nodes["is_categorical"][inner] != 0]
    if len(by_category) and not (
        bitsets.shape[1:] == (8,)
        and nodes["bitset_idx"][by_category].max() < len(bitsets)
        and is_categorical[nodes["feature_idx"][by_category]].all()
    ):
        raise StateError("a tree of it asks for categories that are not there.")


def _check_nodes(inner: Any, left: Any, right: Any, feature: Any, n_nodes: int, n_features: int) -> None:
    for child in (left[inner].astype(np.int64), right[inner].astype(np.int64)):
        if (child <= inner).any() or (child >= n_nodes).any():
            raise StateError("a node of a tree of it points outside of the tree, or back.")
    if (feature[inner] < 0).any() or (feature[inner] >= n_features).any():
        raise StateError("a node of a tree of it looks at a feature that is not there.")


def _covered_methods(owner: Any) -> list[str]:
    """Attributes that hide a method of the class, and with it the method's checks."""
    return [name for name in vars(owner) if callable(getattr(type(owner), name, None))]


def _within(model: Any) -> Iterator[Any]:
    """The model and everything in it, each once."""
    seen: dict[int, Any] = {}  # what was made on the way is kept, so that no other takes its number
    waiting = [model]
    while waiting:
        found = waiting.pop()
        if id(found) not in seen:
            seen[id(found)] = found
            yield found
            waiting += _inside(found)


def _inside(found: Any) -> list[Any]:
    if isinstance(found, dict):
        return [*found, *found.values()]
    if isinstance(found, list | tuple | set | frozenset):
        return [*found]
    if isinstance(found, np.ndarray):
        return found.ravel().tolist() if found.dtype == object else []
    return [] if isinstance(found, type) else [*getattr(found, "__dict__", {}).values()]
