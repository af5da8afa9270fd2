"""A sample of the kill benchmark: searches that are killed and started again find the same bits."""

import importlib.util
import itertools
import sys
from collections import Counter

import pytest
from benchmark_modules import importable

if not sys.platform.startswith("linux"):
    pytest.skip("looks into /proc", allow_module_level=True)

with importable():
    import kill_cases
    import killed_workers
    import kills


def seeds_of(n=1, *, n_jobs=1, **wanted):
    """The first seeds of forks that are killed once, with these settings and this signal."""
    signal = wanted.pop("signal")

    wanted |= {"n_jobs": n_jobs, "fork": True}

    def fits(case):
        kill = case.kills[0]
        return (
            all(getattr(case.setting, name) == value for name, value in wanted.items())
            and len(case.kills) == 1
            and (kill.name, kill.to_all) == (signal, False)
            and kill.moment < 0.8  # on a machine that is faster now than it was the search has not ended
        )

    return list(itertools.islice((s for s in itertools.count() if fits(kill_cases.draw_case(s))), n))


def test_a_case_follows_from_its_seed_and_all_kinds_are_drawn():
    cases = [kill_cases.draw_case(seed) for seed in range(500)]
    assert cases == [kill_cases.draw_case(seed) for seed in range(500)]
    assert {case.setting for case in cases} == set(kill_cases.all_settings())
    kinds = Counter((case.setting.storage, case.kills[0].name) for case in cases)
    assert len(kinds) == 6 and min(kinds.values()) > 30
    assert {len(case.kills) for case in cases} == {1, 2, 3}
    assert {(kill.name, kill.to_all) for case in cases for kill in case.kills} == {
        (name, to_all) for name in kill_cases.SIGNALS for to_all in (False, True)
    }


@pytest.mark.heavy
def test_killed_searches_find_the_same_bits(tmp_path, capsys):
    seeds = [
        *seeds_of(storage="sqlite", front="python", signal="KILL"),
        *seeds_of(storage="sqlite", front="command line", signal="TERM"),
        *seeds_of(storage="sqlite", front="python", signal="INT"),
    ]
    tried = kill_cases.try_kills(seeds, tmp_path)
    assert [(one.outcome, one.reached) for one in tried] == [(kill_cases.EQUAL, [True])] * 3
    assert all(one.processes_left == one.rows_left == 0 and one.files_left == [] for one in tried)
    assert all(len(one.restart_seconds) == 1 for one in tried)
    assert kill_cases.try_kills(seeds, tmp_path) == []  # all are recorded
    kills.main(["table", "--out", str(tmp_path)])
    assert "3 searches, killed 3 times" in capsys.readouterr().out


def test_another_result_and_no_result_are_noticed():
    case, expected = kill_cases.draw_case(0), {"weights": "a", "scores": "b"}
    for digests, outcome, differing in (
        (expected, kill_cases.EQUAL, []),
        ({"weights": "c", "scores": "b"}, kill_cases.OTHER, ["weights"]),
        ({}, kill_cases.FAILED, ["weights", "scores"]),
    ):
        tried = kill_cases.Tried(case, kill_cases.EQUAL, [True])
        kill_cases.compare(tried, digests, expected)
        assert (tried.outcome, tried.differing) == (outcome, differing)


@pytest.mark.heavy
@pytest.mark.skipif(importlib.util.find_spec("psycopg") is None, reason="psycopg is not installed")
def test_killed_searches_on_postgresql(tmp_path):
    wanted = {"storage": "postgresql", "front": "python"}
    seeds = [seed for name in kill_cases.SIGNALS for seed in seeds_of(2, n_jobs=2, signal=name, **wanted)]
    tried = kill_cases.try_kills(seeds, tmp_path)
    if not tried:
        pytest.skip("PostgreSQL is not installed")
    assert [one.outcome for one in tried] == [kill_cases.EQUAL] * 6
    assert not any(one.files_left for one in tried)


def test_a_line_that_was_cut_off_is_left_out(tmp_path):
    path = tmp_path / "kills.jsonl"
    path.write_text('{"a": 1}\n{"a": ', encoding="utf-8")
    assert kill_cases.Records(path).lines == [{"a": 1}]
    assert path.read_text(encoding="utf-8") == '{"a": 1}\n'


def test_no_table_without_results(tmp_path):
    with pytest.raises(SystemExit, match="no results"):
        kills.main(["table", "--out", str(tmp_path)])


def test_trainings_are_counted_by_why_they_were_done_again():
    expected = killed_workers.Alone({}, Counter({"1-a": 1, "2-b": 1, "3-c": 1, "4-d": 2}))
    events = [
        (10, 0.0, "probe", "x"),
        (10, 0.1, "begin", "1-x"),  # not a candidate's
        (10, 1.0, "begin", "1-a"),
        (11, 1.1, "begin", "2-b"),
        (11, 1.2, "begin", "3-c"),
        (10, 1.5, "told", "1"),
        (12, 2.0, "begin", "2-b"),  # process 11 was killed
        (12, 2.5, "begin", "1-a"),  # told before
        (10, 2.6, "begin", "4-d"),
        (10, 2.7, "begin", "4-d"),  # as usual
        (12, 2.8, "begin", "4-d"),  # process 10 trains it, too
        (10, 3.0, "concluding", ""),
        (10, 3.1, "begin", "1-a"),  # for the conclusion
    ]
    found = killed_workers.Round(0, "sqlite")
    killed_workers.count_trainings(found, events, expected, {11})
    assert (found.lost, found.twice, found.beside) == (1, 1, 1)


@pytest.mark.heavy
@pytest.mark.parametrize("storage", ["sqlite", "postgresql"])
def test_workers_that_are_killed_are_replaced(tmp_path, storage, capsys):
    rounds = killed_workers.try_workers(1, tmp_path, storages=[storage])
    if not rounds:
        pytest.skip("PostgreSQL is not installed")
    (one,) = rounds
    assert (one.outcome, one.twice, one.beside, one.processes_left) == (killed_workers.EQUAL, 0, 0, 0)
    assert one.killed >= 1 and one.finished == one.started - one.killed
    killed_workers.print_workers(tmp_path)
    assert f"| {storage} | 1 |" in capsys.readouterr().out
