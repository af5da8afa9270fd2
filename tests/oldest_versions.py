"""Write the oldest versions that pyproject.toml allows, as constraints of pip, to standard output.

What only the tests need (pytest, LightGBM, linters) is not moew's dependency, and is left out.
"""

import re
import sys
import tomllib
from pathlib import Path

EXTRAS = ("cli", "networks", "optuna", "parquet", "plot", "postgres", "progress")


def oldest_versions(project: Path) -> list[str]:
    """Constraints such as "numpy==1.26"."""
    content = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
    extras = content["optional-dependencies"]
    allowed = [*content["dependencies"], *(one for name in EXTRAS for one in extras[name])]
    found = (re.fullmatch(r"([\w-]+)>=([\w.]+)", one) for one in allowed)
    return sorted({f"{one[1]}=={one[2]}" for one in found if one})


if __name__ == "__main__":
    sys.stdout.write("\n".join([*oldest_versions(Path(__file__).parents[1] / "pyproject.toml"), ""]))
