"""The fuzz command: a sample of its cases, its records, and that it finds what is planted."""

import numpy as np
import pytest
from benchmark_modules import importable
from tables import change_entries, entries

from moew import MetricSearch

with importable():
    import fuzz
    import fuzz_loaders
    from fuzz_cases import (
        CRASH,
        FINDINGS,
        HANG,
        INSIDE,
        KINDS,
        OK,
        REFUSED,
        WRONG,
        WrongAnswer,
        find_case,
        run_case,
    )

    for _place in fuzz.PLACES.values():
        find_case(_place)  # they are imported when a case of their kind is run


@pytest.mark.parametrize("n", [24, pytest.param(60, marks=pytest.mark.heavy)])
def test_a_sample_of_all_kinds_has_no_findings_and_is_not_run_again(n, tmp_path):
    cases = list(fuzz.list_cases(n))
    assert {kind for kind, _ in cases} == set(KINDS)
    records = fuzz.fuzz(cases, tmp_path, jobs=0)
    found = [record for record in records.values() if record.outcome in FINDINGS]
    assert not found, fuzz.table(found)
    assert {record.outcome for record in records.values()} == {OK, REFUSED}
    before = (tmp_path / fuzz.RESULTS).read_bytes()
    again = fuzz.fuzz(cases, tmp_path, jobs=0)
    assert (tmp_path / fuzz.RESULTS).read_bytes() == before
    assert {key: record.outcome for key, record in again.items()} == {
        key: record.outcome for key, record in records.items()
    }
    assert f"| all | {n} |" in fuzz.table(list(again.values()))


def test_a_run_that_was_cut_off_goes_on(tmp_path):
    cases = list(fuzz.list_cases(4, kinds=["study"]))
    fuzz.fuzz(cases[:2], tmp_path, jobs=0)
    path = tmp_path / fuzz.RESULTS
    path.write_text(path.read_text()[:-20])  # the last line is not whole
    assert len(fuzz.read_records(path)) == 1
    assert len(fuzz.fuzz(cases, tmp_path, jobs=0)) == 4 == len(fuzz.read_records(path))


def test_which_cases_there_are_does_not_depend_on_how_many():
    many = list(fuzz.list_cases(500))
    assert many[:40] == list(fuzz.list_cases(40)) and many[40:] == list(fuzz.list_cases(460, first=40))
    stores = [case for case in many if case[0] == "stores"]
    assert list(fuzz.list_cases(len(stores), kinds=["stores"])) == stores


@pytest.mark.parametrize("kind", ["readers", "study", "loaders"])
def test_a_case_ends_the_same_again(kind):
    for seed in range(5):
        one, other = (run_case(kind, seed, KINDS[kind][0]) for _ in range(2))
        assert one.outcome == other.outcome


@pytest.mark.heavy
def test_wrong_scores_weights_and_errors_are_found(monkeypatch):
    def found(kind, n=12):
        records = [run_case(kind, seed, KINDS[kind][0]) for seed in range(n)]
        return [record for record in records if record.outcome in FINDINGS]

    with monkeypatch.context() as patch:
        keep = MetricSearch._keep

        def better(search, fitted):
            keep(search, fitted)
            search.best_score_ += 0.1

        patch.setattr(MetricSearch, "_keep", better)
        records = found("fit")
        assert records and {record.outcome for record in records} == {WRONG}
        assert any("best score" in record.message for record in records)
    with monkeypatch.context() as patch:
        patch.setattr("moew.weighting._weights.mean_over_rows", lambda weights, own: np.ones(len(weights)))
        assert any(record.outcome == WRONG and "weight" in record.message for record in found("fit"))
    with monkeypatch.context() as patch:
        patch.setattr("moew.samplers._domains.is_whole", lambda value: True)
        assert any(record.outcome == INSIDE for record in found("study", 100))


def test_a_store_that_is_believed_is_found(monkeypatch):
    def edit(_, folder):  # and write checksums that fit
        path = folder / "search.moew"
        content = entries(path)["search.json"]
        changed = content.replace(b'"log_top": -0.', b'"log_top": -9.')
        assert changed != content
        change_entries({"search.json": changed}, path)
        return False, "a digit"

    monkeypatch.setattr(fuzz_loaders, "_damaged_folder", edit)
    with pytest.raises(WrongAnswer, match="weights of a damaged run, a digit"):
        fuzz_loaders._run_case(np.random.default_rng(0), fuzz_loaders.finished_run(0))


@pytest.mark.heavy
def test_hangs_and_crashes_are_recorded_and_the_others_go_on(tmp_path):
    places = {name: f"planted_cases:{name}" for name in ("works", "leaves", "sleeps", "is_wrong")}
    kinds = ["works", "leaves", "works", "sleeps", "is_wrong", "works"]
    cases = [(kind, seed) for seed, kind in enumerate(kinds)]
    with importable():
        records = fuzz.fuzz(cases, tmp_path, jobs=2, limit=3, places=places)
    assert [records[case].outcome for case in cases] == [OK, CRASH, OK, HANG, WRONG, OK]
    assert "status 3" in records["leaves", 1].message and "five" in records["is_wrong", 4].message


@pytest.mark.heavy
def test_one_case_is_shown_and_the_exit_status_tells_of_findings(tmp_path, capsys):
    assert fuzz.main(["--only", "readers:0"]) == 0
    with importable():
        assert fuzz.main(["--cases", "3", "--kinds", "readers", "--out", str(tmp_path)]) == 0
    assert "| readers | 3 |" in capsys.readouterr().out
    recorder = fuzz.Recorder(tmp_path / fuzz.RESULTS)
    recorder.add(fuzz.Record("fit", 1, WRONG, "five", 0.1))
    recorder.close()
    assert fuzz.main(["table", "--out", str(tmp_path)]) == 1
    assert "wrong answer: fit:1" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="KIND:SEED"):
        fuzz.main(["--only", "fit"])
