"""The documentation builds without a warning, its gallery runs, and its pages print what they say."""

import os
import re
import shutil
import subprocess
import sys

import pytest
from pages import DOCS, ROOT, blocks, run_python

pytestmark = pytest.mark.heavy

NUMBER = re.compile(r"[-+]?\d[\d,.]*(?:e-?\d+)?")
for library in ("sphinx", "sphinx_gallery", "pydata_sphinx_theme", "numpydoc", "myst_parser", "fairlearn"):
    pytest.importorskip(library, reason=f"the documentation needs {library}: pip install '.[docs]'")
pytest.importorskip("torch", reason="the reference of moew.models.torch needs PyTorch")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The pages, built from copies, so that nothing of an earlier build counts."""
    source = tmp_path_factory.mktemp("documentation")
    for folder in ("docs", "examples"):
        leave = shutil.ignore_patterns("gallery", "generated", "__pycache__")
        shutil.copytree(ROOT / folder, source / folder, ignore=leave)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    if "MOEW_DATA" not in os.environ and (ROOT / "shared" / "data").is_dir():
        environment["MOEW_DATA"] = str(ROOT / "shared" / "data")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "docs", "pages"]
    done = subprocess.run(command, cwd=source, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-5_000:]
    return source / "pages", done.stdout


def test_the_gallery_has_run(built):
    pages, log = built
    examples = {path.stem for path in (ROOT / "examples").glob("plot_*.py")}
    assert len(examples) >= 8
    not_run = set(re.findall(r"^(plot_\w+) is not run", log, flags=re.MULTILINE))
    for name in examples - not_run:
        text = (pages / "gallery" / f"{name}.html").read_text(encoding="utf-8")
        assert "sphx-glr-script-out" in text, f"{name} has no output"
        assert f"sphx_glr_{name}_001.png" in text, f"{name} has no picture"
        assert "Traceback" not in text
    assert {"plot_1_worst_class_digits", "plot_7_metric_in_awk"} <= examples - not_run  # they need no files


def test_every_public_name_has_a_page(built):
    import moew

    pages, _ = built
    text = (pages / "api.html").read_text(encoding="utf-8")
    for name in set(moew.__all__) - {"__version__"}:
        assert f"moew.{name}" in text


def test_pages_fetch_nothing_from_the_network(built):
    pages, _ = built
    for page in pages.rglob("*.html"):
        sources = re.findall(
            r'<(?:script|img|link)[^>]+(?:src|href)="(https?:[^"]+)"', page.read_text("utf-8")
        )
        assert not sources, f"{page.name} loads {sources}"


def test_an_example_without_its_data_says_what_it_needs(tmp_path):
    environment = os.environ | {
        "PYTHONPATH": str(ROOT),
        "MPLBACKEND": "Agg",
        "MOEW_DATA": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path),
    }
    for name in ("plot_2_money_credit_default", "plot_4_time_shift_blog"):
        command = [sys.executable, str(ROOT / "examples" / f"{name}.py")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert done.stderr.startswith("This example needs data that is not here.")
        assert "MOEW_DATA" in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("page", ["start.md", "migration.md", "when-weights-cannot-help.md"])
def test_numbers_on_a_page_are_what_its_code_prints(page, own_folder, capsys):
    """With searches as on the page; machines round differently."""
    names: dict[str, object] = {}
    told = 0
    for language, code, output in blocks(DOCS / page):
        if language == "sh":
            continue
        run_python(code, page, names)
        printed = capsys.readouterr().out
        if output:
            found, expected = (
                [float(number.rstrip(".").replace(",", "")) for number in NUMBER.findall(text)]
                for text in (printed, output)
            )
            assert found == pytest.approx(expected, rel=0.05, abs=0.02)
            told += 1
    assert told >= 1
