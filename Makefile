# setup: a local environment     demo: train and use a translator     test: what every change must pass
# lint: the quick part of test   test-full: the slow tests too        clean: remove what these made
# docs: the site, in site/       coverage: which lines and branches the tests of `make test` reach
# bench: us and the peers side by side (an hour)                      bench-quality: time to quality (half an hour)
.PHONY: setup demo test test-full lint browser docs coverage bench bench-quality clean
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

# The page is tested in a real browser.
browser:
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || test -x "$$CHROMIUM" || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo 'Installing chromium for the tests of the page.'; \
	    { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq -y install chromium; } >/dev/null; \
	  else \
	    echo 'make: no Chromium to test the page in; install it (Debian: apt install chromium), or name it: make CHROMIUM=/path test' >&2; \
	    exit 1; \
	  fi; }

# A worker a core, of one thread each; a file's tests stay together, as they share what they made.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto --dist loadfile

test: lint browser
	$(PYTEST) -m 'not full'

test-full: lint browser
	$(PYTEST)

# By branch, in child processes too (pyproject.toml); the pages with every line are in build/coverage.
coverage: setup browser
	$(PYTEST) -m 'not full' --cov --cov-report=html:build/coverage --cov-report=term:skip-covered

# Links and anchors are checked; what is there needs no network and no server to be read.
docs: setup
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo 'The site is in site/: open site/index.html'

# The peers are installed without their pinned dependencies, which would bring another torch; what they import is named.
BENCH := .venv-bench/bin/python
BENCH_STAMP := .venv-bench/.setup-stamp
BENCH_PIP := $(BENCH) -m pip install --quiet --disable-pip-version-check --constraint bench/constraints.txt

$(BENCH_STAMP): pyproject.toml bench/constraints.txt
	@$(BENCH) -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv-bench
	@echo 'Setting up .venv-bench; the first time this takes some minutes.'
	@$(BENCH_PIP) torch
	@$(BENCH_PIP) --editable . transformers matplotlib configargparse fasttext-wheel pyahocorasick pyonmttok rapidfuzz \
	  six spacy tensorboard bitarray cffi cython hydra-core omegaconf
	@$(BENCH_PIP) --no-deps OpenNMT-py
	@$(BENCH_PIP) --no-deps fairseq || echo 'make: fairseq does not install here; the bench will say so and go on' >&2
	@touch $@

# BENCH_ARGS='--run runs/multi30k-tiny' translates with that run; BENCH_SECTIONS='memory growth' runs only these.
bench: $(BENCH_STAMP)
	$(BENCH) bench/run.py $(or $(BENCH_SECTIONS),all) $(BENCH_ARGS)

bench-quality: $(BENCH_STAMP)
	$(BENCH) bench/run.py quality $(BENCH_ARGS)

clean:
	rm -rf .venv .venv-bench build dist site .coverage .coverage.* .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
