"""
A cluster: Dask on this machine
===============================

Candidates of a batch do not depend on each other, so they can be trained anywhere. Inside
``parallel_config(backend="dask")`` a search hands each candidate to the cluster as a task of its own; the
rows travel once. Here the cluster is two processes on this machine, in place of machines of yours.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from joblib import parallel_config
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from moew import ExampleWeights, MetricSearch
from moew.metrics import worst_class_error
from moew.plotting import history

try:
    from dask.distributed import Client, LocalCluster
except ImportError:
    raise SystemExit("This example needs Dask: pip install 'dask[distributed]'.") from None

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=0.7, stratify=y, random_state=0)

# %%
# The search
# ----------
# Without validation rows of their own, rows of the training set must do: three folds, whose out-of-fold
# answers are scored together. The winner is trained again on all rows.

search = MetricSearch(
    RandomForestClassifier(20, max_depth=4),
    metric=worst_class_error(),
    strategies=["auto", ExampleWeights(embedding="label", batch_size=8)],
    n_candidates=24,
    evaluate_on=3,
    random_state=0,
)

# %%
# In a script these lines belong under ``if __name__ == "__main__":``, as always where processes are started.
# For a real cluster, ``Client("tcp://SCHEDULER:8786")`` is all that changes.


def fit_on_cluster():
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster),
        parallel_config(backend="dask"),
    ):
        return search.fit(X_train, y_train)


if __name__ == "__main__":
    fit_on_cluster()
    print(search.result_)

# %%
# The same bits everywhere
# ------------------------
# Where a model was trained changes nothing: the same search in this process finds the same, to the last bit.

if __name__ == "__main__":
    here = clone(search).fit(X_train, y_train)
    print("the same alpha:", np.array_equal(here.best_alpha_, search.best_alpha_))
    print("the same predictions:", np.array_equal(here.predict(X_test), search.predict(X_test)))

# %%
# What the search for example weights tried, candidate by candidate, in the order of their numbers:

if __name__ == "__main__":
    history(search)
    plt.show()
    plain = RandomForestClassifier(20, max_depth=4, random_state=0).fit(X_train, y_train)
    print(f"worst class error on the test rows: {search.metric_value(X_test, y_test):.3f}")
    print(f"one unweighted forest: {worst_class_error()(y_test, plain.predict(X_test)):.3f}")

# %%
# This shows how, not that it pays: a model that trains in milliseconds gains nothing from a cluster. What is
# selected are tuned decisions: example weights scored better, but not beyond chance. One search is no
# evidence either; compare before you believe (:func:`moew.compare`).
