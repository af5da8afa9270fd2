"""
Money saved: credit default
===========================

A bank may block a credit card before the client fails to pay. Blocking one who defaults saves the bill;
blocking one who would have paid annoys a good client, which is put at a tenth of the credit limit here. The
model is judged by **the money saved per client**, not by its accuracy: small bills hardly count.

Three ways to get there are compared: learn the weights from the metric; write down what is at stake as
the weight; leave the model alone and decide with its probabilities."""

# %%
# The data (UCI 350, 30,000 clients) must be in the folder ``MOEW_DATA``: see ``experiments/datasets``.

from collections import Counter

import checkout  # noqa: F401  # finds experiments/, beside this folder
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from experiments.datasets import DataFileError, load_credit_default
from moew import ExampleWeights, MetricSearch, Rows, make_metric

try:
    clients = load_credit_default()
except DataFileError as error:
    raise SystemExit(f"This example needs data that is not here.\n{error}") from None

X, y = clients.X, clients.y
bill = np.maximum(clients.columns["BILL_AMT1"], 0)
limit = clients.columns["LIMIT_BAL"]

# %%
# The metric
# ----------
# Beside labels and decisions the function names the columns that it needs; they are passed as ``columns``
# of the training rows and of the validation rows, so that both can be evaluated, the former out of fold.


def money_saved(y_true, decision, bill, limit):
    blocked = decision == 1
    saved = bill[blocked & (y_true == 1)].sum()
    harm = 0.1 * limit[blocked & (y_true == 0)].sum()
    return (saved - harm) / len(y_true)


metric = make_metric(money_saved, name="money saved per client")

# %%
# The ways to weight
# ------------------
# The metric is a sum over the rows, so there is a textbook answer: weight each row by what a wrong decision
# on it costs. The search does not know that; by default its weights depend on the label, the metric's two
# columns and some directions of the features. It can also begin at the textbook's weights, as its base
# weights π. Beside weights it looks at simple strategies, such as tuned decisions, and selects the best by
# honest scores, or the simplest that is as good.

MONEY = [clients.feature_names.index(name) for name in ("LIMIT_BAL", "BILL_AMT1")]


def at_stake(X, y):
    limit, bill = X[:, MONEY].T
    return np.where(y == 1, np.maximum(bill, 0), 0.1 * limit) + 1_000  # a weight must be above 0


def new_model():
    return make_pipeline(StandardScaler(), LogisticRegression())


def search_from(base_weights, seed):
    return MetricSearch(
        new_model(),
        metric=metric,
        strategies=["auto", ExampleWeights(base_weights=base_weights, batch_size=10)],
        n_candidates=50,
        random_state=seed,
    )


# %%
# Eight splits
# ------------
# 3,000 clients for training, 2,000 for validation, the other 25,000 for the test, drawn anew each time. The
# plain models get the validation rows as further training rows, so that nobody has more data than another.


def run_split(seed):
    rng = np.random.default_rng(seed)
    train, validation, test = np.split(rng.permutation(len(y)), [3_000, 5_000])
    both = np.concatenate([train, validation])
    money, money_val, money_test = (
        {"bill": bill[rows], "limit": limit[rows]} for rows in (train, validation, test)
    )

    plain = new_model().fit(X[both], y[both])
    stake = at_stake(X[both], y[both]) / 1e4
    by_stake = new_model().fit(X[both], y[both], logisticregression__sample_weight=stake)
    probability = plain.predict_proba(X[test])[:, 1]
    worth_it = probability * bill[test] > (1 - probability) * 0.1 * limit[test]
    decisions = {
        "unweighted": plain.predict(X[test]),
        "probability × money": worth_it.astype(int),
        "money as weight": by_stake.predict(X[test]),
    }
    for name, base_weights in (("moew", "uniform"), ("moew, from money", at_stake)):
        search = search_from(base_weights, seed)
        given = Rows(X[validation], y[validation], columns=money_val)
        search.fit(X[train], y[train], columns=money, validation=given)
        decisions[name] = search.predict(X[test])
        selected[name, search.selected_] += 1
    return {name: metric(y[test], decided, money_test) for name, decided in decisions.items()}


selected = Counter()
splits = [run_split(seed) for seed in range(8)]
names = list(splits[0])
saved = np.array([[split[name] for name in names] for split in splits])
margins = 2.36 * saved.std(axis=0, ddof=1) / np.sqrt(len(saved))  # Student's t with 7 degrees of freedom
for name, mean, margin in zip(names, saved.mean(axis=0), margins, strict=True):
    print(f"{name:22}{mean:8,.0f} ± {margin:,.0f}")
for (name, strategy), times in sorted(selected.items()):
    print(f"{name}: {strategy} selected {times} times")

fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
ax.errorbar(saved.mean(axis=0), names, xerr=margins, fmt="o", color="#D55E00", capsize=4, zorder=3)
ax.plot(saved.T, names, ".", color="#999999", markersize=4)
ax.set(xlabel="money saved per client, test rows (NT$)", xlim=(0, None))
ax.grid(axis="x", alpha=0.3)
ax.margins(y=0.2)
ax.invert_yaxis()
plt.show()

# %%
# What to take from it
# --------------------
# Judged by the money, the unweighted model is poor. Weights learned from nothing but the metric, mostly
# with decisions tuned for it, save more than twice as much, about what probabilities and money save together;
# no simple strategy came near, so example weights were selected every time. But **where the right weights can
# be written down, write them down**: money as the weight is at least as good as the search, and cheaper, and
# a search that begins there finds nothing to add. The search is for metrics that are not such a sum: a worst
# class, a ratio, a quantile, a program that nobody can look into.
