PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test test-all check bench clean

# The stamp makes the environment once, and again when the dependencies change.
$(VENV)/ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[test]"
	touch $@

demo: $(VENV)/ready
	$(BIN)/python -m moew.paper.toy --out out

check: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: check
	$(BIN)/python -m pytest -m "not heavy" -n 2

test-all: $(VENV)/ready
	$(BIN)/python -m pytest -m heavy

clean:
	rm -rf $(VENV) build dist *.egg-info
