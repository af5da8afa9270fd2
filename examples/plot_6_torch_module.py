"""
A PyTorch module: digits
========================

Any ``nn.Module`` can be searched with. :class:`moew.models.torch.TorchClassifier` wraps it as a scikit-learn
estimator and trains all candidates of a batch at once, with stacked parameters. The problem is that of
:ref:`sphx_glr_gallery_plot_1_worst_class_digits.py`: noisy digits of which five are rare in training, and the
error of the worst class.
"""

# %%
from functools import partial

import matplotlib.pyplot as plt
import numpy as np

try:
    import torch
    from torch import nn

    from moew.models import TorchClassifier
except ImportError as error:
    raise SystemExit(f"This example needs PyTorch.\n{error}") from None
from sklearn.datasets import load_digits

from moew import ExampleWeights, MetricSearch, compare
from moew.metrics import worst_class_error

rng = np.random.default_rng(0)
X, y = load_digits(return_X_y=True)
X = X / 16 + rng.normal(0, 0.3, X.shape)
train, validation, test = np.split(rng.permutation(len(y)), [700, 1200])
train = train[(y[train] < 5) | (rng.random(len(train)) < 0.2)]

# %%
# The module
# ----------
# A factory is called with the number of inputs and outputs. The bottleneck of ten units keeps the network
# from being good at every digit; dropout is there to show that it may be.


def network(n_inputs, n_outputs):
    return nn.Sequential(nn.Linear(n_inputs, 10), nn.Tanh(), nn.Dropout(0.1), nn.Linear(10, n_outputs))


search = MetricSearch(
    TorchClassifier(network, optimizer=partial(torch.optim.Adam, lr=0.02), steps=200, batch_size=50),
    metric=worst_class_error(),
    strategies=["auto", ExampleWeights(embedding="label", batch_size=8)],
    n_candidates=16,
    random_state=0,
)
comparison = compare(
    search,
    X[train],
    y[train],
    validation=(X[validation], y[validation]),
    test=(X[test], y[test]),
    repeats=3,
)
print(comparison)

# %%
# A network starts at random, so each way of weighting gets about as many networks as ``moew``, and its
# best one on the validation rows counts. That alone brings little here. Decisions tuned for the metric bring
# most of the gain; ``moew``, which looks at all strategies, stands beside them. Three repeats of a noisy
# metric leave wide margins: the gain over uniform weights is told from nothing, those between tuned
# strategies are not.

fig, ax = plt.subplots(figsize=(6.5, 2.6), layout="constrained")
for row in comparison.rows:
    ax.plot(row.test, [row.method] * len(row.test), ".", color="#999999")
    ax.errorbar(row.test.mean(), row.method, xerr=row.margin, fmt="o", color="#D55E00", capsize=4)
ax.set(xlabel="worst class error, test rows (lower is better)")
ax.grid(axis="x", alpha=0.3)
ax.margins(y=0.2)
ax.invert_yaxis()
plt.show()

# %%
# The selected model, and a fitted module, which is an ordinary one. The selected model may average several.

search.fit(X[train], y[train], validation=(X[validation], y[validation]))
print(search.selected_)
print(search.unweighted_estimator_.module_)
