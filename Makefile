# Everything a newcomer needs: each command sets up what it uses, in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install -qq --disable-pip-version-check
STAMP := $(VENV)/.ready
DEMO_STAMP := $(VENV)/.demo
ONLY ?=
MINUTES ?= 10
KILLS ?= 100
STORIES ?= 2000
FAULTS ?= 200
TRANSITIONS ?= 20

.DEFAULT_GOAL := help
.PHONY: help setup demo test check lint types bench soak clean

help:  ## show the commands
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 16

setup: $(STAMP)  ## install everything into .venv and compile the kernels

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "flowsieve needs Python 3.11 or later; set PYTHON=..."; exit 1; }
	@echo "making $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)

$(STAMP): pyproject.toml requirements.txt | $(BIN)/python
	@echo "installing everything into $(VENV) (1.5 GB) ..."
	@$(PIP) -r requirements.txt
	@$(PIP) --no-deps --no-build-isolation -e .
	@echo "compiling the kernels (once; one to two minutes) ..."
	@$(BIN)/python -m flowsieve.warm
	@touch $@ $(DEMO_STAMP)

# The demo needs a fifth of what the rest does, so that it does not keep a newcomer waiting.
$(DEMO_STAMP): requirements-demo.txt | $(BIN)/python
	@echo "installing what the demo needs into $(VENV) (NumPy, Numba, Rich; 0.3 GB) ..."
	@$(PIP) --no-deps --no-compile -r requirements-demo.txt
	@touch $@

demo: $(DEMO_STAMP)  ## a sensor network on a fat-tree: what arrives, what the network did not carry, why
	@PYTHONPATH=src $(BIN)/python -m flowsieve.demo

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

soak: setup  ## faults at random on real switches, kills of the controller, of those that share an etcd, transitions, the loop, stories; MINUTES=10, KILLS=100, FAULTS=200, TRANSITIONS=20, STORIES=2000, SEED=n
	@scripts/system-packages
	@status=0; \
	$(BIN)/python tests/faults/soak.py --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) || status=1; \
	$(BIN)/python tests/faults/soak_restart.py --kills $(KILLS) --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) || status=1; \
	$(BIN)/python tests/faults/soak_takeover.py --faults $(FAULTS) --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) || status=1; \
	$(BIN)/python tests/faults/soak_transition.py --transitions $(TRANSITIONS) --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) || status=1; \
	$(BIN)/flowsieve loop --seconds 10 --out out/loop || status=1; \
	$(BIN)/python tests/faults/soak_stories.py --stories $(STORIES) --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) || status=1; \
	exit $$status

clean:  ## remove what setup and the runs made
	rm -rf $(VENV) out .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
