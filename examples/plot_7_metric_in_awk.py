"""
A metric in another language: breast cancer
===========================================

The number you are judged by may live in a program that you did not write: a simulation, a spreadsheet's
macro, a script of the statistics department. A metric is a function, so the function can call it. Here the
program is in AWK and computes the **net benefit** of a diagnosis: tumours found, less false alarms at
nine to one.
"""

# %%
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from moew import ExampleWeights, MetricSearch, make_metric

if shutil.which("awk") is None:
    raise SystemExit("This example needs the program awk.")

PROGRAM = Path(globals().get("__file__", "")).parent / "net_benefit.awk"  # the gallery runs it in its folder
print(PROGRAM.read_text(encoding="utf-8"))

# %%
# The function writes one line for each row and reads the number that comes back. A program that fails raises
# ``CalledProcessError``: that candidate is recorded with the message and skipped, and if it happens
# to all of a batch the search stops and says so.


def net_benefit(y_true, decision):
    lines = "\n".join(f"{label},{decided}" for label, decided in zip(y_true, decision, strict=True))
    done = subprocess.run(
        ["awk", "-f", str(PROGRAM)], input=lines, capture_output=True, text=True, check=True, timeout=10
    )
    return float(done.stdout)


# %%
# To choose among the strategies, and for their honest scores, the metric is asked thousands of times: free
# for a function in memory, minutes for a program. ``slow=True`` says that a call takes long, so that few are
# made: honest scores come from two halves of the rows, and no decisions are tuned.
#
# Malignant is 1 here. Features are cut down to two, so that there is something to weigh: with all
# thirty the tumours are told apart almost perfectly whatever the weights.

X, y = load_breast_cancer(return_X_y=True)
X, y = X[:, [1, 4]], 1 - y  # mean texture, mean smoothness


def run_split(seed):
    X_train, X_rest, y_train, y_rest = train_test_split(X, y, train_size=0.4, stratify=y, random_state=seed)
    halves = train_test_split(X_rest, y_rest, train_size=0.5, stratify=y_rest, random_state=seed)
    X_val, X_test, y_val, y_test = halves
    model = make_pipeline(StandardScaler(), LogisticRegression())
    search = MetricSearch(
        model,
        metric=make_metric(net_benefit, name="net benefit (AWK)", slow=True),
        strategies=["auto", ExampleWeights(embedding="label", batch_size=8)],
        n_candidates=24,
        random_state=seed,
    )
    search.fit(X_train, y_train, validation=(X_val, y_val))
    both = np.concatenate([X_train, X_val]), np.concatenate([y_train, y_val])
    plain = model.fit(*both).predict(X_test)
    # The textbook's answer for this metric: an alarm is worth it where the risk is above one in ten.
    risk = (model.predict_proba(X_test)[:, 1] > 0.1).astype(int)
    decisions = {"unweighted": plain, "risk above 1/10": risk, "moew": search.predict(X_test)}
    everybody = {"alarm for everybody": np.ones(len(y_test), dtype=int)}
    return search, {name: net_benefit(y_test, decided) for name, decided in (everybody | decisions).items()}


# %%
# Ten splits of the 569 patients.

runs = [run_split(seed) for seed in range(10)]
print(runs[0][0].result_)
print(
    "selected:", ", ".join(f"{strategy} {k}" for strategy, k in Counter(s.selected_ for s, _ in runs).items())
)
names = list(runs[0][1])
benefit = np.array([[found[name] for name in names] for _, found in runs])
fig, ax = plt.subplots(figsize=(6.5, 2.6), layout="constrained")
for name, values in zip(names, benefit.T, strict=True):
    margin = 2.26 * values.std(ddof=1) / np.sqrt(len(values))  # Student's t with 9 degrees of freedom
    print(f"{name:20} {values.mean():.3f} ± {margin:.3f}")
    ax.plot(values, [name] * len(values), ".", color="#999999")
    ax.errorbar(values.mean(), name, xerr=margin, fmt="o", color="#D55E00", capsize=4)
ax.set(xlabel="net benefit, test rows (higher is better)")
ax.grid(axis="x", alpha=0.3)
ax.margins(y=0.2)
ax.invert_yaxis()
plt.show()

# %%
# What to take from it
# --------------------
# Raising the alarm for everybody is hard to beat at these odds, and the unweighted model does not: it takes
# both errors for equally bad. ``moew`` found the right side knowing only the program's numbers, and mostly by
# class weights, a simple strategy: weights of single examples were better beyond chance in one split of ten.
# If you can look into the metric you need no search here: for this one the textbook has a threshold on the
# risk, and it does as well or better. The search is for programs that nobody can look into.
