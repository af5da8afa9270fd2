"""R searches in lockstep: each batch of candidates of all repeats is trained at once.

After every batch everything is written down; an interrupted run goes on with the next batch and ends with
the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from joblib import Parallel, delayed

from moew._util.seeds import generator
from moew.exceptions import MoewError
from moew.models.networks import RepeatedNetworks
from moew.paper._files import write_whole
from moew.samplers import Ball, GpBucb, RandomSampler
from moew.types import BoolArray, FloatArray, IntArray, Sampler

Evaluate = Callable[[Any], Mapping[str, FloatArray]]
"""What the networks (R, K) of a batch score: names and values (R, K); one of them is "validation"."""


class Arm(Protocol):
    """One way to weight: a row of the paper's tables."""

    @property
    def n_dims(self) -> int: ...

    @property
    def mark(self) -> FloatArray:
        """By what to know again the embedding that the alphas belong to."""
        ...

    def weights(self, networks: RepeatedNetworks, draw: int, alphas: FloatArray) -> Any:
        """Weights (R, K, n) for alphas (R, K, d)."""
        ...

    def propose(self, seen: Seen, k: int, draw: int) -> FloatArray:
        """The next alphas (R, k, d)."""
        ...


@dataclass
class Seen:
    """What is known of all repeats: alphas (R, n, d) and scores by name (R, n), both in single precision."""

    alphas: FloatArray
    scores: dict[str, FloatArray] = field(default_factory=dict)
    mark: FloatArray = field(default_factory=lambda: np.empty(0))  # of the embedding

    @property
    def n(self) -> int:
        return int(self.alphas.shape[1])

    def add(self, alphas: FloatArray, scores: Mapping[str, FloatArray]) -> None:
        self.alphas = np.concatenate([self.alphas, alphas.astype(np.float32)], axis=1)
        for name, values in scores.items():
            before = self.scores.get(name, np.empty((len(values), 0), np.float32))
            self.scores[name] = np.concatenate([before, np.asarray(values, np.float32)], axis=1)

    def best(self, greater_is_better: bool, first: int | None = None) -> IntArray:
        """Which candidate of each repeat (R,) has the best validation score, among the first so many.

        NaN never wins; the earlier one wins a tie.
        """
        values = self.scores["validation"][:, :first]
        worst = -np.inf if greater_is_better else np.inf
        filled = np.where(np.isfinite(values), values, worst)
        return np.asarray(filled.argmax(axis=1) if greater_is_better else filled.argmin(axis=1))

    def at(self, chosen: IntArray) -> dict[str, FloatArray]:
        """All scores (R,) of the chosen candidates (R,)."""
        return {name: values[np.arange(len(chosen)), chosen] for name, values in self.scores.items()}

    def winners(self, greater_is_better: bool) -> FloatArray:
        """The best candidate's alpha of each repeat (R, d)."""
        best = self.best(greater_is_better)
        return self.alphas[np.arange(len(best)), best]

    def save(self, path: Path) -> None:
        """Write to `path`, whole or not at all."""
        arrays: dict[str, Any] = {"alphas": self.alphas, "mark": self.mark, **self.scores}
        write_whole(path, lambda new: np.savez_compressed(new, **arrays))

    @classmethod
    def load(cls, path: Path) -> Seen:
        with np.load(path, allow_pickle=False) as kept:
            arrays = {name: kept[name] for name in kept.files}
        return cls(arrays.pop("alphas"), mark=arrays.pop("mark"), scores=arrays)


@dataclass(frozen=True)
class Plain:
    """Uniform weights, or fixed ones π (R or 1, n): candidates differ in their first parameters alone."""

    baseline: FloatArray | None = None
    n_dims: int = 0
    mark: FloatArray = field(default_factory=lambda: np.empty(0))

    def weights(self, networks: RepeatedNetworks, draw: int, alphas: FloatArray) -> Any:
        return networks.uniform_weights(alphas.shape[1], self.baseline)

    def propose(self, seen: Seen, k: int, draw: int) -> FloatArray:
        return np.empty((len(seen.alphas), k, 0))


@dataclass(frozen=True)
class RandomRows:
    """A random weight for each row, uniform on `low` to `high`."""

    low: float = 0.1
    high: float = 1.9
    n_dims: int = 0
    mark: FloatArray = field(default_factory=lambda: np.empty(0))

    def weights(self, networks: RepeatedNetworks, draw: int, alphas: FloatArray) -> Any:
        return networks.random_weights(alphas.shape[1], draw, self.low, self.high)

    def propose(self, seen: Seen, k: int, draw: int) -> FloatArray:
        return np.empty((len(seen.alphas), k, 0))


@dataclass(frozen=True)
class Moew:
    """w = c · π · σ(zᵀα): embeddings Z (R or 1, n, d), α in a ball, from `search` (None: at random; several:
    one for each repeat)."""

    Z: FloatArray
    radius: float
    search: Sampler | Sequence[Sampler] | None
    greater_is_better: bool
    seed: int
    baseline: FloatArray | None = None
    n_jobs: int = 1

    @property
    def n_dims(self) -> int:
        return int(self.Z.shape[2])

    @property
    def mark(self) -> FloatArray:
        """The radius, means and deviations (R or 1, 1 + 2d)."""
        radius = np.full((len(self.Z), 1), self.radius)
        return np.hstack([radius, self.Z.mean(axis=1), self.Z.std(axis=1)]).astype(np.float32)

    def weights(self, networks: RepeatedNetworks, draw: int, alphas: FloatArray) -> Any:
        return networks.weights_of(self.Z, alphas, self.baseline)

    def propose(self, seen: Seen, k: int, draw: int) -> FloatArray:
        domain = Ball(self.n_dims, self.radius)
        sign = 1.0 if self.greater_is_better else -1.0
        scores = sign * seen.scores["validation"] if seen.n else np.empty((len(seen.alphas), 0))
        jobs = (
            delayed(_propose)(
                self._search_of(r, seen.n), domain, seen.alphas[r], scores[r], k, self.seed, draw, r
            )
            for r in range(len(seen.alphas))
        )
        return np.stack(Parallel(n_jobs=self.n_jobs)(jobs))

    def _search_of(self, repeat: int, n_known: int) -> Sampler:
        if self.search is None or not n_known:
            return RandomSampler()
        return self.search[repeat] if isinstance(self.search, Sequence) else self.search


def _propose(
    search: Sampler,
    domain: Ball,
    alphas: FloatArray,
    scores: FloatArray,
    k: int,
    seed: int,
    draw: int,
    r: int,
) -> FloatArray:
    rng = generator(seed, f"batch {draw}", r)
    return search.propose(alphas, scores, pending=alphas[:0], k=k, domain=domain, rng=rng)


def paper_searches(uniform: Seen | None, p: float = 68.3, q: float = 68.3) -> tuple[GpBucb, ...]:
    """GP-BUCB as in the paper, for each repeat: width R, and as noise that of its uniform models' metric."""
    if uniform is None:
        raise MoewError("the uniform models come first: their scores give the noise.")
    scores = uniform.scores["validation"].astype(np.float64)
    noise = np.nanvar(np.where(np.isfinite(scores), scores, np.nan), axis=1, ddof=1)  # those that diverged
    return tuple(GpBucb(p, q, width="domain", noise=float(one)) for one in noise)


def label_shift(training: BoolArray, validation: BoolArray) -> FloatArray:
    """π(y) = p_V(y) / p_T(y) (R, n) of labels (R, n) and (R, m)."""
    before, after = (labels.mean(axis=1, keepdims=True) for labels in (training, validation))
    return np.asarray(np.where(training, after / before, (1 - after) / (1 - before)))


class OutOfTimeError(MoewError):
    """The time given to the command is used up; what is done is kept."""


def run(
    networks: RepeatedNetworks,
    arm: Arm,
    evaluate: Evaluate,
    *,
    n_batches: int,
    batch_size: int,
    path: Path,
    on_batch: Callable[[int], None] | None = None,
) -> Seen:
    """B batches of K candidates for all repeats; goes on from what `path` holds.

    `on_batch` is told after each batch how many are done; it may raise `OutOfTimeError`.
    """
    embedding = path.with_suffix(".embedding.npy")
    arm = kept_embedding(arm, embedding, begun=path.exists())
    if path.exists():
        seen = Seen.load(path)
        if seen.mark.shape != arm.mark.shape or not np.allclose(seen.mark, arm.mark, rtol=0.01, atol=0.001):
            raise MoewError(
                f"{path} was begun with another embedding or radius, and its alphas mean nothing here; bring "
                f"{embedding.name} back, or remove the file to begin again."
            )
    else:
        seen = Seen(np.empty((networks.n_repeats, 0, arm.n_dims), np.float32), mark=arm.mark)
    for draw in range(seen.n // batch_size, n_batches):
        alphas = arm.propose(seen, batch_size, draw)
        params = networks.train(arm.weights(networks, draw, alphas), draw)
        seen.add(alphas, evaluate(params))
        seen.save(path)
        if on_batch is not None:
            on_batch(draw + 1)
    embedding.unlink(missing_ok=True)
    return seen


def kept_embedding(arm: Arm, path: Path, begun: bool) -> Arm:
    """The arm with the embedding that its search began with, at `path` until that is done.

    Trained anew, it may be another: a GPU rounds otherwise when its compiler chooses other products.
    """
    if not isinstance(arm, Moew):
        return arm
    if begun:
        return replace(arm, Z=np.load(path)) if path.exists() else arm
    write_whole(path, partial(np.save, arr=arm.Z))
    return arm
