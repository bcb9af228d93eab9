# Two commands for a fresh machine with Python 3.11 and gcc:  make demo   make test
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
CORE   := $(wildcard core/*/*.cpp core/*/*.hpp core/*/*.map) CMakeLists.txt pyproject.toml

.PHONY: help demo test test-neural test-integrations test-slow lint format bench docs site clean
help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' Makefile | sed 's/:.*## /\t/'

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip

# An editable install: Python files are read from src/, the native module is rebuilt when a core file changes.
# tools/install.py shows how far compiling is; what pip and the compiler say is in the log.
$(VENV)/.installed: $(BIN)/python $(CORE)
	@$(BIN)/python tools/install.py $(VENV)/install.log
	@touch $@

# What an extra of pyproject.toml asks for, without building the package again.
define install_extra
$(BIN)/python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']['$(1)'], sep='\n')" > $(VENV)/$(1).txt
$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement $(VENV)/$(1).txt
endef

$(VENV)/.test: $(VENV)/.installed
	$(call install_extra,test)
	@touch $@

$(VENV)/.neural: $(VENV)/.test
	$(call install_extra,test-neural)
	@touch $@

$(VENV)/.integrations: $(VENV)/.test
	$(call install_extra,test-integrations)
	@touch $@

$(VENV)/.docs: $(VENV)/.installed
	$(call install_extra,docs)
	@touch $@

$(VENV)/.lint: $(VENV)/.test
	$(call install_extra,lint)
	@touch $@

$(VENV)/.bench: $(VENV)/.test
	$(call install_extra,bench)
	@touch $@

demo: $(VENV)/.installed  ## show what crfkit can do, on bundled data (compiles first: minutes)
	$(BIN)/crfkit demo

test: $(VENV)/.test  ## the whole test suite (about 3 minutes on two cores)
	$(BIN)/python -m pytest -q -rs -n auto -m "not slow"

test-neural: $(VENV)/.neural  ## the tests of crfkit.nn and of examples/ (installs PyTorch and Triton)
	$(BIN)/python -m pytest -q -n auto tests/nn
	$(BIN)/python -m pytest -q tests/project/test_examples.py tests/project/test_docs.py -k "learns or neural.md or crfkit.nn"

test-integrations: $(VENV)/.integrations  ## the tests of reports, server, data frames, notebooks, spaCy and dask (installs them)
	$(BIN)/python -m pytest -q -n auto -m "not slow" tests/report tests/serve tests/integrations tests/project/test_site.py
	$(BIN)/python -m pytest -q -m "not slow" tests/distributed
	$(BIN)/python -m pytest -q tests/project/test_docs.py -k "dataframes or notebooks or integrations or frames or explaining or cluster or distributed"

test-slow: $(VENV)/.bench  ## the longer checks (needs the corpora)
	$(BIN)/python -m pytest -q -m slow

lint: $(VENV)/.lint  ## style and types
	$(BIN)/ruff check src tests benchmarks examples tools
	$(BIN)/ruff format --check src tests benchmarks examples tools
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run --Werror $$(git ls-files 'core/*.cpp' 'core/*.hpp')

format: $(VENV)/.lint  ## rewrite the sources in the project's style
	$(BIN)/ruff check --fix src tests benchmarks examples tools
	$(BIN)/ruff format src tests benchmarks examples tools
	$(BIN)/clang-format -i $$(git ls-files 'core/*.cpp' 'core/*.hpp')

bench: $(VENV)/.bench  ## crfkit beside python-crfsuite on the same data (needs the corpora)
	$(BIN)/python -m benchmarks.chain

docs: $(VENV)/.test  ## run every example of the README, the pages and the docstrings
	$(BIN)/python -m pytest -q tests/project/test_docs.py

site: $(VENV)/.docs  ## the documentation as a site, in build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean:  ## remove the environment and everything built
	rm -rf $(VENV) build dist
