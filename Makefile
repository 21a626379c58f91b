# make demo      runs kernels on two GPUs and compares them; works on a fresh machine
# make check     the tests for while you write: some minutes
# make test      the test suite: at least one test of everything
# make test-all  what CI runs: make test, then more sizes, modes and combinations, which take as long again
# make lint      style and types
# make docs      the documentation as a site, in build/site
# make tutorial  plays docs/tutorial.md in a fresh clone, with the time of each command
# make ptx       compiles the kernels' CUDA C again (needs nvcc; nothing else does)

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
PYTEST := $(BIN)/python -m pytest -n auto --dist worksteal --durations 25
# Bytecode that is not kept is made again in each of the hundreds of processes that tests start.
unexport PYTHONDONTWRITEBYTECODE
DEMO := saxpy reduction transpose-columns transpose-padded hotspot spmv sgemm

demo: $(VENV)/.installed
	@mkdir -p out
	@echo "Seven kernels on two GPUs, every result checked against NumPy."
	@echo "The first run compiles the model: 2 to 8 minutes, by the speed of the machine."
	@$(BIN)/lockstep compare $(DEMO) --gpu gtx480 --gpu gtx980 --json out/demo.json
	@echo "Next: $(BIN)/lockstep run spmv, or see README.md"

check: $(VENV)/.developer
	$(PYTEST) -m check

test: $(VENV)/.developer
	$(PYTEST) -m 'not exhaustive'

test-all: test
	$(PYTEST) -m exhaustive

lint: $(VENV)/.developer
	$(BIN)/ruff check
	$(BIN)/mypy --num-workers auto

# Not --quiet: --strict counts only the warnings that are printed.
docs: $(VENV)/.developer
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

tutorial: $(VENV)/.developer
	$(BIN)/python -m lockstep.verif.tutorial

ptx:
	$(MAKE) -C sim/kernels ptx

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit("lockstep needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: setup.py pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Installing into $(VENV)."
	@$(PIP) --editable .
	@touch $@

$(VENV)/.developer: setup.py pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Installing into $(VENV), with what the tests need."
	@$(PIP) --editable '.[dev,cuda,docs]'
	@touch $@ $(VENV)/.installed

.PHONY: demo check test test-all lint docs tutorial ptx
