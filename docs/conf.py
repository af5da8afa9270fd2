"""How the documentation is built: `make docs`, into build/docs, with warnings as errors."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
import warnings
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent)]  # experiments/ is beside the package

os.environ.setdefault("MPLBACKEND", "Agg")
# An example's page shows what the example says, not what a library will change some day.
warnings.filterwarnings("ignore", category=DeprecationWarning)

from sphinx.util import logging  # noqa: E402

import moew  # noqa: E402
from experiments import datasets  # noqa: E402

logger = logging.getLogger("moew.docs")

project = "moew"
author = "the authors of moew"
copyright = author  # noqa: A001
version = release = moew.__version__

extensions = [
    "mathml",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_ext", "gallery/*.ipynb", "gallery/*.py"]
default_role = "code"  # single backquotes in docstrings are names
templates_path = ["_templates"]

# Pages
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "moew"
html_static_path = ["_static"]
html_css_files = ["moew.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "show_prev_next": False,
    "navigation_with_keys": True,
    "secondary_sidebar_items": ["page-toc"],
    "navbar_align": "left",
    "footer_start": [],
    "footer_end": [],
}

# Reference
autosummary_generate = True
# What a class has from scikit-learn is scikit-learn's to document; what it has from moew's own bases is not.
autodoc_default_options = {
    "members": True,
    "inherited-members": "BaseEstimator,MetaEstimatorMixin,ClassifierMixin,RegressorMixin,Exception",
}
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"  # the docstrings say it in words
numpydoc_show_class_members = False

# Gallery. An example whose data or library is not here is shown without being run; its first lines say what
# it needs. Data are looked for as experiments.datasets does: MOEW_DATA, the cache, the publisher.
NEEDS_DATA = {
    "plot_2_money_credit_default": datasets.load_credit_default,
    "plot_3_fairness_adult": datasets.load_adult,
    "plot_4_time_shift_blog": datasets.load_blog,
    "plot_5_lightgbm_adult": datasets.load_adult,
    "plot_c_worst_price_band": datasets.load_wine,
}
NEEDS_LIBRARY = {
    "plot_3_fairness_adult": "fairlearn",
    "plot_5_lightgbm_adult": "lightgbm",
    "plot_6_torch_module": "torch",
    "plot_8_dask_cluster": "distributed",
}


def can_run(name: str) -> bool:
    """Whether the data and the library of an example are here; says what is missing."""
    library = NEEDS_LIBRARY.get(name)
    if library is not None and importlib.util.find_spec(library) is None:
        logger.info("%s is not run: %s is not installed.", name, library)
        return False
    try:
        NEEDS_DATA.get(name, lambda: None)()
    except datasets.DataFileError as error:
        logger.info("%s is not run: %s", name, error)
        return False
    return True


EXAMPLES = sorted(path.stem for path in (HERE.parent / "examples").glob("plot_*.py"))
RUN = [name for name in EXAMPLES if can_run(name)]
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "ignore_pattern": r"(__init__|checkout)\.py$",  # no examples
    "filename_pattern": "/(" + "|".join(map(re.escape, RUN)) + r")\.py$",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "min_reported_time": 10_000,  # how long it took depends on the machine
    "write_computation_times": False,
    "show_signature": False,
    "copyfile_regex": r".*\.awk",
    "doc_module": ("moew",),
    "backreferences_dir": "generated/backreferences",
    "abort_on_example_error": False,
}


def skip_requests(app: Any, kind: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """scikit-learn puts set_fit_request and its like on every estimator."""
    return True if re.fullmatch(r"set_\w+_request|get_metadata_routing", name) else None


def setup(app: Any) -> None:
    app.connect("autodoc-skip-member", skip_requests)
