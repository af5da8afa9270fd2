"""Code and commands on the documentation's pages run, and print what the pages say but for the numbers."""

import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pages import DOCS, blocks, commands, make_searches_small, run_command, run_python, without_numbers
from problems import shifted_classes
from sklearn.linear_model import LogisticRegression

from moew import MetricSearch

PAGES = [("migration.md",), ("when-weights-cannot-help.md",), ("probabilities.md",), ("several-metrics.md",)]
LONG = ("start.md", "report.md")  # report goes on where start ends


@pytest.mark.parametrize("pages", [pytest.param(LONG, marks=pytest.mark.heavy), *PAGES], ids=" and ".join)
def test_every_block_runs(pages, own_folder, monkeypatch, capsys):
    """With smaller searches than on the page."""
    make_searches_small(monkeypatch)
    names: dict[str, object] = {}
    for page in pages:
        for language, code, output in blocks(DOCS / page):
            if language == "sh":
                for command, text in commands(code.replace("--repeats 5", "--repeats 2")):
                    run_command(command, text)
            elif "fairlearn" not in code or find_spec("fairlearn"):  # heavy/test_documentation.py has it
                run_python(code.replace("repeats=5", "repeats=2"), page, names)
                printed = capsys.readouterr().out
                if output:
                    assert without_numbers(printed) == without_numbers(output)


def test_every_block_on_models_runs(monkeypatch):
    make_searches_small(monkeypatch)
    rows = shifted_classes(200)
    columns = [f"c{i}" for i in range(rows.X.shape[1])]
    names: dict[str, object] = {"X": pd.DataFrame(rows.X, columns=columns), "y": rows.y, "names": columns}
    kinds = []
    for language, code, _ in blocks(DOCS / "models.md"):
        if language == "sh":
            run_command(code.strip())
        elif "catboost" not in code and ("torch" not in code or find_spec("torch")):  # heavy/test_catboost.py
            run_python(code, "models.md", names)
            kinds.append(type(names["search"].estimator).__name__)
    assert kinds[:1] == ["Pipeline"] and kinds[-1] in ("LGBMClassifier", "TorchClassifier")


def test_every_block_on_large_data_runs(own_folder, monkeypatch):
    make_searches_small(monkeypatch)
    rows = shifted_classes(200)
    X, X_val = (
        pd.DataFrame(part, columns=[f"c{i}" for i in range(part.shape[1])]) for part in (rows.X, rows.X_val)
    )
    X.assign(bought=rows.y).to_parquet("rows.parquet")
    names = {
        "model": LogisticRegression(),
        "metric": "balanced_accuracy",
        "X_sample": X[:100],
        "y_sample": rows.y[:100],
        "X_val": X_val,
        "y_val": rows.y_val,
    }
    found = blocks(DOCS / "large-data.md")
    run_python(found[0].code, "large-data.md", names)
    written = np.fromfile("weights.f8")
    np.testing.assert_allclose(written, names["search"].example_weights(X, rows.y), rtol=1e-6)
    names |= {"X": rows.X[:100], "y": rows.y[:100]}
    run_python(found[1].code, "large-data.md", names)
    assert len(names["rows"]) == pytest.approx(20, abs=1) and hasattr(names["model"], "coef_")
    assert len(found) == 2


def test_the_embedding_on_the_page_on_choices_tells_hard_rows():
    rows = shifted_classes(200)
    metric, model = "balanced_accuracy", LogisticRegression()
    names = {
        "model": model,
        "metric": metric,
        "X": rows.X,
        "y": rows.y,
    }
    block, space = blocks(DOCS / "choosing.md")
    run_python(block.code, "choosing.md", names)
    hard = names["difficulty"](rows.X, rows.y)
    wrong = names["first"].predict(rows.X) != rows.y
    assert (
        hard.shape == (len(rows.y), 1)
        and 0 < wrong.sum() < 100
        and hard[wrong].min() > 0 > hard[~wrong].max()
    )
    search = names["search"].set_params(n_candidates=2)
    assert search.fit(rows.X, rows.y, validation=(rows.X_val, rows.y_val)).best_alpha_.shape == (1,)
    run_python(space.code, "choosing.md", names)
    joint = names["joint"].set_params(n_candidates=4)
    assert "C" in joint.fit(rows.X, rows.y, validation=(rows.X_val, rows.y_val)).best_params_


def all_pages() -> list[Path]:
    return [*DOCS.glob("*.md"), *DOCS.glob("experiments/*.md")]


def test_no_page_waits_for_a_number():
    pages = [*all_pages(), DOCS.parent / "README.md", DOCS.parent / "CHANGELOG.md"]
    assert [page.name for page in pages if "??" in page.read_text(encoding="utf-8")] == []


def test_every_page_is_in_a_table_of_contents():
    listed = set()
    for page in ("index.md", "guide.md", "background.md", "results.md"):
        text = (DOCS / page).read_text(encoding="utf-8")
        for entries in re.findall(r"```\{toctree\}\n(.*?)```", text, re.DOTALL):
            listed |= set(entries.split())
    pages = {str(path.relative_to(DOCS).with_suffix("")) for path in all_pages()}
    assert pages - {"index"} <= listed


def test_every_page_and_file_that_is_linked_exists():
    """Sphinx looks at the headings within pages, and makes the pages of the gallery and the reference."""
    for page in all_pages():
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)#\s]+)", text):
            if not target.startswith(("http", "gallery/", "../gallery/", "mailto:")):
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_first_page_has_the_readmes_example():
    readme, index = (blocks(path) for path in (DOCS.parent / "README.md", DOCS / "index.md"))
    assert index == readme[:2]


def test_every_picture_is_there_and_shown():
    shown = {
        name for page in DOCS.glob("*.md") for name in re.findall(r"\]\(images/([^)]+)\)", page.read_text())
    }
    assert shown == {path.name for path in (DOCS / "images").iterdir()}


def test_results_hold_the_tables_and_figures_that_the_commands_made():
    pages = {"sampling": "figure-2", "bound": "theorem-2"}
    of_benchmarks = (
        "active", "choosing", "default", "downsampling", "figure-1", "honest-score", "mixed", "rivals",
        "samplers", "selection", "shifted",
    )  # fmt: skip
    folders = [
        path for path in (DOCS / "results").iterdir() if path.is_dir() and path.name not in of_benchmarks
    ]
    assert folders
    for folder in folders:
        page = (DOCS / "experiments" / f"{pages.get(folder.name, folder.name)}.md").read_text(
            encoding="utf-8"
        )
        assert (folder / f"{folder.name}.txt").read_text(encoding="utf-8").strip() in page
        assert f"`python -m experiments {folder.name} " in page
        assert {f"../results/{folder.name}/{path.name}" for path in folder.glob("*.png")} <= set(
            re.findall(r"\]\((../results/[^)]+)\)", page)
        )


def test_the_page_on_samplers_holds_the_tables_that_the_command_printed():
    """samplers.txt is the output of `python benchmarks/samplers.py table`; the widest table is only there."""
    page = (DOCS / "samplers.md").read_text(encoding="utf-8")
    printed = (DOCS / "results" / "samplers" / "samplers.txt").read_text(encoding="utf-8")
    tables = [part for part in printed.strip().split("\n\n") if part.startswith("|")]
    assert len(tables) == 4
    assert all(table in page for table in tables[:3])


def test_the_page_on_active_sampling_holds_the_tables_that_the_command_printed():
    """active.txt is the output of `python benchmarks/active_sampling.py table`."""
    page = (DOCS / "active-sampling.md").read_text(encoding="utf-8")
    printed = (DOCS / "results" / "active" / "active.txt").read_text(encoding="utf-8")
    sections = re.split(r"^### .*\n", printed, flags=re.MULTILINE)[1:]
    assert len(sections) == 9
    assert [section for section in sections if section.strip() not in page] == []


def test_the_block_on_active_sampling_finds_uncertain_rows():
    rows = shifted_classes(200)
    model = LogisticRegression().fit(rows.X, rows.y)
    names = {"search": model, "pool": rows.X_val}
    block = blocks(DOCS / "active-sampling.md")[0]
    run_python(block.code.replace("100", "5"), "active-sampling.md", names)
    assert len(set(names["rows"].tolist())) == 5
    sure = np.sort(model.predict_proba(rows.X_val), axis=1)[:, -1]
    assert sure[names["rows"]].max() <= np.delete(sure, names["rows"]).min()


def test_the_block_on_active_sampling_draws_rows_of_high_weight():
    rows = shifted_classes(200)
    search = MetricSearch.from_settings(
        LogisticRegression(),
        embedding="label",
        n_candidates=3,
        batch_size=3,
        honest=None,
        strategies="example weights",
        random_state=0,
    ).fit(rows.X, rows.y)
    names = {"search": search, "pool": rows.X_val, "np": np}
    code = blocks(DOCS / "active-sampling.md")[1].code
    run_python(code.replace("100", "5"), "active-sampling.md", names)
    assert len(set(names["rows"].tolist())) == 5
    x = rows.X_val[:1]
    each = [search.example_weights(x, [label])[0] for label in search.best_estimator_.classes_]
    assert names["expected"][0] == pytest.approx(np.dot(search.best_estimator_.predict_proba(x)[0], each))
