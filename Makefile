# What you can do here: `make` lists it. `make demo` and `make test` set up everything they need by themselves.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUST_SOURCES := Cargo.toml Cargo.lock $(shell find crates -name '*.rs' -o -name Cargo.toml)
export VIRTUAL_ENV := $(abspath $(VENV))
export PATH := $(abspath $(BIN)):$(PATH)

.DEFAULT_GOAL := help
.PHONY: help setup demo study test lint format rust-test python-test determinism quick-study bench reference clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

$(VENV)/ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Narrows needs Python 3.11 or later; try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 2; }
	@command -v cargo >/dev/null || { echo "Narrows needs Rust (cargo) 1.88 or later"; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python tools/install_dependencies.py
	touch $@

$(VENV)/built: $(VENV)/ready $(RUST_SOURCES)
	maturin develop --release --locked --skip-install --quiet
	$(BIN)/pip install --quiet --no-build-isolation --no-deps --editable .
	touch $@

setup: $(VENV)/built ## Build the simulator and install the `narrows` command into .venv

demo: setup ## Run the first study in small and write its report (results/demo/report.html)
	$(BIN)/narrows study brf --quick --out results/demo

study: setup ## Run the BRF study in full: 10 seeds
	$(BIN)/narrows study brf --out results/brf

test: lint rust-test python-test determinism ## Run everything that CI runs

lint: setup ## Formatting, clippy, ruff, mypy
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	$(BIN)/ruff format --check python tests benches tools
	$(BIN)/ruff check python tests benches tools
	$(BIN)/mypy

format: setup ## Format all code
	cargo fmt --all
	$(BIN)/ruff format python tests benches tools
	$(BIN)/ruff check --fix-only python tests benches tools

# What fails must fail again: the properties draw the same cases each time (explore with another seed, or none).
PROPTEST_RNG_SEED ?= 1
export PROPTEST_RNG_SEED

rust-test: ## Rust tests: units, vectors, properties, behaviour snapshots
	cargo test --workspace --locked --quiet

python-test: setup ## Python tests, the browser's included if there is one
	$(BIN)/pytest tests/python

determinism: setup ## The quick study on one thread and on two: the same bytes
	$(BIN)/python tools/determinism.py

bench: setup ## Measure speed beside ns-3 (libns3-dev) and print the table
	$(BIN)/python benches/run.py

reference: setup ## Refill the generated parts of docs/ and the JSON schema
	$(BIN)/narrows schema > python/narrows/scenario/schema.json
	$(BIN)/python tools/reference.py

clean: ## Remove what was built
	rm -rf target $(VENV) results python/narrows/*.so
