"""
The worst class: digits
=======================

A program that reads forms is not judged by its accuracy. If it misreads every third *eight*, nobody is
consoled by its perfect zeros. The number that counts is the **worst class error**: the error rate of the
digit that is read worst.

The data are scikit-learn's digits, made hard on purpose: noise on the pixels, and the digits 5 to 9 rare in
training, as they would be if forms were collected where low numbers are written.
"""

# %%
# Three sets of rows
# ------------------
# Training rows are shifted; validation and test rows have all digits alike. That is what a validation set
# is for here: it says what matters.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from moew import ExampleWeights, MetricSearch, compare
from moew.data import Rows
from moew.metrics import worst_class_error
from moew.plotting import weights_by_class

rng = np.random.default_rng(0)
X, y = load_digits(return_X_y=True)
X = X / 16 + rng.normal(0, 0.3, X.shape)
train, validation, test = np.split(rng.permutation(len(y)), [700, 1200])
train = train[(y[train] < 5) | (rng.random(len(train)) < 0.2)]  # one in five of the digits 5 to 9
print("training rows by digit:", np.bincount(y[train]))

# %%
# The search
# ----------
# Which digit needs more weight depends on the digit alone, so the embedding is the label: one dimension for
# each class, as the paper does for MNIST. The model is linear and cannot be good at everything, so there is
# something to decide: by weights, or by the decisions of a model that is left as it is. The search looks at
# all strategies and selects the best by honest scores, or the simplest that is as good.

search = MetricSearch(
    LogisticRegression(max_iter=200),
    metric=worst_class_error(),
    strategies=["auto", ExampleWeights(embedding="label", batch_size=10)],
    n_candidates=50,
    random_state=0,
)
search.fit(X[train], y[train], validation=(X[validation], y[validation]))
print(search.result_)

# %%
# On the left the honest scores of all strategies, on the right the errors of the selected model on the test
# rows; dotted lines are the worst ones. The peer is what one would try first, ``class_weight="balanced"``.

fig, axes = plt.subplots(1, 2, figsize=(9.5, 3.4), layout="constrained")
for strategy in search.result_.strategies:
    colour = "#D55E00" if strategy.name == search.selected_ else "#999999"
    axes[0].plot(strategy.honest, strategy.name, "o", color=colour)
axes[0].set(xlabel="worst class error, honest (selected: orange)", xlim=(0, 1.05))
axes[0].grid(axis="x", alpha=0.3)
axes[0].invert_yaxis()

digits = np.arange(10)
balanced = LogisticRegression(max_iter=200, class_weight="balanced").fit(X[train], y[train])
arms = (("class_weight='balanced'", balanced, "#0072B2", -0.2), ("moew", search, "#D55E00", 0.2))
for name, model, colour, step in arms:
    wrong = model.predict(X[test]) != y[test]
    errors = np.array([wrong[y[test] == digit].mean() for digit in digits])
    axes[1].bar(digits + step, errors, 0.4, label=name, color=colour)
    axes[1].axhline(errors.max(), color=colour, linestyle=":", linewidth=1)
    print(f"{name}: worst class error {errors.max():.3f}, all rows {wrong.mean():.3f} (test)")
axes[1].set(xticks=digits, xlabel="digit", ylabel="error on test rows", ylim=(0, 0.8))
axes[1].legend(frameon=False)
plt.show()

# %%
# What example weights learn
# --------------------------
# As the only strategy, example weights are selected whatever simpler strategies reach. What they learn
# here is one weight for each digit, because the embedding knows nothing else. Beside it stand the validation
# errors of the unweighted model, which the weights had to mend.

weighted = clone(search).set_params(strategies=[ExampleWeights(embedding="label", batch_size=10)])
weighted.fit(X[train], y[train], validation=(X[validation], y[validation]))
fig, ax = plt.subplots(figsize=(5.5, 3.4), layout="constrained")
weights_by_class(weighted, Rows(X[train], y[train]), Rows(X[validation], y[validation]), ax=ax)
plt.show()
print(f"{weighted.selected_}: worst class error {weighted.metric_value(X[test], y[test]):.3f} (test)")

# %%
# Is it luck?
# -----------
# One search proves nothing. :func:`moew.compare` trains as many models for each way of weighting, picks
# each strategy's best on the validation rows, and looks at the test rows once, here three times over.

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
# Unweighted, the worst digit is nearly unread. Importance weights by the pixels do not see that the classes
# are shifted. Class weights do, and decisions tuned for the metric do as much for a model that is left alone.
# On the test rows both together are best; on the evaluation rows tuned decisions alone look as good, and they
# are simpler, so ``moew`` mostly ends near them. Weights of single examples have nothing to add here.
#
# The margins are wide. 500 validation rows hold about 50 of each digit, and the best of many on so few is
# partly luck: that is why *apparent*, *honest* and *test* differ, most of all for tuned decisions. With 597
# test rows the lead of one simple strategy over another is within what luck can do; the lead over uniform
# weights is not.
