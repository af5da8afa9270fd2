"""A small version of the wine experiment, on made-up wines; and its parts."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments import _experiment, _wine_plan, wine
from experiments._experiment import Options, Run
from experiments._scaling import standardized
from experiments._searches import Seen
from experiments._wine_rows import JUDGE, Wine, most_frequent_flags
from experiments._wine_tables import spread
from experiments.datasets import DataFileError, Dataset
from experiments.networks import RepeatedNetworks
from moew.exceptions import InvalidInputError
from moew.models.networks import NetworkSpec

PLAN = _wine_plan.Plan((8, 10), (0.0, 95.0), n_batches=1, long_batches=2, like_paper=True)


def wines(n, seed=0):
    """Six flags and the points; good wines cost more."""
    rng = np.random.default_rng(seed)
    flags, points = rng.random((n, 6)) < 0.4, rng.integers(80, 101, n)
    price = np.round(np.exp(3.2 + 0.08 * (points - 88) + 0.3 * flags[:, 0] + rng.normal(0, 0.4, n)))
    X = np.column_stack([flags, points]).astype(float)
    return Dataset(X, np.log(price), tuple("abcdefg"), {"price": price})


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The whole of it with 3 repeats, 2 where they are few, and few steps."""
    options = Options(repeats=3, steps=15, out=tmp_path_factory.mktemp("out"))
    this = Run("wine", options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_experiment, "SECOND_REPEATS", 2)
        return this, wine.search_all(this, "wine", partial(Wine, options, wines(600), 100), PLAN)


@pytest.mark.heavy
def test_a_small_version_has_its_tables(small):
    _, found = small
    picks = wine.choose_all(found, PLAN)
    text = wine.report("wine", PLAN, picks)
    for part in (
        "52.00 ± 0.31",
        "48.27 ± 0.41",
        "46.28 ± 0.15",
        "moew, scaled points − uniform, scaled points",
        "hinge loss",
        "B=2",
    ):
        assert part in text


@pytest.mark.heavy
def test_fewer_batches_are_the_first_of_more(small):
    _, found = small
    picks = wine.choose_all(found, PLAN)
    seen = found[_wine_plan.UNIFORM]
    assert seen.n == 2 * _wine_plan.BATCH_SIZE
    for batches in (1, 2):
        kept = seen.scores["validation"][:, : batches * _wine_plan.BATCH_SIZE]
        picked = picks[_wine_plan.UNIFORM, batches]["validation"]
        np.testing.assert_array_equal(picked, 100 * kept.min(axis=1))  # in percent


@pytest.mark.heavy
def test_what_is_done_is_not_done_again(small, monkeypatch):
    this, found = small
    monkeypatch.setattr(Wine, "problem", None)
    monkeypatch.setattr(Wine, "embedding", None)
    again = wine.search_all(this, "wine", partial(Wine, this.options, wines(600), 100), PLAN)
    assert list(again) == list(found) == [setting.name for setting in PLAN.settings()]


@pytest.mark.heavy
def test_second_settings_have_few_repeats(small):
    _, found = small
    assert {setting.name: 2 if setting.few else 3 for setting in PLAN.settings()} == {
        name: len(seen.alphas) for name, seen in found.items()
    }


@pytest.mark.heavy
def test_the_experiment_returns_the_tables_and_keeps_the_raw_numbers(small, monkeypatch):
    this, found = small
    monkeypatch.setattr(wine, "datasets", lambda csv: [("wine", wines(600), PLAN)])
    monkeypatch.setattr(wine, "Wine", partial(Wine, rows_a_step=100))
    assert "wine (600 rows), d=10, B=1" in wine.main(Options(repeats=3, steps=15, out=this.options.out))
    assert "wine (600 rows), d=10, B=1" in (this.folder / "wine.txt").read_text()
    with (this.folder / "wine.csv").open() as file:
        lines = list(csv.DictReader(file))
    one = next(line for line in lines if line["setting"] == "wine moew, B=1" and line["repeat"] == "1")
    best = found[_wine_plan.MOEW].best(greater_is_better=False)
    expected = 100 * found[_wine_plan.MOEW].scores["test"][1, best[1]]
    assert float(one["test"]) == pytest.approx(expected, rel=1e-5)
    assert (this.folder / "wine.png").stat().st_size > 10_000


def test_the_metric_is_that_of_a_plain_program():
    rng = np.random.default_rng(0)
    price = np.r_[17, 18, 25, 26, 42, 43, 5, 400, rng.integers(4, 90, 92)].astype(float)
    answers = rng.normal(3.3, 0.5, 100).astype(np.float32)
    cheapest_first = [price <= 17, (price > 17) & (price <= 25), (price > 25) & (price <= 42), price > 42]
    errors = [
        np.mean([abs(np.exp(float(answers[i])) / price[i] - 1) for i in np.flatnonzero(rows)])
        for rows in cheapest_first
    ]
    assert JUDGE.evaluator.metric(np.log(price), answers) == pytest.approx(max(errors))


def test_a_range_without_wines_is_refused():
    data = wines(100)
    with pytest.raises(InvalidInputError, match="all ranges"):
        Wine(Options(repeats=2), replace(data, columns={"price": np.full(100, 20.0)})).problem(False, 2)


@given(st.integers(0, 1000))
def test_splits_are_disjoint_whole_and_each_repeats_own(seed):
    data = wines(100)
    data = replace(data, columns={"price": np.arange(1.0, 101.0)})
    parts = Wine(Options(repeats=2, seed=seed), data)
    rows = [np.concatenate([p.price[r] for p in (parts.train, parts.validation, parts.test)]) for r in (0, 1)]
    for row in rows:
        np.testing.assert_array_equal(np.sort(row), data.columns["price"])
    assert [p.price.shape for p in (parts.train, parts.validation, parts.test)] == [(2, 70), (2, 10), (2, 20)]
    assert (rows[0] != rows[1]).any()


def test_points_are_scaled_by_the_training_rows_alone():
    parts = Wine(Options(repeats=2), wines(200))
    X = parts.features(parts.train, True, 2)
    np.testing.assert_allclose(X[..., -1].mean(axis=1), 0, atol=1e-5)
    np.testing.assert_allclose(X[..., -1].std(axis=1), 1, atol=1e-5)
    np.testing.assert_array_equal(X[..., :-1], parts.train.X[..., :-1])
    tested = parts.features(parts.test, True, 2)[0, :, -1]
    points = parts.train.X[0, :, -1].astype(float)
    np.testing.assert_allclose(tested * points.std() + points.mean(), parts.test.X[0, :, -1], atol=1e-3)


@pytest.mark.heavy
@pytest.mark.parametrize("kind", ["scripts", "text"])
def test_embeddings_differ_between_repeats_and_have_their_range(kind):
    Z = Wine(Options(repeats=3, steps=15), wines(600), 100).embedding(kind, 8, 2)
    assert Z.shape == (2, 420, 8)
    assert 0 <= Z.min() <= Z.max() <= 1
    assert (Z[0] != Z[1]).any()


def test_our_embedding_tells_price_ranges_and_points():
    parts = Wine(Options(repeats=3), wines(600))
    Z = parts.metric_columns(2)
    assert Z.shape == (2, 420, _wine_plan.OUR_DIMS)
    np.testing.assert_allclose(Z.std(axis=1), 1, atol=1e-4)
    price, points = parts.train.price[0], parts.train.X[0, :, -1]
    np.testing.assert_array_equal(Z[0, :, 3] > 0, price > 42)
    np.testing.assert_array_equal(Z[0, :, 0] > 0, price <= 17)
    assert np.corrcoef(Z[0, :, 4], points)[0, 1] > 0.999


def test_constant_columns_become_zero():
    np.testing.assert_array_equal(standardized(np.full((1, 5, 2), 7.0)), np.zeros((1, 5, 2)))


def test_flags_are_the_values_met_most_often():
    columns = {
        "price": np.ones(6),
        "country": np.array(["US", "US", "US", "", "", ""]),
        "variety": np.array(["Malbec", "Malbec", "Gamay", "Gamay", "Gamay", "Gamay"]),
    }
    data = Dataset(np.full((6, 1), 90.0), np.zeros(6), ("points",), columns)
    flagged = most_frequent_flags(data, 2)
    assert flagged.feature_names == ("variety=Gamay", "country=US", "points")
    np.testing.assert_array_equal(
        flagged.X, [[0, 1, 90], [0, 1, 90], [1, 1, 90], [1, 0, 90], [1, 0, 90], [1, 0, 90]]
    )


@pytest.mark.heavy
def test_the_two_datasets_at_hand(real_data):
    try:
        words, full = wine.datasets(None)
    except DataFileError:
        pytest.skip("real data needed: set MOEW_DATA to a folder with wine/")
    assert (words[0], words[1].X.shape, words[2]) == ("wine", (9_315, 40), _wine_plan.WHOLE)
    assert (full[0], full[1].X.shape, full[2]) == ("wine-full", (120_975, 40), _wine_plan.PART)
    for _, data, _ in (words, full):
        shares = np.diff(np.searchsorted(np.sort(data.columns["price"]), [0, 17, 25, 42, 9999], "right"))
        np.testing.assert_allclose(shares / len(data.y), 0.25, atol=0.05)  # the paper's quartiles
    assert "country=US" in full[1].feature_names and "variety=Pinot Noir" in full[1].feature_names


def test_kaggles_file_takes_the_place_of_the_rows_at_hand(tmp_path):
    path = tmp_path / "kaggle.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["", "description", "points", "price"])
        writer.writerows([i, "oak and crisp", 90, 20 + i] for i in range(3))
    ((name, data, plan),) = wine.datasets(path)
    assert (name, plan) == ("wine-kaggle-3", _wine_plan.WHOLE)
    np.testing.assert_array_equal(data.columns["price"], [20, 21, 22])
    assert data.X.shape == (3, 40)


def test_every_batch_of_candidates_meets_the_mini_batches_in_another_order():
    data = Wine(Options(repeats=2), wines(200))
    spec = NetworkSpec((7, 1), loss="squared", steps=7, batch_size=20)
    X, y = data.features(data.train, True, 2), data.train.y[..., None]
    networks = RepeatedNetworks(spec, X, y, 2, seed=0)
    first, second = (networks.mini_batches(draw) for draw in (0, 1))
    assert sorted(map(bytes, first[:, 0])) == sorted(map(bytes, second[:, 0]))
    assert (first[-1] != second[-1]).any()
    np.testing.assert_array_equal(first, networks.mini_batches(0))


def test_the_spread_tells_batches_from_models_within():
    rng = np.random.default_rng(0)
    batches = rng.normal(0, 5, (4, 30, 1)) + rng.normal(0, 2, (4, 30, _wine_plan.BATCH_SIZE)) + 60
    seen = Seen(np.zeros((4, 30 * _wine_plan.BATCH_SIZE, 0)), {"test": batches.reshape(4, -1) / 100})
    told = spread("uniform", seen, 30 * _wine_plan.BATCH_SIZE)
    mean, within, _, between = (float(number) for number in re.findall(r"[\d.]+", told.replace(",", "")))
    assert abs(mean - 60) < 2 and abs(within - 2) < 0.2 and abs(between - 5) < 1
