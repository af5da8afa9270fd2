"""WeightStudy: numbers first, alphas second, whoever asks."""

import contextlib
import math
import multiprocessing
import threading
from pathlib import Path

import numpy as np
import optuna
import pytest

from moew import WeightStudy
from moew.embedding import LabelEmbedding
from moew.exceptions import InvalidInputError, SearchFailedError
from moew.samplers import Ball, GpBucb, RandomSampler
from moew.storage._databases import Statements
from moew.weighting import ExampleWeighting, UniformBaseWeights

DOMAIN = Ball(3, 2.0)


def make(**settings):
    return WeightStudy(None, DOMAIN, **{"n_initial": 4, "seed": 7, **settings})


def tell_all(study, candidates):
    for candidate in candidates:
        study.tell(candidate.number, -float(np.sum((candidate.alpha - 0.5) ** 2)))


class Recorder:
    """A sampler that notes what it was given."""

    def __init__(self):
        self.calls = []

    def __repr__(self):
        return "Recorder()"

    def check_domain(self, domain):
        pass

    def propose(self, alphas, scores, *, pending, k, domain, rng):
        self.calls.append((alphas.copy(), scores.copy(), pending.copy(), k))
        return domain.sample(rng, k)


def test_first_number_is_alpha_zero_and_the_next_are_random():
    study = make(sampler=Recorder())
    first = study.ask(5)
    assert [c.number for c in first] == [0, 1, 2, 3, 4]
    assert np.array_equal(first[0].alpha, np.zeros(3))
    assert all(np.linalg.norm(c.alpha) <= 2 for c in first)
    assert study.sampler.calls == []
    study.ask(1)
    assert len(study.sampler.calls) == 1


def test_repeats_of_alpha_zero_come_first():
    study = make(alpha_zero_repeats=3)
    assert [bool(c.alpha.any()) for c in study.ask(5)] == [False, False, False, True, True]


def test_pending_candidates_are_handed_to_the_sampler_in_the_order_of_their_numbers():
    study = make(sampler=Recorder())
    first = study.ask(5)
    for number in (3, 0):
        study.tell(number, float(number))
    study.ask(2)
    alphas, scores, pending, k = study.sampler.calls[0]
    assert np.array_equal(alphas, [first[0].alpha, first[3].alpha])
    assert scores.tolist() == [0.0, 3.0]
    assert np.array_equal(pending, [first[i].alpha for i in (1, 2, 4)])
    assert k == 2


def test_an_ask_that_crosses_the_random_numbers_passes_them_on_as_pending():
    study = make(sampler=Recorder())
    asked = study.ask(7)
    _, _, pending, k = study.sampler.calls[0]
    assert k == 2
    assert np.array_equal(pending, [c.alpha for c in asked[:5]])


def test_failures_enter_as_nan_and_directions_are_turned():
    study = make(sampler=Recorder(), greater_is_better=False)
    study.ask(5)
    study.tell(0, 2.0)
    study.tell(1, math.nan)
    study.tell(2, error="no memory")
    study.tell(3, math.inf)
    study.ask(1)
    _, scores, pending, _ = study.sampler.calls[0]
    assert scores[0] == -2.0
    assert np.isnan(scores[1:]).all()
    assert len(pending) == 1
    told = study.trials()
    assert "not a finite number" in told[1].error
    assert told[2].error == "no memory"


def test_best_follows_the_direction_and_the_lowest_number_wins_ties():
    for greater, best in ((True, 1), (False, 0)):
        study = make(greater_is_better=greater)
        study.ask(3)
        for number, value in enumerate([1.0, 2.0, 2.0]):
            study.tell(number, value)
        assert study.best().number == best


def test_seeds_and_alphas_depend_on_numbers_not_on_how_many_are_asked_at_once():
    one_by_one, together = make(), make()
    singles = [one_by_one.ask(1)[0] for _ in range(5)]
    for a, b in zip(singles, together.ask(5), strict=True):
        assert np.array_equal(a.alpha, b.alpha)
        assert a.seed == b.seed
    assert len({c.seed for c in singles}) == 5


def test_other_seed_other_alphas():
    assert not np.array_equal(make(seed=1).ask(3)[1].alpha, make(seed=2).ask(3)[1].alpha)


def test_a_study_in_a_storage_is_continued(tmp_path):
    storage = tmp_path / "run.db"
    memory, before = make(), make(storage=storage)
    for study in (memory, before):
        tell_all(study, study.ask(5))
    before.ask(3)
    del before
    after = make(storage=storage)
    for a, b in zip(after.ask_until(8), memory.ask(3), strict=True):
        assert np.array_equal(a.alpha, b.alpha)
    assert len(after.trials()) == 8


@pytest.mark.parametrize("stored", [True, False])
def test_the_candidates_become_an_optuna_study_for_dashboards(tmp_path, stored):
    study = make(storage=tmp_path / "run.db" if stored else None)
    tell_all(study, study.ask(5))
    study.ask(2)
    study.tell(5, error="no")
    shown = f"sqlite:///{tmp_path / 'shown.db'}" if stored else None
    found = study.to_optuna(shown)
    assert found.direction.name == "MAXIMIZE" and found.best_value == study.best().value
    for trial, seen in zip(study.trials(), found.trials, strict=True):
        assert seen.params == {f"alpha_{i}": value for i, value in enumerate(trial.alpha)}
        assert seen.user_attrs["number"] == trial.number and seen.user_attrs.get("error") == trial.error
    assert [trial.state.name for trial in found.trials] == ["COMPLETE"] * 5 + ["FAIL", "RUNNING"]
    if stored:
        assert len(optuna.load_study(study_name="moew", storage=shown).trials) == 7
        with pytest.raises(InvalidInputError, match="has a study 'moew' already"):
            study.to_optuna(shown)
    with pytest.raises(InvalidInputError, match=r"kept in a URL such as 'sqlite:///shown\.db'.*got 3"):
        study.to_optuna(3)


def test_other_settings_on_the_same_storage_are_refused(tmp_path):
    make(storage=tmp_path / "run.db")
    with pytest.raises(InvalidInputError, match="other settings.*seed"):
        make(storage=tmp_path / "run.db", seed=8)


@pytest.mark.parametrize("moment", range(1, 9))
def test_an_interruption_at_any_moment_of_asking_changes_nothing(tmp_path, monkeypatch, moment):
    straight = make()
    tell_all(straight, straight.ask(5))
    expected = straight.ask(4)
    study = make(storage=tmp_path / "run.db")
    tell_all(study, study.ask(5))
    left, asking = [moment], threading.current_thread()

    def interrupted(name):
        original = getattr(Statements, name)

        def statement(*args):
            if threading.current_thread() is asking:  # another one says now and then that the study is open
                left[0] -= 1
                if left[0] == 0:
                    raise KeyboardInterrupt
            return original(*args)

        return statement

    with monkeypatch.context() as patch, contextlib.suppress(KeyboardInterrupt):
        for name in ("read", "write", "write_all"):
            patch.setattr(Statements, name, interrupted(name))
        study.ask_until(9)
        assert moment == 8  # of seven statements
    study.close()
    resumed = make(storage=tmp_path / "run.db").ask_until(9)
    assert [c.number for c in resumed] == [5, 6, 7, 8]
    for a, b in zip(resumed, expected, strict=True):
        assert np.array_equal(a.alpha, b.alpha)


def test_a_study_of_other_data_or_direction_is_refused(tmp_path):
    make(storage=tmp_path / "run.db", fingerprint="one")
    with pytest.raises(InvalidInputError, match="fingerprint of data"):
        make(storage=tmp_path / "run.db", fingerprint="two")
    with pytest.raises((InvalidInputError, ValueError), match="greater_is_better"):
        make(storage=tmp_path / "run.db", fingerprint="one", greater_is_better=False)


def _ask_from_process(path: Path, k: int) -> None:
    study = make(storage=path)
    for _ in range(k):
        (candidate,) = study.ask(1)
        study.tell(candidate.number, float(candidate.number))


@pytest.mark.heavy
def test_several_processes_ask_at_once(tmp_path):
    path = tmp_path / "run.db"
    make(storage=path)
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_ask_from_process, args=(path, 4)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
        assert worker.exitcode == 0
    told = make(storage=path).trials()
    assert [t.number for t in told] == list(range(12))
    assert not any(t.pending for t in told)
    alone = make().ask(5)  # the first numbers are the baseline and random, whoever asked for them
    for a, b in zip(told[:5], alone, strict=True):
        assert np.array_equal(a.alpha, b.alpha)
    alphas = np.array([t.alpha for t in told])
    distances = np.linalg.norm(alphas[:, None] - alphas[None], axis=2) + 10 * np.eye(12)
    assert distances.min() > 1e-6


def test_ask_and_tell_mistakes():
    study = make()
    with pytest.raises(InvalidInputError, match="at least one"):
        study.ask(0)
    with pytest.raises(SearchFailedError, match="tell at least one"):
        study.best()
    study.ask(1)
    with pytest.raises(InvalidInputError, match="no candidate 5"):
        study.tell(5, 1.0)
    with pytest.raises(InvalidInputError, match="either a value or an error"):
        study.tell(0)
    with pytest.raises(InvalidInputError, match="needs one value, got 2"):
        study.tell(0, [1.0, 2.0])
    study.tell(0, np.array([1.0]))
    with pytest.raises(InvalidInputError, match="already told"):
        study.tell(0, 1.0)
    with pytest.raises(InvalidInputError, match="without a weighting"):
        study.weights(study.trials()[0], None, None)
    with pytest.raises(InvalidInputError, match="n_initial"):
        make(n_initial=-1)


def test_weights_of_a_candidate_are_the_weight_function():
    X, y = np.arange(12.0).reshape(6, 2), np.array([0, 0, 0, 1, 1, 2])
    weighting = ExampleWeighting(LabelEmbedding(), UniformBaseWeights()).fit(X, y, task="classification")
    study = WeightStudy(weighting, Ball(weighting.n_dims, 3.0), seed=0)
    base_weights, other = study.ask(2)
    assert np.array_equal(study.weights(base_weights, X, y), np.ones(6))
    assert np.array_equal(study.weights(other, X, y), weighting.training_weights(other.alpha[None])[0])


def test_search_by_name_or_object():
    assert isinstance(make(sampler="random").sampler, RandomSampler)
    assert make(sampler=GpBucb(p=95.0)).sampler.p == 95.0


def _open(url: str) -> None:
    WeightStudy(None, Ball(2, 1.0), seed=0, storage=url).close()


@pytest.mark.heavy
def test_processes_may_begin_together_on_an_empty_database(tmp_path):
    context = multiprocessing.get_context("spawn")
    url = f"sqlite:///{tmp_path / 'study.db'}"
    processes = [context.Process(target=_open, args=(url,)) for _ in range(6)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0] * 6


def test_numpys_integers_can_be_stored(tmp_path):
    for number in (4, np.int64(4)):
        study = make(storage=tmp_path / "journal", n_initial=number, alpha_zero_repeats=number, seed=number)
        assert isinstance(study.seed, int)
