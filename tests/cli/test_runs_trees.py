"""Trees whose nodes were changed in the file are refused, before their compiled code can crash on them."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier
from tables import PAPER, QUICK, change_entries, entries, fit_once, write_classes

from moew.exceptions import StateError
from moew.saving._trees import check_trees

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
FAR = 50_000_000


@pytest.fixture(autouse=True)
def folder(own_folder):
    write_classes(own_folder)
    return own_folder


def rows():
    train = pd.read_csv("train.csv")
    return train[["a", "b"]].to_numpy(), train["y"]


def change_tree(tree, **changes):
    """A tree of a forest with fields of its root, or its node_count, changed."""
    state = tree.__getstate__()
    nodes = state["nodes"].copy()
    for name in ("left_child", "right_child", "feature"):
        if name in changes:
            nodes[name][0] = changes[name]
    tree.__setstate__({**state, "nodes": nodes, "node_count": changes.get("node_count", len(nodes))})


def change_forest(forest, **changes):
    change_tree(forest.estimators_[0].tree_, **changes)


def change_boosting(boosting, **changes):
    nodes = boosting._predictors[0][0].nodes
    names = {"left_child": "left", "right_child": "right", "feature": "feature_idx"}
    for name, value in changes.items():
        nodes[names.get(name, name)][0] = value


MODELS = {
    "random_forest": ("n_estimators=2", change_forest),
    "hist_gradient_boosting": ("max_iter=2", change_boosting),
}
CHANGES = [
    ({"left_child": FAR, "right_child": FAR}, "points outside of the tree"),
    ({"left_child": 0, "right_child": 0}, "points outside of the tree, or back"),  # would never end
    ({"feature": FAR}, "looks at a feature that is not there"),
]


@pytest.mark.parametrize(
    ("model", "changes", "words"),
    [
        ("random_forest", *CHANGES[0]),
        ("random_forest", *CHANGES[1]),
        ("hist_gradient_boosting", *CHANGES[2]),
        pytest.param("random_forest", *CHANGES[2], marks=pytest.mark.heavy),
        pytest.param("hist_gradient_boosting", *CHANGES[0], marks=pytest.mark.heavy),
        pytest.param("hist_gradient_boosting", *CHANGES[1], marks=pytest.mark.heavy),
    ],
)
def test_a_changed_file_is_refused_and_crashes_nothing(model, changes, words):
    option, change = MODELS[model]
    data = ("train.csv", "--validation", "valid.csv", "--label", "y", "--metric", "accuracy", "--drop", "id")
    fit_once("fit", *data, "--model", model, "--model-option", option, *QUICK, *PAPER)
    packed = entries()["model.skops"]
    pipeline = skops.io.loads(packed, trusted=skops.io.get_untrusted_types(data=packed))
    change(pipeline[-1], **changes)
    change_entries({"model.skops": skops.io.dumps(pipeline)})
    command = [sys.executable, "-m", "moew", "predict", "run", "test.csv"]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, timeout=120)
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert done.stderr.startswith("moew: run/search.moew/model.skops") and words in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeClassifier(),
        DecisionTreeClassifier(max_leaf_nodes=5),  # best first
        DecisionTreeClassifier(ccp_alpha=0.01),  # pruned
        RandomForestClassifier(2),
        GradientBoostingClassifier(n_estimators=2),
        HistGradientBoostingClassifier(max_iter=2),
        HistGradientBoostingClassifier(max_iter=2, categorical_features=[1]),
        AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=2),
        BaggingClassifier(DecisionTreeClassifier(), n_estimators=2, max_features=1),
        StackingClassifier([("forest", RandomForestClassifier(2))], DecisionTreeClassifier()),
        make_pipeline(FunctionTransformer(), RandomForestClassifier(2)),
    ],
    ids=lambda model: type(model).__name__,
)
def test_trees_as_scikit_learn_makes_them_are_taken(model):
    X, y = rows()
    check_trees(model.fit(np.abs(X.round()), y))


@pytest.mark.parametrize("change", [{"node_count": 10_000}, {"node_count": 0}])
def test_sizes_that_are_not_the_trees_own_are_refused(change):
    forest = RandomForestClassifier(2).fit(*rows())
    change_forest(forest, **change)
    with pytest.raises(StateError, match="another size than it says"):
        check_trees(forest)


def test_an_estimator_must_check_its_rows_itself():
    forest = RandomForestClassifier(2).fit(*rows())
    forest.n_features_in_ = 3
    with pytest.raises(StateError, match="another size"):
        check_trees([forest])
    del forest.n_features_in_
    with pytest.raises(StateError, match="does not check what its trees look at"):
        check_trees({"model": forest})
    forest.n_features_in_ = 2
    forest._validate_X_predict = np.asarray
    with pytest.raises(StateError, match="does not check what its trees look at"):
        check_trees(forest)
    with pytest.raises(StateError, match="outside of an estimator"):
        check_trees(make_pipeline(FunctionTransformer(), forest.estimators_[0].tree_))


def test_categories_that_are_not_there_are_refused():
    boosting = HistGradientBoostingClassifier(max_iter=2).fit(*rows())
    change_boosting(boosting, is_categorical=1)
    with pytest.raises(StateError, match="categories that are not there"):
        check_trees(boosting)
