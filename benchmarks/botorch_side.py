"""BoTorch's noisy expected improvement (qLogNEI), asked for batches, in an environment of its own.

Each line on standard input holds known alphas, their scores, the radius of the ball, the number k and a seed;
the answer is a line with k alphas. The model is BoTorch's default, a SingleTaskGP with its dimension-scaled
prior. The ball is reached from a cube by x · ‖x‖∞ / ‖x‖₂. Points of a batch are optimised one after the
other, each given those before it, from 4 of 128 starts.
"""

from __future__ import annotations

import json
import sys
import warnings

import torch
from botorch.acquisition.logei import qLogNoisyExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Standardize
from botorch.optim import optimize_acqf
from botorch.sampling import SobolQMCNormalSampler
from gpytorch.mlls import ExactMarginalLogLikelihood

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)
warnings.simplefilter("ignore")


def to_ball(cube: torch.Tensor) -> torch.Tensor:
    """Points of the unit ball for points of [-1, 1]^d."""
    length = cube.norm(dim=-1, keepdim=True).clamp_min(1e-12)
    return cube * cube.abs().amax(-1, keepdim=True) / length


class OnCube(torch.nn.Module):
    """An acquisition function of the ball as one of the cube."""

    def __init__(self, inner: qLogNoisyExpectedImprovement) -> None:
        super().__init__()
        self.inner, self.model = inner, inner.model

    def forward(self, cube: torch.Tensor) -> torch.Tensor:
        return self.inner(to_ball(cube))

    @property
    def X_pending(self) -> torch.Tensor | None:  # noqa: N802, BoTorch's name
        return self.inner.X_pending

    def set_X_pending(self, cube: torch.Tensor | None = None) -> None:  # noqa: N802, BoTorch's name
        self.inner.set_X_pending(None if cube is None else to_ball(cube))


def propose(alphas: torch.Tensor, scores: torch.Tensor, k: int, seed: int) -> torch.Tensor:
    """The next k points of the unit ball."""
    torch.manual_seed(seed)
    model = SingleTaskGP(alphas, scores[:, None], outcome_transform=Standardize(1))
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    sampler = SobolQMCNormalSampler(torch.Size([128]), seed=seed)
    inner = qLogNoisyExpectedImprovement(model, alphas, sampler=sampler, prune_baseline=True)
    d = alphas.shape[1]
    cube, _ = optimize_acqf(
        OnCube(inner),
        bounds=torch.tensor([[-1.0] * d, [1.0] * d]),
        q=k,
        num_restarts=4,
        raw_samples=128,
        sequential=True,
        options={"batch_limit": 4, "maxiter": 60},
    )
    return to_ball(cube)


def main() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        alphas = torch.tensor(asked["alphas"]) / asked["radius"]
        found = propose(alphas, torch.tensor(asked["scores"]), asked["k"], asked["seed"])
        print(json.dumps((asked["radius"] * found).tolist()), flush=True)


if __name__ == "__main__":
    main()
