"""Small problems that several tests share."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd


class Rows(NamedTuple):
    X: Any
    y: Any
    X_val: Any
    y_val: Any
    X_test: Any
    y_test: Any


def shifted_classes(n: int = 240, n_classes: int = 2, seed: int = 0) -> Rows:
    """Overlapping Gaussian classes; classes are rarer in training the higher they are."""
    rng = np.random.default_rng(seed)

    def draw(m: int, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        y = np.concatenate([np.arange(n_classes).repeat(3), rng.choice(n_classes, m, p=shares)])
        centres = np.stack([np.arange(n_classes), np.arange(n_classes) % 2], axis=1) * 1.5
        return centres[y] + rng.standard_normal((len(y), 2)), y

    rare = 1.0 / (1 + np.arange(n_classes)) ** 1.5
    even = np.full(n_classes, 1 / n_classes)
    return Rows(*draw(n, rare / rare.sum()), *draw(n, even), *draw(2 * n, even))


def skewed_target(n: int = 200, seed: int = 0) -> Rows:
    """A regression whose noise grows with x; validation and test have larger x."""
    rng = np.random.default_rng(seed)

    def draw(m: int, a: float, b: float) -> tuple[np.ndarray, np.ndarray]:
        X = rng.beta(a, b, (m, 2))
        return X, 1 + 3 * X[:, 0] ** 2 + X[:, 1] * rng.standard_normal(m) * 0.3

    return Rows(*draw(n, 1, 2), *draw(n, 2, 1), *draw(n, 2, 1))


def mixed_frame(n: int = 200, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Numbers, booleans, categories and missing values, with two string classes."""
    rng = np.random.default_rng(seed)
    number = rng.standard_normal(n)
    number[::11] = np.nan
    frame = pd.DataFrame(
        {
            "number": number,
            "flag": rng.random(n) < 0.4,
            "kind": pd.Categorical(rng.choice(["a", "b", "c"], n)),
            "group": rng.choice(["north", "south"], n),
        }
    )
    frame.loc[5, "kind"] = None
    frame["group"] = frame["group"].astype("category")
    score = np.nan_to_num(number) + frame["flag"] - (frame["kind"] == "c")
    return frame, np.where(score + rng.standard_normal(n) > 0.3, "yes", "no")
