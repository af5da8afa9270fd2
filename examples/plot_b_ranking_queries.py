"""
Rows that belong together: ranking by query
===========================================

A search engine for scans gets one scan and ranks twenty others; those that show the same digit should come
first. It is judged by the **NDCG of each query**, averaged. The metric makes sense for whole queries only,
and rows of one query are more alike than others. So the search must know which rows belong together:
``groups=``.

The data are scikit-learn's digits. Every scan is in one query at most, so that nothing is known before.
"""

# %%
# Queries
# -------
# A query is one scan and twenty others, all drawn at random. A row is a pair: how much the two differ at each
# of 4 × 4 pixels. It is relevant (1) if both show the same digit, as about one in ten do.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from moew import ExampleWeights, MetricSearch, Rows, make_metric

pixels, digit = load_digits(return_X_y=True)
scans = pixels.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(-1, 16) / 16
N_QUERIES, N_RESULTS = 85, 20


def draw_queries(seed):
    """X (n, 16), relevant (n,) and the query (n,) of all queries, from scans in a random order."""
    order = np.random.default_rng(seed).permutation(len(digit))[: N_QUERIES * (N_RESULTS + 1)]
    order = order.reshape(N_QUERIES, N_RESULTS + 1)
    asked, found = order[:, :1], order[:, 1:]
    X = np.abs(scans[found] - scans[asked]).reshape(-1, 16)
    relevant = (digit[found] == digit[asked]).astype(int).ravel()
    return X, relevant, np.repeat(np.arange(N_QUERIES), N_RESULTS)


X, y, query = draw_queries(0)
train, validation, test = query < 30, (query >= 30) & (query < 55), query >= 55
print(
    f"{train.sum()} training, {validation.sum()} validation, {test.sum()} test rows; {y.mean():.0%} relevant"
)

# %%
# The metric
# ----------
# It needs the query of each row, which it gets by name. Queries without a relevant row do not count.


def ndcg(y_true, score, query):
    gains = []
    for one in np.unique(query):
        relevant = y_true[query == one][np.argsort(-score[query == one], kind="stable")]
        discount = 1 / np.log2(np.arange(len(relevant)) + 2)
        if relevant.any():
            gains.append(relevant @ discount / discount[: relevant.sum()].sum())
    return float(np.mean(gains))


metric = make_metric(ndcg, response="score", name="NDCG by query", bounds=(0, 1))

# %%
# The search
# ----------
# ``groups`` name the query of each row, of training and of validation rows: no fold, no half and no resample
# cuts one apart. The same numbers go to the metric as one of the ``columns``.


def fit_search(X, y, query, seed, together):
    """A search on training and validation queries, told which rows belong together, or not."""
    search = MetricSearch(
        LogisticRegression(),
        metric=metric,
        strategies=["auto", ExampleWeights(embedding="label", batch_size=8)],
        n_candidates=16,
        random_state=seed,
    )

    def more(rows):
        return {"columns": {"query": query[rows]}, "groups": query[rows] if together else None}

    given = Rows(X[validation], y[validation], **more(validation))
    return search.fit(X[train], y[train], **more(train), validation=given)


print(fit_search(X, y, query, seed=0, together=True).result_)

# %%
# What comes out
# --------------
# Five draws of all queries, each with other scans. The test queries are looked at once. Beside it stands the
# honest score of a search that is not told which rows belong together.

scores = {"unweighted, test": [], "moew, test": [], "moew, honest": [], "honest, rows on their own": []}
for seed in range(1, 6):
    X, y, query = draw_queries(seed)
    search = fit_search(X, y, query, seed, together=True)
    plain = LogisticRegression().fit(X[train], y[train])
    of_test = (plain.predict_proba(X[test])[:, 1], search.predict_proba(X[test])[:, 1])
    values = [ndcg(y[test], score, query[test]) for score in of_test]
    values += [search.honest_score_, fit_search(X, y, query, seed, together=False).honest_score_]
    for name, value in zip(scores, values, strict=True):
        scores[name].append(value)
    print(f"draw {seed}: " + ", ".join(f"{n} {v:.3f}" for n, v in zip(scores, values, strict=True)))

fig, ax = plt.subplots(figsize=(6.5, 2.8), layout="constrained")
for place, (name, values) in enumerate(scores.items()):
    ax.plot(values, np.full(5, place), "o", color="#D55E00" if "moew" in name else "#777777", alpha=0.6)
    ax.plot(np.mean(values), place, "|", color="black", markersize=22)
ax.set(yticks=range(4), yticklabels=list(scores), xlabel="NDCG by query; the strokes are means")
ax.invert_yaxis()
ax.grid(axis="x", alpha=0.3)
plt.show()

gain = np.subtract(scores["moew, test"], scores["unweighted, test"])
print(f"moew − unweighted: {gain.mean():+.3f} ± {2.78 * gain.std(ddof=1) / 5**0.5:.3f} (95 %, five draws)")
for name in ("moew, honest", "honest, rows on their own"):
    off = np.abs(np.subtract(scores[name], scores["moew, test"]))
    print(f"{name}: {off.mean():.3f} from the test score on average")

# %%
# Weights have little to gain here: the margin of the gain holds zero. That is what a search should say of a
# model whose scores are about right.
#
# What matters is the other half. With queries kept whole, the honest score is as near to the test score as so
# few queries allow. Without, halves of queries are scored as if they were queries, and a model that knows a
# scan from one half meets it again in the other. The score is then about twice as far off, in either
# direction, and nothing warns.
