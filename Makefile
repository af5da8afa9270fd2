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
	$(BIN)/python -m experiments demo --jobs 2 --out out

check: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Three processes, also on two cores: many tests wait for processes of their own.
# What networks are compiled to stays in .jax_cache: without it (the first time) this takes a minute longer.
test: check
	$(BIN)/python -m pytest -m "not heavy" -n 3 --dist worksteal

# With the oldest versions that the dependencies allow: the tests of what calls them. Theory, weighting, decisions,
# inspection, the report, experiments and benchmarks call NumPy and our own code alone. Old versions use what new ones
# deprecate.
OF_SKLEARN := tests/search/test_estimator_conformance.py tests/search/test_estimator.py tests/search/test_fit_params.py \
	tests/search/test_estimators_of_others.py tests/metrics/test_scorer.py tests/metrics/test_make_metric.py \
	tests/training/test_meta_estimators.py tests/training/test_ignored_weights.py tests/models/test_networks_conformance.py
OF_JOBLIB := tests/training/test_processes.py tests/training/test_training.py tests/training/test_shared_rows.py
OF_JAX := tests/models/test_networks.py tests/models/test_engine.py tests/models/test_autoencoder.py \
	tests/models/test_devices.py tests/embedding/test_embedding_networks.py
OF_OPTUNA := tests/search/test_study.py tests/search/test_search_space.py \
	tests/search/test_without_optuna.py tests/experiments/test_optuna_samplers.py
OF_TABLES := tests/data/test_tables.py tests/data/test_chunks.py tests/data/test_copies.py tests/data/test_read_only.py
OF_CLICK := tests/cli/test_cli.py tests/cli/test_cli_fit.py tests/cli/test_cli_usage.py tests/cli/test_cli_terminal.py
OF_SKOPS := tests/saving tests/cli/test_runs.py tests/cli/test_runs_trees.py tests/search/test_saved.py
OF_MATPLOTLIB := tests/plotting
test-oldest:
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --upgrade pip
	$(PYTHON) tests/oldest_versions.py > .venv-oldest/versions.txt
	.venv-oldest/bin/python -m pip install -qq --constraint .venv-oldest/versions.txt --editable ".[test]"
	.venv-oldest/bin/python -m pytest -m "not heavy" -n 3 --dist worksteal -W ignore::DeprecationWarning \
		tests/test_package.py $(OF_SKLEARN) $(OF_JOBLIB) $(OF_JAX) $(OF_OPTUNA) $(OF_TABLES) $(OF_CLICK) $(OF_SKOPS) \
		$(OF_MATPLOTLIB)

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

# An integration that cannot be installed here is skipped, by name, by its tests. Two processes, because most tests wait
# for others; a file's tests stay together, because they share servers and built pages. Properties come with 100
# examples instead of 25.
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
	$(BIN)/python -m pytest -m "heavy or hypothesis" --hypothesis-profile=thorough -n 2 --dist loadfile -rs

clean:
	rm -rf $(VENV) .venv-3.* .venv-oldest .venv-package .jax_cache build dist docs/gallery docs/generated *.egg-info
