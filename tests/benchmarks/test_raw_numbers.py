"""Raw numbers of benchmarks are written once, and read again."""

import csv

import pytest
from benchmark_modules import importable

with importable():
    import choices
    import downsample
    import final_choice
    import gain_interval
    import paper_default
    import radius
    import raw_numbers

CALLS: list[tuple[str, int]] = []


def twice(case, repeat):
    CALLS.append((case, repeat))
    return repeat / 3, f"{case}, {repeat}"


def test_what_the_file_has_is_not_measured_again(tmp_path):
    path = tmp_path / "new" / "numbers.csv"
    CALLS.clear()
    first = raw_numbers.measured(path, ["third", "name"], twice, ["a", "b, c"], 2, jobs=1)
    assert first == {"a": [(0.0, "a, 0"), (1 / 3, "a, 1")], "b, c": [(0.0, "b, c, 0"), (1 / 3, "b, c, 1")]}
    more = raw_numbers.measured(path, ["third", "name"], twice, ["b, c", "a"], 3, jobs=1)
    assert list(more) == ["b, c", "a"] and more["a"][:2] == first["a"] and more["a"][2] == (2 / 3, "a, 2")
    assert sorted(CALLS) == [("a", 0), ("a", 1), ("a", 2), ("b, c", 0), ("b, c", 1), ("b, c", 2)]


def test_a_line_that_was_cut_off_is_measured_again(tmp_path):
    path = tmp_path / "numbers.csv"
    whole = raw_numbers.measured(path, ["third", "name"], twice, ["a"], 2, jobs=1)
    text = path.read_text()
    path.write_text(text[: text.rindex(",")])
    assert raw_numbers.measured(path, ["third", "name"], twice, ["a"], 2, jobs=1) == whole


def test_a_file_of_other_columns_is_refused(tmp_path):
    path = tmp_path / "numbers.csv"
    raw_numbers.measured(path, ["third", "name"], twice, ["a"], 1, jobs=1)
    with pytest.raises(SystemExit, match="remove it to measure again"):
        raw_numbers.read(path, ["other"])


SEPARATE = [f"{downsample.RARE}{sep:g} (worst class error)" for sep in (0.5, 1.0, 1.5, 2.0)]
FILES = {
    "radius": (radius, "radius.csv", radius.FIELDS, list(radius.PROBLEMS)),
    "models": (choices, "models.csv", list(choices.TABLES["models"]), list(radius.PROBLEMS)),
    "final": (
        choices,
        "final.csv",
        final_choice.FINALS,
        [f"{name}, {title}" for title in choices.SHARES for name in radius.PROBLEMS],
    ),
    "downsample": (downsample, "rows.csv", downsample.FIELDS, [downsample.TOY, *SEPARATE]),
    "gains": (gain_interval, "gains.csv", gain_interval.FIELDS, list(gain_interval.CASES)),
    "default": (paper_default, "default.csv", paper_default.FIELDS, list(paper_default.CASES)),
}


@pytest.mark.parametrize("name", FILES)
def test_tables_are_printed_from_the_file_alone(name, tmp_path, monkeypatch, capsys):
    module, file, fields, cases = FILES[name]
    with (tmp_path / file).open("w", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["case", "repeat", *fields])
        for case in cases:
            writer.writerows([case, k, *(0.25 * k + 0.5 + j for j in range(len(fields)))] for k in range(2))
    is_folder = module is choices
    table = ["--table", name] if is_folder else []
    given = [
        "--repeats",
        "2",
        "--jobs",
        "1",
        "--out",
        str(tmp_path if is_folder else tmp_path / file),
        *table,
    ]
    monkeypatch.setattr("sys.argv", [name, *given])
    module.main()
    printed = capsys.readouterr().out
    assert all(case.split(",")[0] in printed for case in cases)
    assert (tmp_path / file).read_text().count("\n") == 1 + 2 * len(cases)
