"""A small version of the crime experiment, on made-up communities; its thresholds and its measures."""

from __future__ import annotations

import csv
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, confusion_matrix, precision_score

from experiments import crime
from experiments._crime_measures import COVERAGE, RULES, GreedyPostShift, MostAccurateAtEdge, all_measures
from experiments._crime_settings import PAPER, POST, VANILLA
from experiments._crime_settings import settings as rows_of
from experiments._crime_study import FILE_ORDERS, PARTS, Crime, Searches, Setting, judge_of
from experiments._experiment import Options, Run
from experiments._searches import run
from experiments.datasets import Dataset
from experiments.networks import TrainedNetworks
from moew.decision import MostAccurate
from moew.exceptions import InvalidInputError
from moew.metrics import Predictions

SIZES = ((75, 45), (40, 50), (40, 50))


def communities(n_features=6, n=300):
    rng = np.random.default_rng(0)
    X = rng.random((n, n_features))
    y = (X[:, 0] + X[:, 1] + rng.normal(0, 0.3, n) > 1.1).astype(int)
    columns = {"group": np.digitize(X[:, 1], (0.25, 0.5, 0.75)), "large": rng.permutation(n) < 155}
    return Dataset(X.astype(np.float32), y, tuple(map(str, range(n_features))), columns)


@pytest.fixture(scope="module")
def searches(tmp_path_factory):
    options = Options(repeats=2, steps=60, out=tmp_path_factory.mktemp("out"))
    data = {"script": communities(), "complete": communities()}
    return Searches(Run("crime", options), data, SIZES, n_batches=2)


@pytest.mark.heavy
def test_a_small_version_writes_its_tables_numbers_and_figure(searches, monkeypatch):
    few = ("violation of FDR", "99 features", "post-shift, accuracy minimised")
    some = {
        name: crime.VARIANTS[name]
        for name in (*few, "π of the labels (text)", "shifted, as above", "shifted post-shift, as above")
    }
    monkeypatch.setattr(crime, "VARIANTS", some)
    text = crime.report(searches.this, searches)
    for part in (
        "iid, vanilla: test accuracy",
        "shifted, post-shift: test violation",
        "moew − Shimodaira",
        *few,
    ):
        assert part in text
    with (searches.this.folder / "crime.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 2 * (2 * 3 + 2 * 4 + 2 + 4 * 4) + 2 * 2 * len(some)
    seen = searches.of(VANILLA, 2)
    best = seen.scores["training accuracy: validation FPR violation"][1].argmin()
    one = next(x for x in lines if x["setting"].startswith("iid vanilla: moew, GP") and x["repeat"] == "1")
    expected = 100 * seen.scores["training accuracy: test accuracy"][1, best]
    assert float(one["accuracy"]) == pytest.approx(expected, rel=1e-5)
    assert (searches.this.folder / "crime.png").stat().st_size > 10_000


@pytest.mark.heavy
def test_fixed_weights_are_trained_once_for_all_aims(searches):
    assert searches.of(VANILLA.fixed, 2).n == 10
    n_files = len(list(searches.this.folder.rglob("*.npz")))
    for aim in (POST, crime.VARIANTS["violation of FDR"]):
        both = searches.result(aim.fixed, 2, aim=aim)
        first = searches.result(aim.fixed, 1, aim=aim)
        np.testing.assert_array_equal(first["accuracy"], both["accuracy"][:1])
    assert len(list(searches.this.folder.rglob("*.npz"))) == n_files


@pytest.mark.heavy
def test_what_is_complete_in_the_folder_is_not_trained_again(searches):
    before = searches.of(VANILLA, 2)
    again = Searches(searches.this, {}, SIZES, n_batches=2)  # without data nothing could be trained
    np.testing.assert_array_equal(again.of(VANILLA, 2).alphas, before.alphas)
    with pytest.raises(KeyError):
        again.of(replace(VANILLA, radius=7.0), 2)


def test_every_setting_has_files_of_its_own():
    every = {s.models for s in crime.VARIANTS.values()} | {s.fixed for s in crime.VARIANTS.values()}
    for key in PAPER:
        every |= {s.models for s in rows_of(*key).values()}
    assert len({s.label for s in every}) == len(every)


@pytest.mark.parametrize("study", ["iid", "shifted"])
def test_splits_are_disjoint_and_shifted_ones_have_the_given_counts(study):
    data = communities()
    problem = Crime(Options(repeats=3), data, study, splits="random", sizes=SIZES)
    together = np.concatenate(problem.rows, axis=1)
    assert all(len(set(row)) == 300 for row in together)
    assert len({row.tobytes() for row in together}) == 3
    assert [rows.shape[1] for rows in problem.rows] == [sum(size) for size in SIZES]
    if study == "shifted":
        for rows, (n_large, _) in zip(problem.rows, SIZES, strict=True):
            np.testing.assert_array_equal(data.columns["large"][rows].sum(axis=1), n_large)
        # Shimodaira's weights bring the training share of large communities to that of validation.
        pi = problem.base_weights["ratio"](0).weights(None, problem.rows[0][0])
        large = data.columns["large"][problem.rows[0][0]]
        assert pi[large].sum() / pi.sum() == pytest.approx(40 / 90)


def test_too_few_communities_are_an_error():
    with pytest.raises(InvalidInputError, match="155 large and 145 small"):
        Crime(Options(repeats=2), communities(n=250), "shifted", splits="random", sizes=SIZES)


@pytest.mark.parametrize("order", FILE_ORDERS)
def test_splits_in_the_order_of_the_file(order):
    problem = Crime(Options(repeats=2), communities(), "iid", order, SIZES)
    rows = dict(zip(PARTS, problem.rows, strict=True))
    np.testing.assert_array_equal(np.concatenate([rows[part][1] for part in order.split(", ")]), range(300))
    assert [len(rows[part][0]) for part in PARTS] == [120, 90, 90]


def test_one_split_for_all_repeats():
    problem = Crime(Options(repeats=3), communities(), "iid", splits="one", sizes=SIZES)
    for rows in problem.rows:
        assert (rows == rows[0]).all()


@pytest.fixture(scope="module")
def measured():
    """Three models of two splits, with all that is recorded of them."""
    problem = Crime(Options(repeats=2, steps=40), communities(), "iid", sizes=SIZES).problem
    weights = np.ones((2, 3, 120), np.float32)
    trained = TrainedNetworks(problem.networks, problem.networks.train(weights, 0), problem.classes)
    return [
        (model, problem.data[r], problem.test[r], all_measures(problem, r, model, Predictions({})))
        for r in range(2)
        for model in (trained.model(r, k) for k in range(3))
    ]


@pytest.mark.parametrize("rule", RULES)
def test_measures_are_those_of_scikit_learn(rule, measured):
    for model, data, test, found in measured:
        fit_on = data.validation if RULES[rule].fit_on == "validation" else data.training
        fitted = RULES[rule].fit(model.decision_function(fit_on.X), fit_on.y == 1, fit_on.columns)
        for part, rows in (("validation", data.validation), ("test", test)):
            y, group = rows.y, rows.columns["group"]
            decided = fitted.decide(model.decision_function(rows.X), rows.columns).astype(int)
            fpr, fdr, coverage = [], [], []
            for g in range(4):
                (tn, fp), _ = confusion_matrix(y[group == g], decided[group == g], labels=[0, 1])
                fpr.append(fp / (fp + tn))
                fdr.append(1 - precision_score(y[group == g], decided[group == g], zero_division=1.0))
                coverage.append(decided[group == g].mean())
            assert found[f"{rule}: {part} accuracy"] == pytest.approx(accuracy_score(y, decided))
            assert found[f"{rule}: {part} FPR violation"] == pytest.approx(np.ptp(fpr))
            assert found[f"{rule}: {part} FDR violation"] == pytest.approx(np.ptp(fdr))
            assert found[f"{rule}: {part} coverage violation"] == pytest.approx(np.ptp(coverage))


def test_one_threshold_of_the_wanted_coverage():
    scores = np.random.default_rng(3).normal(size=404)
    fitted = RULES["coverage"].fit(scores, scores > 0, {})
    assert fitted.decide(scores, {}).mean() == pytest.approx(COVERAGE, abs=1 / 404)
    ((_, threshold),) = fitted.thresholds
    assert threshold == np.percentile(scores, 72.2)


@pytest.mark.parametrize("setting", [VANILLA, POST, Setting(aim="FDR violation", rule="validation accuracy")])
def test_a_search_is_told_what_is_recorded(setting, tmp_path):
    study = Crime(Options(repeats=2, steps=40), communities(), "iid", sizes=SIZES)
    path = tmp_path / "state.npz"
    seen = run(
        study.problem, study.arm(setting.fixed, None), judge_of(setting), n_batches=1, batch_size=3, path=path
    )
    told = seen.scores["validation"]
    np.testing.assert_array_equal(told, seen.scores[f"{setting.rule}: validation {setting.aim}"])


def test_the_released_script_looks_for_the_worst_model():
    assert POST.greater_is_better and not VANILLA.greater_is_better
    worst = Setting(aim="accuracy", wrong_way=True)
    assert not worst.greater_is_better and not judge_of(worst).greater_is_better


def test_greedy_moves_one_row_at_a_time():
    # Group "a" starts with its 2 best rows (rate 1/2), "b" with its 2 best (rate 0). The first move takes
    # the negative 3.0 from "a" and gives the negative 7.0 to "b", the second takes it back, and so on:
    # after an even number of moves the start is left.
    score = np.array([4.0, 3.0, 2.0, 1.0, 9.0, 8.0, 7.0, 6.0])
    positive = np.array([True, False, True, False, True, True, False, False])
    columns = {"group": np.repeat(["a", "b"], 4)}
    rule = GreedyPostShift(0.5).fit(score, positive, columns)
    assert rule.decide(score, columns).tolist() == [True, True, False, False, True, True, False, False]


@given(
    st.lists(st.tuples(st.integers(-5, 5), st.booleans()), min_size=1, max_size=30).filter(
        lambda rows: any(positive for _, positive in rows)
    )
)
def test_a_threshold_at_the_edge_decides_the_same_on_its_own_rows(rows):
    score, positive = np.array([float(s) for s, _ in rows]), np.array([p for _, p in rows])
    middle, edge = (make().fit(score, positive, {}) for make in (MostAccurate, MostAccurateAtEdge))
    np.testing.assert_array_equal(middle.decide(score, {}), edge.decide(score, {}))
    assert edge.threshold_ in (*score, -np.inf)


@given(st.integers(0, 10_000), st.sampled_from([0.1, 0.278, 0.9]))
def test_greedy_makes_all_of_its_thousand_moves(seed, coverage):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 4, 120)
    positive = rng.random(120) < 0.1 + 0.2 * group
    positive[:8], group[:8] = False, np.tile(np.arange(4), 2)
    score = rng.normal(size=120) + positive + group
    rows = [np.flatnonzero(group == g)[np.argsort(-score[group == g])] for g in range(4)]
    rates = [np.r_[0, np.cumsum(~positive[r])] / (~positive[r]).sum() for r in rows]
    counts = [int(coverage * len(r)) for r in rows]
    for _ in range(1000):
        now = [rate[count] for rate, count in zip(rates, counts, strict=True)]
        low, high = int(np.argmin(now)), int(np.argmax(now))
        if low != high:
            counts[low], counts[high] = min(counts[low] + 1, len(rows[low])), max(counts[high] - 1, 0)
    rule = GreedyPostShift(coverage).fit(score, positive, {"group": group})
    decided = rule.decide(score, {"group": group})
    assert [int(decided[group == g].sum()) for g in range(4)] == counts
