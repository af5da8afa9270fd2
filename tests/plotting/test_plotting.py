"""What the plots draw."""

import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
import searches
from problems import shifted_classes
from sklearn.linear_model import LogisticRegression

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import to_hex

from moew import MetricSearch, plotting
from moew._util.colours import COLOURS, viridis
from moew.data import Rows
from moew.exceptions import InvalidInputError


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_history_draws_every_candidate_and_the_best_so_far():
    search, _ = searches.multiclass()
    ax = plotting.history(search)
    points, star = ax.collections
    assert star.get_offsets().tolist() == [[search.result_.best_number, search.result_.best_trial.value]]
    assert points.get_offsets()[:, 1].tolist() == [told.value for told in search.result_.trials]
    best, unweighted, honest = ax.lines
    assert best.get_ydata()[-1] == search.result_.best_trial.value
    assert set(unweighted.get_ydata()) == {search.unweighted_score_}
    assert set(honest.get_ydata()) == {search.honest_score_}
    assert "lower is better" in ax.get_ylabel()
    assert texts(ax) == ["candidates", "best so far", "unweighted", "the winner's honest score", "winner"]


def drawn_points(ax):
    """Where lines and points lie, on the screen."""
    parts = [line.get_transform().transform(line.get_xydata()) for line in ax.lines]
    parts += [
        c.get_offset_transform().transform(c.get_offsets()) for c in ax.collections if len(c.get_offsets())
    ]
    parts += [ax.transData.transform([(bar.get_x(), bar.get_height())]) for bar in ax.patches]
    return np.concatenate(parts)


@pytest.mark.parametrize("constrained", [True, False])
@pytest.mark.parametrize("name", ["history", "landscape", "weights_by_class"])
def test_the_legend_covers_nothing(name, constrained):
    search, rows = searches.regression()
    ax = None if constrained else plt.subplots(figsize=(5, 3))[1]
    if name == "weights_by_class":
        ax = plotting.weights_by_class(search, Rows(rows.X, rows.y), Rows(rows.X_val, rows.y_val), ax=ax)
    else:
        ax = getattr(plotting, name)(search, ax=ax)
    ax.figure.canvas.draw()
    legend = ax.get_legend().get_window_extent()
    for one in ax.figure.axes:
        assert drawn_points(one)[:, 1].max() < legend.y0
    assert ax.get_window_extent().y1 >= legend.y1


def test_plots_go_on_the_axes_that_are_given():
    search, rows = searches.binary()
    _, ax = plt.subplots()
    drawn = [
        plotting.history(search, ax=ax),
        plotting.landscape(search, ax=ax),
        plotting.weights_by_class(search, Rows(rows.X, rows.y), ax=ax),
        plotting.weights_by_column(search, rows.X, rows.y, 0, ax=ax),
        plotting.weight_contours(search, rows.X, rows.y, 1, ax=ax),
    ]
    assert all(one is ax for one in drawn)


def test_landscape_has_the_candidates_on_the_gps_mean():
    search, _ = searches.binary()
    ax = plotting.landscape(search, [0, 2])
    surface, points, star = ax.collections
    alphas = np.array([told.alpha for told in search.result_.trials])
    assert np.array_equal(points.get_offsets(), alphas[:, [0, 2]])
    assert np.array_equal(star.get_offsets()[0], search.best_alpha_[[0, 2]])
    assert surface.get_cmap().name == "viridis"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("column 0", "class 1")
    assert "as in the winner" in ax.get_title()
    lower_is_better, _ = searches.multiclass()
    assert plotting.landscape(lower_is_better).collections[0].get_cmap().name == "viridis_r"


def test_landscape_of_one_dimension_is_a_curve():
    search, _ = searches.regression()
    ax = plotting.landscape(search)
    (mean,) = ax.lines
    assert len(mean.get_xdata()) == 41
    assert texts(ax) == ["GP mean", "candidates", "winner"]


def test_weights_by_class_has_bars_of_weight_and_marks_of_error():
    search, rows = searches.multiclass(**searches.PAPER)
    ax = plotting.weights_by_class(search, Rows(rows.X, rows.y), Rows(rows.X_val, rows.y_val))
    heights = [bar.get_height() for bar in ax.patches]
    assert heights == pytest.approx([search.sample_weight_[rows.y == c].mean() for c in range(3)])
    (beside,) = (other for other in ax.figure.axes if other is not ax)
    assert max(beside.lines[0].get_ydata()) == pytest.approx(search.alpha_zero_score_)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["0", "1", "2"]


def test_weights_by_column_takes_a_place_a_name_or_values():
    search, rows = searches.binary()
    ax = plotting.weights_by_column(search, rows.X, rows.y, 1)
    widths = [bar.get_width() for bar in ax.patches]
    assert len(widths) == 5
    assert np.mean(widths) == pytest.approx(1, abs=0.02)  # bins of equally many rows
    by_values = plotting.weights_by_column(search, rows.X, rows.y, rows.X[:, 1])
    assert [bar.get_width() for bar in by_values.patches] == widths
    held_out, (X, y) = searches.frame()
    named = plotting.weights_by_column(held_out, X, y, "kind")
    assert [label.get_text()[:1] for label in named.get_yticklabels()] == ["a", "b", "c", "m"]
    placed = plotting.weights_by_column(held_out, X, y, list(X.columns).index("kind"))
    assert [bar.get_width() for bar in placed.patches] == [bar.get_width() for bar in named.patches]
    for wrong, words in ((7, "no column 7"), (rows.X[:5, 0], "5 values"), (None, "no column None")):
        with pytest.raises(InvalidInputError, match=words):
            plotting.weights_by_column(search, rows.X, rows.y, wrong)
    with pytest.raises(InvalidInputError, match="a value of its own"):
        plotting.weights_by_column(search, rows.X, rows.y, [f"id {i}" for i in range(len(rows.y))])


def test_contours_are_of_the_weights_of_one_label():
    search, rows = searches.binary(strategies="example weights")
    ax = plotting.weight_contours(search, rows.X, rows.y, 1, points=31, levels=[0.8, 1.0])
    points, contours = ax.collections
    assert len(points.get_offsets()) == (rows.y == 1).sum()
    on_line = np.concatenate([path.vertices for path in contours.get_paths()[1:]])
    assert np.allclose(search.example_weights(on_line, np.ones(len(on_line), dtype=int)), 1.0, atol=0.02)
    levels = plotting.weight_contours(search, rows.X, rows.y, 1, levels=5).collections[1].levels
    assert len(levels) == 5
    assert np.allclose(np.diff(np.log(levels)), np.log(levels[1] / levels[0]))
    with pytest.raises(InvalidInputError, match="label 9"):
        plotting.weight_contours(search, rows.X, rows.y, 9)
    regression, more = searches.regression()
    with pytest.raises(InvalidInputError, match="has 3"):
        plotting.weight_contours(regression, np.c_[more.X, more.y], more.y, more.y[0])


def test_there_are_no_contours_where_the_label_alone_decides():
    rows = shifted_classes(120)
    search = MetricSearch.from_settings(
        LogisticRegression(),
        metric="accuracy",
        embedding="label",
        n_candidates=3,
        batch_size=3,
        random_state=0,
    )
    search.fit(rows.X, rows.y, validation=(rows.X_val, rows.y_val))
    ax = plotting.weight_contours(search, rows.X, rows.y, 1)
    assert len(ax.collections) == 1
    assert ax.get_title().startswith("all rows of class 1 have the weight ")


def test_every_plot_can_be_saved(tmp_path):
    search, _ = searches.multiclass()
    for name in ("history", "landscape"):
        ax = getattr(plotting, name)(search)
        assert isinstance(ax, Axes)
        ax.figure.savefig(tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.png").stat().st_size > 5_000


def test_viridis_is_matplotlibs():
    map_ = mpl.colormaps["viridis"]
    for share in np.linspace(0, 1, 41):
        ours, theirs = (
            np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)])
            for colour in (viridis(share), to_hex(map_(share)))
        )
        assert np.abs(ours - theirs).max() <= 6
    assert viridis(-1) == viridis(0)
    assert len(set(COLOURS)) == len(COLOURS)


def test_importing_the_plots_loads_no_matplotlib():
    code = "import sys, moew.plotting, moew.report; print('matplotlib' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "False"
