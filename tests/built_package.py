"""Try a built wheel and sdist as a stranger would: in an empty environment, with nothing of this folder.

`python tests/built_package.py dist` looks for one wheel and one sdist in `dist`, says what it does, and fails
at the first thing that is wrong. `make package` builds both first.
"""

import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
NEEDED = ("moew/__init__.py", "moew/py.typed", "moew/report/page.css", "moew/report/page.js")


def try_package(dist: Path, folder: Path) -> None:
    """Check what is in the wheel and the sdist, and use the wheel in a new environment in `folder`."""
    (wheel,), (sdist,) = list(dist.glob("moew-*.whl")), list(dist.glob("moew-*.tar.gz"))
    check_content(wheel, sdist)
    python = folder / "empty" / "bin" / "python"
    say(f"installing {sdist.name} without its dependencies, then {wheel.name}[cli] with them")
    venv.create(folder / "empty", with_pip=True)
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", str(sdist.resolve()), folder=folder)
    run(python, "-m", "pip", "uninstall", "--quiet", "--yes", "moew", folder=folder)
    run(python, "-m", "pip", "install", "--quiet", f"{wheel.resolve()}[cli]", folder=folder)
    run(python, "-m", "pip", "check", folder=folder)
    place = run(python, "-c", "import moew; print(moew.__file__)", folder=folder).strip()
    assert Path(place).is_relative_to(folder / "empty"), place
    version = run(python.with_name("moew"), "--version", folder=folder).split()[-1]
    assert version == project()["version"], version
    assert (
        run(python, "-c", "import importlib.util; print(importlib.util.find_spec('jax'))", folder=folder)
        == "None\n"
    )
    say(f"moew {version} runs, without JAX; the README's example:")
    say(run(python, "-c", readme_example(), folder=folder).rstrip())


def check_content(wheel: Path, sdist: Path) -> None:
    """The wheel has the package, its types and columns, and nothing else; the sdist has the same files."""
    names = zipfile.ZipFile(wheel).namelist()
    missing = set(NEEDED) - set(names)
    assert not missing, f"{wheel.name} lacks {missing}"
    tops = {name.split("/")[0] for name in names}
    assert tops == {"moew", f"moew-{project()['version']}.dist-info"}, tops
    with zipfile.ZipFile(wheel) as opened:
        (columns,) = [name for name in names if name.endswith(".dist-info/METADATA")]
        text = opened.read(columns).decode()
    for extra in project()["optional-dependencies"]:
        assert f"Provides-Extra: {extra}\n" in text, extra
    with tarfile.open(sdist) as opened:
        inside = {name.partition("/")[2] for name in opened.getnames()}
    lacking = {name for name in names if name.startswith("moew/")} - inside
    assert not lacking, f"{sdist.name} lacks {lacking}"


def readme_example() -> str:
    """The first block of Python in the README."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert found is not None
    return found[1]


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def run(program: Path, *arguments: str, folder: Path) -> str:
    """What it prints; run in `folder`, so that this copy of the source is not what is imported."""
    done = subprocess.run([str(program), *arguments], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{program.name} {' '.join(arguments)} ended with {done.returncode}:\n{done.stderr}")
    return done.stdout


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        try_package(Path(sys.argv[1]), Path(folder).resolve())
