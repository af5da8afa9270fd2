"""
How it works, in pictures
=========================

The problem of the paper's Figure 1, drawn step by step: the rows, the candidates, the weights that win, and
the model that comes of them. The data are simulated, so that the truth is known.
"""

# %%
# The rows
# --------
# Training rows lie mostly in the upper right corner, the rows that matter in the lower left. Positives
# (orange) are common above the diagonal and rare below. The metric is precision at 95 % recall: find nearly
# all positives, with as few false alarms as possible.

import checkout  # noqa: F401  # finds experiments/, beside this folder
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from experiments.datasets import draw_figure_1
from moew import ExampleWeights, MetricSearch
from moew.metrics import precision_at_recall
from moew.plotting import landscape, weight_contours

BLUE, ORANGE = "#0072B2", "#D55E00"
rng = np.random.default_rng(1)
X, y = draw_figure_1(rng, 5_000, 2, 1)
X_val, y_val = draw_figure_1(rng, 2_000, 1, 2)
X_test, y_test = draw_figure_1(rng, 100_000, 1, 2)

fig, axes = plt.subplots(1, 2, figsize=(8, 4), layout="constrained", sharey=True)
for ax, rows, labels, name in ((axes[0], X, y, "training rows"), (axes[1], X_val, y_val, "validation rows")):
    shown = slice(0, 1_000)
    ax.scatter(*rows[shown].T, s=6, c=np.where(labels[shown], ORANGE, BLUE), alpha=0.6)
    ax.plot([0, 1], [1, 0], color="black", linewidth=1)
    ax.set(title=name, xlabel="x₁", aspect="equal")
axes[0].set_ylabel("x₂")
plt.show()

# %%
# The candidates
# --------------
# A candidate is a vector α; it gives every training row (x, y) the weight w(x, y; α) = c · π(y) · σ(z(x,
# y)ᵀα). So that α can be drawn, the embedding z has two dimensions here: x₁ and x₂, standardised. For each
# α a model is trained with these weights and scored on the validation rows.
#
# The first batch is random. After it a Gaussian process guesses the score of every α (right: the guess of one
# that is fitted to all candidates), and the next batches go where it may be high (GP-BUCB): on the left, dark
# points are late ones, and they gather.
#
# The three last settings make it the paper's algorithm: candidates are evaluated on the validation rows
# alone, the single best of them is taken, and no simpler strategy may be selected in its place.

search = MetricSearch(
    LogisticRegression(),
    metric=precision_at_recall(0.95),
    strategies=[ExampleWeights(embedding=lambda X, y: X, radius=3.0, batch_size=15, final="best")],
    n_candidates=90,
    evaluate_on="validation",
    random_state=0,
)
search.fit(X, y, validation=(X_val, y_val))
print(search.result_)

alphas = np.array([trial.alpha for trial in search.result_.trials])
batch = np.concatenate([[0], np.repeat(np.arange(1, 7), 15)])

fig, axes = plt.subplots(1, 2, figsize=(10.5, 4.8), layout="constrained")
points = axes[0].scatter(*alphas.T, c=batch, cmap="Greys", s=36, edgecolors="#666666", linewidths=0.5)
axes[0].add_patch(plt.Circle((0, 0), 3.0, fill=False, color="#999999"))
axes[0].plot(*search.best_alpha_, marker="*", markersize=16, color=ORANGE, linestyle="none")
axes[0].set(title="where the batches went", xlabel="α1", ylabel="α2", aspect="equal")
fig.colorbar(points, ax=axes[0], label="batch", shrink=0.85)
landscape(search, ax=axes[1])
plt.show()

# %%
# The weights
# -----------
# The winner's weights are a function of any row: here for negatives and for positives, on top of the training
# rows, as in the paper's Figure 1 (c) and (d). Their ratio is the same everywhere, because this z does not
# look at the label: π(y), the label shift, alone tells them apart.

fig, axes = plt.subplots(1, 2, figsize=(8.5, 4), layout="constrained", sharey=True)
for ax, label, name in ((axes[0], False, "weights of negatives"), (axes[1], True, "weights of positives")):
    weight_contours(search, X, y, label, ax=ax).set(title=name, aspect="equal")
plt.show()

# %%
# The model
# ---------
# What all of this changes is the slope of one straight line. Each model selects the test rows on its upper
# right side, at the threshold that finds 95 % of the positives.

plain = LogisticRegression().fit(X, y)
side = np.array([0.0, 1.0])
fig, ax = plt.subplots(figsize=(4.6, 4.2), layout="constrained")
ax.scatter(*X_test[:1_500].T, s=5, c=np.where(y_test[:1_500], ORANGE, BLUE), alpha=0.35)
for name, model, style in (("unweighted", plain, "--"), ("moew", search.best_estimator_, "-")):
    score = model.decision_function(X_test)
    threshold = np.quantile(score[y_test], 0.05)
    (w1, w2), b = model.coef_[0], model.intercept_[0]
    precision = 100 * precision_at_recall(0.95)(y_test, score)
    ax.plot(side, (threshold - b - w1 * side) / w2, style, color="black", label=f"{name}: {precision:.1f} %")
    print(f"{name}: test precision at 95 % recall {precision:.1f} %")
ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="x₁", ylabel="x₂", aspect="equal")
ax.legend(loc="upper right")
plt.show()

# %%
# This is one draw of the data. :doc:`/figure-1` has thirty, with margins, beside importance weights, random
# ones, and what this demonstration does not show.
