# setup: a local environment     demo: train and use a translator     test: what every change must pass
# lint: the quick part of test   test-full: the slow tests too        clean: remove what these made
.PHONY: setup demo test test-full lint clean
.DEFAULT_GOAL := setup

PYTHON ?= python3
BIN := .venv/bin

# Inside the environment, so that removing one removes the other.
STAMP := .venv/.setup-stamp

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo 'make: $(PYTHON) is missing or older than 3.11; install a newer one, or name it: make PYTHON=python3.12' >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo 'make: $(PYTHON) cannot make virtual environments; install its venv package (Debian: apt install python3-venv)' >&2; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv
	@echo 'Setting up .venv; the first time this downloads torch and takes a few minutes.'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[test]'
	@touch $@

demo: setup
	$(BIN)/dragoman demo

lint: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

test: lint
	$(BIN)/python -m pytest -m 'not full'

test-full: lint
	$(BIN)/python -m pytest

clean:
	rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
