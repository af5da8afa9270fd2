"""Figure 2: where GP-BUCB samples, batch by batch, and how far the validation metric tells the test metric.

The paper's example is web page quality (6-20-10-1, autoencoder 7-100-3-100-7, 10 batches of 20,
p = q = 68.3), whose data are not public; blog posts stand for them (`load_blog`): any comment in the next 24
hours is the binary label of the old rows, log(1 + comments) the grade of the new ones, and the mean grade of
the 40 % with the highest outputs the metric. The paper does not state the radius here; 5 is the authors' for
their other autoencoder of numbers (wine). The months are fixed, so repeats differ in first parameters,
mini-batches, autoencoder and candidates.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from moew.datasets import TrainValidTest, load_blog
from moew.nets import NetworkSpec, ReconstructionLoss, RepeatedNetworks
from moew.paper._experiment import Line, Options, Run, table
from moew.paper._searches import Moew, Plain, Seen, paper_search
from moew.protocols import FloatArray
from moew.seeds import integer_seed

FEATURES = (
    *("comments_before", "comments_last_24h", "comments_48_24h"),
    *("age_hours", "blog_mean_comments", "blog_median_comments"),
)
N_BATCHES, BATCH_SIZE, RADIUS, SHARE = 10, 20, 5.0, 0.4
SHOWN = (0, 1, 3, 5, 7, 9)
PAPER_CORRELATION = 0.97


def mean_of_top(scores: FloatArray, grades: FloatArray, share: float = SHARE) -> FloatArray:
    """Mean grade (R, K) of the share of m rows with the highest scores (R, K, m), for grades (m,)."""
    count = max(1, round(share * len(grades)))
    return np.asarray(grades[np.argpartition(-scores, count - 1, axis=2)[..., :count]].mean(axis=2))


class Posts:
    """The rows, and what is trained and measured on them."""

    def __init__(self, options: Options, data: TrainValidTest) -> None:
        self.options = options
        parts = [np.log1p(part.features(FEATURES)) for part in (data.train, data.valid, data.test)]
        centre, spread = parts[0].mean(axis=0), parts[0].std(axis=0)
        self.X, self.X_val, self.X_test = (((X - centre) / spread).astype(np.float32)[None] for X in parts)
        self.y = data.train.y.astype(np.float32)[None, :, None]
        self.grades_val, self.grades_test = data.valid.columns["graded"], data.test.columns["graded"]

    def networks(self) -> RepeatedNetworks:
        o = self.options
        spec = NetworkSpec(
            (len(FEATURES), 20, 10, 1), "sigmoid", "hinge", o.steps, 100, precision=o.precision
        )
        seed = integer_seed(o.seed, "sampling")
        return RepeatedNetworks(spec, self.X, self.y, o.repeats, seed, device=o.device)

    def embedding(self) -> FloatArray:
        """Z (R, n, 3): middle layers of autoencoders with squared loss on x and hinge loss on y, λ = 0.5."""
        o, D = self.options, len(FEATURES)
        inputs = np.concatenate([self.X, self.y], axis=2)
        loss = ReconstructionLoss(tuple((column, 0.5) for column in range(D)), ((D, 0.5),), ())
        spec = NetworkSpec((D + 1, 100, 3, 100, D + 1), "sigmoid", loss, o.steps, 100, precision=o.precision)
        seed = integer_seed(o.seed, "sampling autoencoder")
        networks = RepeatedNetworks(spec, inputs, inputs, o.repeats, seed, device=o.device)
        return networks.hidden(networks.train(networks.uniform_weights(1), 0), inputs, 2)[:, 0]

    def evaluate(self, networks: RepeatedNetworks, params: Any) -> dict[str, FloatArray]:
        validation = mean_of_top(networks.outputs(params, self.X_val)[..., 0], self.grades_val)
        test = mean_of_top(networks.outputs(params, self.X_test)[..., 0], self.grades_test)
        return {"validation": validation, "test": test}


def search(this: Run, posts: Posts, n_batches: int = N_BATCHES, batch_size: int = BATCH_SIZE) -> Seen:
    """GP-BUCB with the paper's width; its noise is that of one batch of uniform models."""
    networks = posts.networks()
    evaluate = partial(posts.evaluate, networks)
    uniform = this.search("uniform", networks, Plain(), evaluate, n_batches=1, batch_size=batch_size)
    seed = integer_seed(this.options.seed, "sampling alphas")
    Z = kept_embedding(this, posts)
    arm = Moew(Z, RADIUS, paper_search(uniform), True, seed, n_jobs=this.options.n_jobs)
    return this.search("GP-BUCB", networks, arm, evaluate, n_batches=n_batches, batch_size=batch_size)


def kept_embedding(this: Run, posts: Posts) -> FloatArray:
    """From the folder if it is there: candidates mean nothing in another embedding."""
    path = this.state("embedding").with_suffix(".npy")
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_suffix(".new.npy")
        np.save(new, posts.embedding())
        new.replace(path)
    return np.asarray(np.load(path))


def correlations(seen: Seen, first: int | None = None) -> FloatArray:
    """Correlation (R,) of validation and test metric over the candidates, or over the first so many."""
    validation, test = (seen.scores[name][:, :first] for name in ("validation", "test"))
    return np.array([np.corrcoef(v, t)[0, 1] for v, t in zip(validation, test, strict=True)])


def distances(seen: Seen, batch: int, batch_size: int) -> FloatArray:
    """Mean distance (R,) of a batch's alphas from the winner, of which a random batch has the most."""
    best = seen.best(greater_is_better=True)
    winners = seen.alphas[np.arange(len(best)), best][:, None]
    alphas = seen.alphas[:, batch * batch_size : (batch + 1) * batch_size]
    return np.asarray(np.linalg.norm(alphas - winners, axis=2).mean(axis=1))


def report(this: Run, seen: Seen, batch_size: int = BATCH_SIZE, radius: float = RADIUS) -> str:
    """The tables; raw numbers and the figure go to the folder. `seen` is any search with d of 2 or more."""
    n_batches = seen.n // batch_size
    shown = [batch for batch in SHOWN if batch < n_batches]
    everything, random = correlations(seen), correlations(seen, batch_size)
    values = {"correlation": everything, "correlation of batch 0": random}
    values |= {f"distance of batch {b}": distances(seen, b, batch_size) / radius for b in shown}
    this.write_values([("GP-BUCB", values)])
    lines = [Line(f"all {seen.n} candidates", everything, True, PAPER_CORRELATION)]
    lines.append(Line(f"the {batch_size} random ones of batch 0", random, True))
    apart = [Line(f"batch {b}", values[f"distance of batch {b}"], False) for b in shown]
    draw(this, seen, shown, batch_size, radius)
    return "\n\n".join(
        [
            table("Correlation of validation and test metric", lines),
            table("Distance from the winner, as a share of the radius", apart),
        ]
    )


def draw(this: Run, seen: Seen, shown: list[int], batch_size: int, radius: float) -> None:
    """The first repeat: its batches, both metrics over all candidates, and one metric against the other."""
    from moew.paper._figures import COLOURS, new_figure, save

    figure, axes = new_figure(3, 3, (10.5, 10.2))
    alphas = seen.alphas[0]
    length = np.linalg.norm(alphas, axis=1) / radius
    circle = np.linspace(0, 2 * np.pi, 200)
    maps = axes.flat[:8]
    for axis in maps:
        axis.plot(radius * np.cos(circle), radius * np.sin(circle), color="grey", linewidth=0.8)
        axis.set(aspect="equal", xlabel="$α_1$", ylabel="$α_2$")
    for axis, batch in zip(maps, shown, strict=False):
        part = slice(batch * batch_size, (batch + 1) * batch_size)
        dots = axis.scatter(*alphas[part, :2].T, c=length[part], cmap="Reds", vmin=-0.3, vmax=1, s=28)
        dots.set(edgecolor="black", linewidth=0.4)
        axis.set_title(f"Batch {batch}")
    for axis, name in zip(maps[6:], ("validation", "test"), strict=True):
        dots = axis.scatter(*alphas[:, :2].T, c=seen.scores[name][0], s=16)
        axis.set_title(f"{name.capitalize()} metric")
        figure.colorbar(dots, ax=axis, shrink=0.7)
    last = axes.flat[8]
    last.scatter(seen.scores["validation"][0], seen.scores["test"][0], s=12, color=COLOURS[0])
    title = f"Correlation {correlations(seen)[0]:.2f} (paper: {PAPER_CORRELATION})"
    last.set(xlabel="validation metric", ylabel="test metric", title=title)
    save(figure, this.folder / f"{this.name}.png")


def main(options: Options) -> str:
    """Run or go on, and return the tables; the figure and raw numbers go to the folder."""
    this = Run("sampling", options)
    return report(this, search(this, Posts(options, load_blog())))
