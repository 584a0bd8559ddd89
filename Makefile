# Two targets matter: `make demo` and `make test`. Both need only Python >= 3.11 and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# pip compiles what it installs, but not an editable checkout
COMPILE := $(BIN)/python -m compileall -q planner
JOBS ?= 2
DIST ?= loadfile
# files in the order of tests/conftest.py, the dear ones first; what was compiled is kept, wherever that is switched off
PYTEST = PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n $(JOBS) --no-loadscope-reorder

.PHONY: demo test install install-test lint types check campaign soak coverage lines floors calibrate validation docs site clean

demo: install
	$(BIN)/plan solve scenarios/llama.yaml
	@echo
	@echo "Next, a plan of your own:"
	@echo "  . $(BIN)/activate"
	@echo "  plan init mine.yaml       nine questions at most, then: plan solve mine.yaml"
	@echo "  plan                      says at any time what to do next; README.md walks on from here"

# mypy runs on one core beside the tests; both come to their end, and one that fails fails the target
test: install-test lint
	$(MAKE) --no-print-directory -j 2 types check

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
	$(PIP) install -c constraints.txt -e '.[test,docs]'
	$(PIP) install -c constraints.txt --no-deps skypilot # for its schema of tasks; the rest of it is not imported
	$(COMPILE)
	touch $@ $(VENV)/.installed

lint:
	$(BIN)/ruff check planner tests benchmarks docs/generate docs/pictures.py
	$(BIN)/ruff format --check planner tests benchmarks docs/generate docs/pictures.py

types:
	$(BIN)/mypy

check:
	$(COMPILE)
	$(PYTEST) --dist $(DIST)

# the long tests (tests/tiers.py), none begun after so many seconds; `make soak` runs them to the end, with other random inputs each time
CAMPAIGN_S ?= 900
campaign: install-test
	PLAN_TESTS=campaign PLAN_TESTS_SECONDS=$(CAMPAIGN_S) $(PYTEST) --dist worksteal

soak: install-test
	PLAN_TESTS=soak $(PYTEST) --dist worksteal

# the default tests with branches counted, which takes nearly three times as long, and a floor for each room
coverage: install-test
	$(COMPILE)
	$(PYTEST) --dist $(DIST) --cov --cov-report=
	$(MAKE) --no-print-directory floors

# the same with lines alone, by the interpreter's own events: of Python 3.12 or newer, and hardly slower than without
lines: install-test
	$(COMPILE)
	COVERAGE_CORE=sysmon PLAN_BRANCHES=false $(PYTEST) --dist $(DIST) --cov --cov-report=

floors:
	$(BIN)/python benchmarks/coverage_floors.py

# the constants that ship, from the rows that ship; then the errors that they show, and what `make test` accepts
calibrate: install
	$(BIN)/plan calibrate training --out hardware/calibration/training.yaml
	$(BIN)/plan calibrate serving --out hardware/calibration/serving.yaml

validation: install
	$(BIN)/python -m planner.report.validation_document

# the pages of docs/ that are made from code; `make test` fails when one is stale
docs: install
	$(BIN)/python docs/generate

# the same pages to search through, with an API reference; warnings are errors
site: $(BIN)/python
	$(PIP) install -q -c constraints.txt -e '.[docs]'
	$(BIN)/python -m sphinx -b html -q -W --keep-going docs build/site
	@echo "open build/site/index.html"

clean:
	rm -rf build dist .plan .coverage .pytest_cache .mypy_cache .ruff_cache .hypothesis
