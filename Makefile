PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo docs test test-oldest test-versions test-all check clean fuzz package

# The stamp makes the environment once, and again when the dependencies change.
$(VENV)/ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install -qq --editable ".[test]"
	touch $@

demo: $(VENV)/ready
	$(BIN)/moew demo --jobs 2 --out out

check: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Three processes, also on two cores: many tests wait for processes of their own.
test: check
	$(BIN)/python -m pytest -m "not heavy" -n 3 --dist worksteal

# The tests again, with the oldest versions that the dependencies allow. Old ones use what new ones deprecate.
test-oldest:
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --upgrade pip
	$(PYTHON) tests/oldest_versions.py > .venv-oldest/versions.txt
	.venv-oldest/bin/python -m pip install -qq --constraint .venv-oldest/versions.txt --editable ".[test]"
	.venv-oldest/bin/python -m pytest -m "not heavy" -n 3 --dist worksteal -W ignore::DeprecationWarning

# A sample of the tests on each Python that is allowed. One that is not on the PATH is skipped, by name.
VERSIONS := 3.11 3.12 3.13
SAMPLE := tests/test_package.py tests/cli/test_cli.py tests/docs/test_readme.py tests/saving \
	tests/search/test_estimator.py tests/search/test_saved.py tests/weighting
test-versions: $(VERSIONS:%=test-python%)

test-python%:
	@if ! python$* --version >/dev/null 2>&1; then echo "python$* is not here: skipped"; else set -ex; \
	python$* -m venv .venv-$*; \
	.venv-$*/bin/python -m pip install --quiet --upgrade pip; \
	.venv-$*/bin/python -m pip install -qq --editable ".[test]"; \
	.venv-$*/bin/python -m pytest -m "not heavy" -n $(JOBS) $(SAMPLE); fi

# Wheel and sdist, checked, and the wheel tried in an empty environment with the README's example.
DIST ?= dist
package:
	$(PYTHON) -m venv .venv-package
	.venv-package/bin/python -m pip install --quiet --upgrade pip build twine
	rm -rf $(DIST)
	.venv-package/bin/python -m build --outdir $(DIST) . >/dev/null
	.venv-package/bin/python -m twine check --strict $(DIST)/*
	$(PYTHON) tests/built_package.py $(DIST)

$(VENV)/docs-ready: $(VENV)/ready
	$(BIN)/python -m pip install -qq --editable ".[docs]"
	touch $@

# The gallery runs where its data are: MOEW_DATA, the cache, or the publisher. What has not changed is not run again.
docs: $(VENV)/docs-ready
	$(BIN)/python -m sphinx -W --keep-going -q docs build/docs
	@echo "build/docs/index.html"

# Goes on where it stopped; what was found is printed again by: python benchmarks/fuzz.py table --out out/fuzz
CASES ?= 100000
JOBS ?= 2
fuzz: $(VENV)/ready
	$(BIN)/python benchmarks/fuzz.py --cases $(CASES) --jobs $(JOBS) --out out/fuzz

# An integration that cannot be installed here is skipped, by name, by its tests.
test-all: $(VENV)/ready
	-$(BIN)/python -m pip install --quiet torch==2.13.0
	-$(BIN)/python -m pip install --quiet "psycopg[binary]>=3.2"
	-$(BIN)/python -m pip install --quiet "catboost>=1.2"
	-$(BIN)/python -m pip install --quiet "mlflow-skinny>=3.1"
	-$(BIN)/python -m pip install --quiet "nbclient>=0.10" "nbformat>=5.10" "ipykernel>=6.29"
	-command -v chromium >/dev/null || apt-get install --quiet --yes chromium
	-$(BIN)/python -m pip install --quiet "playwright>=1.50"
	-$(BIN)/python -m pip install --quiet "dask[distributed]>=2026.1" "ray>=2.50"
	-$(BIN)/python -m pip install -qq --editable ".[docs]"
	$(BIN)/python -m pytest -m heavy -rs

clean:
	rm -rf $(VENV) .venv-3.* .venv-oldest .venv-package build dist docs/gallery docs/generated *.egg-info
