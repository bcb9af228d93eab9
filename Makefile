# Two commands for a fresh machine with Python 3.11 and gcc:  make demo   make test
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
CORE   := $(wildcard core/*.cpp core/*.hpp core/bindings/*.cpp core/bindings/*.hpp) CMakeLists.txt pyproject.toml

.PHONY: help demo test test-slow lint format bench docs clean
help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' Makefile | sed 's/:.*## /\t/'

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip

# An editable install: Python files are read from src/, the native module is rebuilt when a core file changes.
$(VENV)/.installed: $(BIN)/python $(CORE)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.test: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	@touch $@

$(VENV)/.lint: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test,lint]'
	@touch $@

$(VENV)/.bench: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test,bench]'
	@touch $@

demo: $(VENV)/.installed  ## train a part-of-speech tagger on the bundled sample and show what it does
	$(BIN)/crfkit demo

test: $(VENV)/.test  ## the whole test suite (minutes)
	$(BIN)/python -m pytest -q -m "not slow"

test-slow: $(VENV)/.test  ## the longer checks (needs the corpora)
	$(BIN)/python -m pytest -q -m slow

lint: $(VENV)/.lint  ## style and types
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run --Werror $$(git ls-files 'core/*.cpp' 'core/*.hpp')

format: $(VENV)/.lint  ## rewrite the sources in the project's style
	$(BIN)/ruff check --fix src tests benchmarks
	$(BIN)/ruff format src tests benchmarks
	$(BIN)/clang-format -i $$(git ls-files 'core/*.cpp' 'core/*.hpp')

bench: $(VENV)/.bench  ## crfkit beside python-crfsuite on the same data (needs the corpora)
	$(BIN)/python -m benchmarks.chain

docs: $(VENV)/.test  ## run every example of the README, the pages and the docstrings
	$(BIN)/python -m pytest -q tests/test_docs.py

clean:  ## remove the environment and everything built
	rm -rf $(VENV) build dist
