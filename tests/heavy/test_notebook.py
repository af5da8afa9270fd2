"""A search in a real Jupyter kernel: its progress and its result, as a notebook shows them."""

import json
import re
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.heavy

FIT = """
from problems import shifted_classes
from sklearn.linear_model import LogisticRegression
from moew import ExampleWeights, MetricSearch

rows = shifted_classes(120)
weights = ExampleWeights(embedding="label", batch_size=3)
settings = {"strategies": ["auto", weights], "n_candidates": 6, "random_state": 0}
search = MetricSearch(LogisticRegression(), **settings)
search.fit(rows.X, rows.y, validation=(rows.X_val, rows.y_val))
search.result_
"""
COMPARE = """
from moew import compare

data = {"validation": (rows.X_val, rows.y_val), "test": (rows.X_test, rows.y_test)}
compare(search.set_params(n_candidates=3), rows.X, rows.y, **data, repeats=2)
"""
QUIET = "search.set_params(verbose=False).fit(rows.X, rows.y, validation=(rows.X_val, rows.y_val));"


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    folder = tmp_path_factory.mktemp("kernel")
    path = f"import sys\nsys.path[:0] = {[str(Path.cwd()), str(Path.cwd() / 'tests')]!r}\n"
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(code) for code in (path + FIT, COMPARE, QUIET)]
    )
    kernel = {"argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]}
    _write_kernel(folder / "kernels" / "here", kernel)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_PATH", str(folder))
        patch.setenv("IPYTHONDIR", str(folder / "ipython"))
        nbclient.NotebookClient(notebook, timeout=300, kernel_name="here").execute()
    return notebook.cells


def _write_kernel(folder, kernel):
    folder.mkdir(parents=True)
    (folder / "kernel.json").write_text(json.dumps({**kernel, "display_name": "here", "language": "python"}))


def shown(cell, kind="text/plain"):
    return [output.data[kind] for output in cell.outputs if "data" in output and kind in output.data]


def test_a_notebook_shows_the_last_state_of_the_progress_and_the_result(cells):
    assert [output.output_type for output in cells[0].outputs] == ["display_data", "execute_result"]
    progress, result = shown(cells[0])
    assert re.match(r"batch 2/2: (\d+)/\1 candidates, best 0\.\d+, \d+ s$", progress)
    assert result.startswith("<SearchResult: ")
    bar, table = shown(cells[0], "text/html")
    assert re.search(r'<progress value="(\d+)" max="\1"', bar) and "selected" in table


def test_a_comparison_names_the_method(cells):
    *progress, table = shown(cells[1])
    assert [line.split(":")[0] for line in progress][-1] == "moew"
    assert any(line.startswith("class weights: 8 of 8, best ") for line in progress)
    assert table.startswith("<Comparison: ")


def test_no_progress_is_shown_if_it_is_not_wanted(cells):
    assert cells[2].outputs == []
