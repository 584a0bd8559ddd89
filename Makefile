# Two targets matter: `make demo` and `make test`. Both need only Python >= 3.11 and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q
# pip compiles what it installs, but not an editable checkout
COMPILE := $(BIN)/python -m compileall -q planner
JOBS ?= 2

.PHONY: demo test install install-test lint types check schema calibrate validation docs clean

demo: install
	$(BIN)/plan solve scenarios/llama.yaml
	@echo
	@echo "Next, a plan of your own:"
	@echo "  . $(BIN)/activate"
	@echo "  plan init mine.yaml       nine questions at most, then: plan solve mine.yaml"
	@echo "  plan                      says at any time what to do next; README.md walks on from here"

test: install-test lint types check

install: $(VENV)/.installed

install-test: $(VENV)/.installed-test

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "plan needs Python 3.11 or newer: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install -c constraints.txt -e .
	$(COMPILE)
	touch $@

$(VENV)/.installed-test: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install -c constraints.txt -e '.[test]'
	$(PIP) install -c constraints.txt --no-deps skypilot # for its schema of tasks; the rest of it is not imported
	$(COMPILE)
	touch $@ $(VENV)/.installed

lint:
	$(BIN)/ruff check planner tests benchmarks docs/generate docs/pictures.py
	$(BIN)/ruff format --check planner tests benchmarks docs/generate docs/pictures.py

types:
	$(BIN)/mypy

check:
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile

# the constants that ship, from the rows that ship; then the errors that they show, and what `make test` accepts
calibrate: install
	$(BIN)/plan calibrate training --out hardware/calibration/training.yaml
	$(BIN)/plan calibrate serving --out hardware/calibration/serving.yaml

validation: install
	$(BIN)/python -m planner.report.validation_document

# the pages of docs/ that are made from code; `make test` fails when one is stale
docs: install
	$(BIN)/python docs/generate

clean:
	rm -rf build dist .plan .pytest_cache .mypy_cache .ruff_cache .hypothesis
