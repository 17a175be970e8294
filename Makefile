# Everything runs from a virtual environment that the first target makes. See `make help`.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SUITE ?= spine
ARGS ?=
SECONDS ?= 60
KILLS ?= 20
SEED ?=
ONLY ?=

.DEFAULT_GOAL := help
.PHONY: help demo story test lint format bench fuzz load soak cluster cluster-seeds clean

help: ## Show what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F '\t' '{ printf "  make %-10s %s\n", $$1, $$2 }'

$(VENV)/installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Headwater needs Python 3.11 or later; name one with: make PYTHON=/path/to/python3.11 ..."; exit 1; }
	@echo "installing into $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[spark,serve]'
	@touch $@

$(VENV)/installed-dev: pyproject.toml $(VENV)/installed
	@echo "installing what the tests need (PySpark is large: this takes a while once) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(VENV)/installed ## Run a pipeline on a local Spark and compare every view with Spark's own answer
	@$(BIN)/headwater demo

story: $(VENV)/installed ## Run a small story in SQL, without Spark, and see what changes in each view
	@$(BIN)/python examples/shop/demo.py

test: $(VENV)/installed-dev ## Run all tests
	@$(BIN)/python -m tests.java
	@$(BIN)/python -m pytest -n 2 --dist loadgroup -q

lint: $(VENV)/installed-dev ## Check style and types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

format: $(VENV)/installed-dev ## Put the code into its canonical form
	@$(BIN)/ruff check --fix --quiet .
	@$(BIN)/ruff format --quiet .

bench: $(VENV)/installed-dev ## Measure a suite against its baselines: make bench SUITE=spine [ARGS=...]
	@$(BIN)/python -m benchmarks.run $(SUITE) $(ARGS)

fuzz: $(VENV)/installed-dev ## Compare random views with recomputation: make fuzz SECONDS=600 [SEED=n] [ONLY=parts]
	@$(BIN)/python -m tests.equivalence.fuzz --seconds $(SECONDS) $(if $(SEED),--seed $(SEED)) $(if $(ONLY),--only $(ONLY))

load: $(VENV)/installed-dev ## Keep a server busy with mixed clients and check every answer: make load SECONDS=600
	@$(BIN)/python -m tests.http.load --seconds $(SECONDS)

soak: $(VENV)/installed-dev ## Read and write at full load, checking that every read sees one epoch: ten minutes
	@HEADWATER_SOAK_SECONDS=600 $(BIN)/python -m pytest -q tests/serve/test_snapshots.py

cluster: $(VENV)/installed-dev ## Run programs in tasks on two executors, and kill these and the driver: make cluster KILLS=20
	@$(BIN)/python -m tests.spark.cluster --epochs 30 --kills $(KILLS) --seeds 2
	@$(BIN)/python -m tests.spark.kills --kills $(KILLS) --tasks

cluster-seeds: $(VENV)/installed-dev ## Run the generators' fixed sets with programs in tasks on two executors
	@$(BIN)/python -m tests.spark.cluster_seeds

clean: ## Remove the virtual environment and caches
	@rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache bench-results
