"""Plots of several metrics, of probabilities and of thresholds."""

import matplotlib as mpl
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

mpl.use("Agg")
import matplotlib.pyplot as plt

from moew import MetricSearch, plotting
from moew.exceptions import InvalidInputError
from moew.inspection import reliability, threshold_curve

RNG = np.random.default_rng(0)
Y = (RNG.random(400) < 0.3).astype(int)
X = RNG.normal(size=(400, 3)) + Y[:, None]


@pytest.fixture(scope="module")
def search():
    made = MetricSearch.from_settings(
        LogisticRegression(),
        metric=["f1", "recall"],
        constraints="recall >= 0.5",
        calibrate="sigmoid",
        n_candidates=4,
        batch_size=4,
        random_state=0,
        honest=None,
    )
    return made.fit(X, Y)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def test_the_front_has_every_model_and_its_star(search):
    ax = plotting.pareto(search)
    dots, star = ax.collections
    models = search.result_.pareto.models
    assert dots.get_offsets().tolist() == [[m.values[1], m.values[0]] for m in models]
    chosen = search.result_.pareto.selected
    assert star.get_offsets().tolist() == [[chosen.values[1], chosen.values[0]]]
    front, bound = ax.lines
    assert set(front.get_xdata()) == {m.values[1] for m in search.result_.pareto.front}
    assert set(bound.get_xdata()) == {0.5}
    assert ax.get_xlabel() == "recall (higher is better)"
    with pytest.raises(InvalidInputError, match="none of the metrics"):
        plotting.pareto(search, "precision")


def test_reliability_and_threshold_are_the_numbers_of_inspection(search):
    _, given = plt.subplots()
    ax = plotting.reliability_curve(search, ax=given)
    assert ax is given
    found = reliability(search.fitted_)
    for line, curve in zip(ax.lines[1:], (found.before, found.after), strict=True):
        assert line.get_ydata().tolist() == [one.observed for one in curve.bins]
    ax = plotting.metric_over_threshold(search, X, Y)
    curve = threshold_curve(search.fitted_, X, Y)
    assert ax.lines[0].get_ydata() == pytest.approx(curve.values)
    assert ax.collections[0].get_offsets().tolist() == [[curve.chosen, curve.value]]
