"""Examples import this to find `experiments/`, which is beside them in a checkout and not in the package."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))
