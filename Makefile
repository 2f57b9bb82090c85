# Everything a newcomer needs: `make demo` and `make test` set up what they use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
ONLY ?=
MINUTES ?= 10
KILLS ?= 100

.DEFAULT_GOAL := help
.PHONY: help setup demo test check lint types bench soak clean

help:  ## show the commands
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 16

setup: $(STAMP)  ## install into .venv and compile the kernels

$(STAMP): pyproject.toml requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "flowsieve needs Python 3.11 or later; set PYTHON=..."; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV) ..."
	@$(BIN)/pip install -qq --disable-pip-version-check -r requirements.txt
	@$(BIN)/pip install -qq --disable-pip-version-check --no-deps --no-build-isolation -e .
	@echo "compiling the kernels (once; one to two minutes) ..."
	@$(BIN)/python -m flowsieve.warm
	@touch $@

demo: setup  ## a sensor network on a fat-tree: what arrives, what the network did not carry, why
	@$(BIN)/python -m flowsieve.demo

test: setup  ## all tests; those on real switches where Open vSwitch can be installed
	@scripts/system-packages
	@$(BIN)/python -m pytest -n 2 --dist worksteal -q -rs

lint: setup
	@$(BIN)/ruff format --check . && $(BIN)/ruff check .

types: setup
	@$(BIN)/mypy

check: lint types test  ## ruff, mypy strict, tests

bench: setup  ## the figures, one JSON object each; ONLY=name for one of them
	@$(BIN)/python -m benchmarks $(ONLY)

soak: setup  ## faults at random on real switches under traffic, then kills of the controller; MINUTES=10, KILLS=100, SEED=n
	@scripts/system-packages
	@status=0; \
	$(BIN)/python tests/faults/soak.py --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) || status=1; \
	$(BIN)/python tests/faults/soak_restart.py --kills $(KILLS) --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) || status=1; \
	exit $$status

clean:  ## remove what setup and the runs made
	rm -rf $(VENV) out .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
