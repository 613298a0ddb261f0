# `make` lists the targets. `make demo` and `make test` install everything they need.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUST_SOURCES := Cargo.toml Cargo.lock $(shell find crates -name '*.rs' -o -name Cargo.toml)
PREREQUISITES := tools/prerequisites.py
export VIRTUAL_ENV := $(abspath $(VENV))
export PATH := $(abspath $(BIN)):$(PATH)

.DEFAULT_GOAL := help
.PHONY: help packages setup agent agent-aarch64 agent-wheel deb guest demo study test fuzz soak lint prose format wheels wheel-x86_64 wheel-aarch64 sdist sdist-builds first-result release rust-test s2n-quic crates python-test determinism bench docs reference web web-test clean
# Parts of other targets, which `make help` does not list.
.PHONY: prepare try-agent try-guest rust-lint python-lint kernel-chain rust-chain python-chain rust-builds rust-waiting-test live-test pure-test waiting-test short-soak real-time-test

help: ## List the targets
	@grep -hE '^[a-z0-9_ -]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' \
	  '{ n = split($$1, names, " "); for (i = 1; i <= n; i++) printf "  make %-13s %s\n", names[i], $$2 }'

$(VENV)/ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Narrows needs Python 3.11 or later; try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 2; }
	@command -v cargo >/dev/null || { echo "Narrows needs Rust (cargo) 1.88 or later"; exit 2; }
	@$(PYTHON) $(PREREQUISITES) require python
	test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	$(BIN)/python tools/install_dependencies.py
	touch $@

$(VENV)/built: $(VENV)/ready $(RUST_SOURCES)
	maturin develop --release --locked --skip-install --quiet
	$(BIN)/pip install --quiet --no-build-isolation --no-deps --editable .
	touch $@

setup: $(VENV)/built ## Build the simulator and install the `narrows` command into .venv

packages: ## Install all system packages that `make test` uses (Debian-based systems, as root)
	@$(PYTHON) $(PREREQUISITES) install

# As root it installs missing tools. Otherwise it prints one line with the parts that `make test` leaves out.
prepare:
	@$(PYTHON) $(PREREQUISITES) prepare

# Expanded in recipes only, hence after `prepare`.
WITHOUT_AGENT = $(shell $(PYTHON) $(PREREQUISITES) has agent || echo --exclude narrows-agent --exclude narrows-fuzz)
HAS_LINTERS = $(PYTHON) $(PREREQUISITES) has lint

# A target must be named, or the flags would also go to build scripts and procedural macros, which cannot be static.
# A target folder of its own: in a shared one, cargo's lock would make the agent wait for the simulator's build.
HOST = $(shell rustc -vV | sed -n 's/^host: //p')

# An unchanged program keeps its modification time, so that the prepared guest stays valid.
agent: ## Build target/release/narrows-agent, the Linux data plane, as one static binary
	@$(PYTHON) $(PREREQUISITES) require agent
	CARGO_ENCODED_RUSTFLAGS="$$($(REMAP) -Ctarget-feature=+crt-static)" \
	  cargo build --release --locked --quiet -p narrows-agent --bin narrows-agent --target $(HOST) --target-dir target/agent
	install -D -C -m 755 target/agent/$(HOST)/release/narrows-agent target/release/narrows-agent

agent-aarch64: ## Cross-build the agent for aarch64, and its wheel into dist/
	packaging/aarch64.sh
	@$(PYTHON) packaging/agent-wheel/build.py target/aarch64-unknown-linux-gnu/release/narrows-agent dist

deb: agent ## Build the agent's Debian package into dist/
	packaging/deb/build.sh dist

agent-wheel: agent ## Build the agent's wheel, the extra `kernel` of the Python package, into dist/
	@$(PYTHON) packaging/agent-wheel/build.py target/release/narrows-agent dist

guest: setup ## Prepare the guest of `narrows run --on vm`: a kernel package, QEMU (as root), one boot
	$(BIN)/narrows vm prepare

demo: setup ## Run the BRF study with few runs and write its report (results/demo/report.html)
	$(BIN)/narrows study brf --quick --out results/demo

study: setup ## Run the full BRF study with 10 seeds
	$(BIN)/narrows study brf --out results/brf

# Each step is a sub-make: it leaves out the parts whose tools are missing after `prepare` has run. Three chains run at
# the same time, because downloads, linking, the guest's boot and tests that wait leave cores idle.
test: ## Run everything that CI runs; as root, install missing tools first
	@$(MAKE) --no-print-directory prepare
	@$(MAKE) --no-print-directory --jobs=3 --output-sync=line kernel-chain rust-chain python-chain
	@$(MAKE) --no-print-directory live-test real-time-test

kernel-chain: try-guest
	@$(MAKE) --no-print-directory waiting-test
	@$(MAKE) --no-print-directory short-soak

# Lints and builds run with low priority, because tests of the other chains have deadlines.
LOW_PRIORITY = nice -n 19
rust-chain: $(VENV)/ready
	@$(LOW_PRIORITY) $(MAKE) --no-print-directory rust-lint
	@$(LOW_PRIORITY) $(MAKE) --no-print-directory rust-builds
	@$(MAKE) --no-print-directory rust-waiting-test

# The fuzzers come last, because they share programs with `rust-builds`.
python-chain: setup
	@$(LOW_PRIORITY) $(MAKE) --no-print-directory python-lint
	@$(LOW_PRIORITY) $(MAKE) --no-print-directory pure-test
	@$(LOW_PRIORITY) $(MAKE) --no-print-directory determinism
	@$(LOW_PRIORITY) $(MAKE) --no-print-directory fuzz

try-agent:
	@if $(PYTHON) $(PREREQUISITES) has agent; then $(MAKE) --no-print-directory agent; fi

# Ordinary users cannot install QEMU; their tests use an existing guest.
try-guest: setup try-agent
	@[ "$$(id -u)" != 0 ] || $(BIN)/narrows vm prepare || { \
	  [ "$$NARROWS_REQUIRE_KERNEL" != 1 ] && echo "make test leaves out tests in a guest"; }

lint: rust-lint python-lint ## Check formatting, clippy, links of rustdoc, ruff, mypy and prose

# pyo3 asks the environment's Python for its version.
rust-lint: $(VENV)/ready
	@if $(HAS_LINTERS); then cargo fmt --all --check; fi
	@if $(HAS_LINTERS); then cargo clippy --workspace $(WITHOUT_AGENT) --all-targets --locked --quiet -- -D warnings; fi
	@if $(HAS_LINTERS); then RUSTDOCFLAGS='-D warnings' cargo doc --workspace $(WITHOUT_AGENT) --lib --no-deps --locked --quiet --features narrows-sim/arrow; fi

python-lint: setup
	$(BIN)/ruff format --check python tests benches tools packaging
	$(BIN)/ruff check python tests benches tools packaging
	$(BIN)/mypy
	@$(BIN)/python tools/prose.py --check

prose: ## Count the findings of the prose linter by file (PROSE='README.md docs': list them)
	@$(PYTHON) tools/prose.py $(PROSE)

format: setup ## Format all code
	cargo fmt --all
	$(BIN)/ruff format python tests benches tools packaging
	$(BIN)/ruff check --fix-only python tests benches tools packaging

# A fixed seed makes failures reproducible: property tests draw the same cases in each run. Set another seed to explore.
PROPTEST_RNG_SEED ?= 1
export PROPTEST_RNG_SEED

rust-test: rust-waiting-test live-test ## Rust tests: unit tests, vectors, properties, behaviour snapshots

# All but `live`. Builds of the whole workspace share dependencies; those of single crates need other features of them.
# clippy has checked the examples, so only the example that tests run is built.
RUST_TESTS = cargo test --workspace $(WITHOUT_AGENT) --locked --quiet
rust-waiting-test:
	$(RUST_TESTS) --tests
	$(RUST_TESTS) --doc

live-test:
	@! $(PYTHON) $(PREREQUISITES) has agent || cargo test --workspace --locked --quiet --test live

rust-builds:
	$(RUST_TESTS) --tests --no-run
	@! $(PYTHON) $(PREREQUISITES) has agent || cargo build --workspace --locked --quiet --example transfer
	@! $(PYTHON) $(PREREQUISITES) has agent || cargo test --workspace --locked --quiet --no-run --test live

# These tests wait for other programs, but measure nothing, so several run at once.
WAITING_TESTS = $(filter-out %/test_agents.py %/test_two_controllers.py,$(wildcard tests/python/controller/test_*.py)) \
  tests/python/kernel/test_package.py tests/python/kernel/test_vm_guest.py
# The other tests in these folders measure in real time. Of these files, two run at a time, because their flows are
# slow enough to leave a core free. Nothing else runs at the same time as the rest.
IN_PAIRS = $(patsubst %,tests/python/kernel/test_%.py,pacec programs_kernel published_kernel sdn validate_kernel)
# The soak leaves room for tests that only compute.
SHORT_SOAK = tests/python/kernel/test_short_soak.py
REAL_TIME_TESTS = tests/python/kernel tests/python/controller

FUZZ_SECONDS ?= 60
fuzz: setup ## Fuzz all parsers that strangers can reach (FUZZ_SECONDS=600: ten minutes in all)
	@$(BIN)/python tools/fuzz.py --seconds $(FUZZ_SECONDS)

soak: setup try-agent ## Agents and controllers under faults and attacks, as root (SOAK_MINUTES=60: an hour)
	$(BIN)/python tools/soak $(SOAK_MINUTES:%=--minutes %) $(SOAK_SEED:%=--seed %)

s2n-quic: ## Test the congestion controllers in s2n-quic (builds its TLS library; needs CMake)
	cargo test -p narrows-quinn --features s2n-quic --locked --quiet --test s2n_quic

python-test: pure-test waiting-test short-soak real-time-test ## Python tests (browser tests need a browser, kernel tests need root)

pure-test: setup try-agent
	$(BIN)/pytest tests/python $(REAL_TIME_TESTS:%=--ignore=%) --numprocesses=auto --dist=loadfile --no-loadscope-reorder

waiting-test: setup try-agent
	$(BIN)/pytest $(WAITING_TESTS) --numprocesses=3 --dist=loadfile

short-soak: setup try-agent
	$(BIN)/pytest $(SHORT_SOAK)

real-time-test: setup try-agent
	$(BIN)/pytest $(IN_PAIRS) --numprocesses=2 --dist=worksteal
	$(BIN)/pytest $(REAL_TIME_TESTS) $(patsubst %,--ignore=%,$(WAITING_TESTS) $(IN_PAIRS) $(SHORT_SOAK))

web: $(VENV)/ready ## Build the playground, the simulator as a web page, and the package for npm: target/web
	@$(BIN)/python tools/web.py

web-test: setup web ## Test the playground: types, style, unit tests, equal results, the page in a browser, and the package
	$(BIN)/python tools/web.py --check
	$(BIN)/pytest tests/python/test_web_engine.py tests/python/test_web_package.py tests/python/test_playground.py tests/python/test_playground_controls.py tests/python/test_play.py

crates: ## Package the crates as for crates.io, and build them; build the documentation of the libraries
	RUSTDOCFLAGS='-D warnings' cargo doc --no-deps --locked --quiet --all-features -p narrows-control -p narrows-plan -p narrows-scenario -p narrows-sim
	cargo publish --dry-run --locked --allow-dirty --workspace

determinism: setup ## Check that the quick study gives identical results on one thread and on two
	$(BIN)/python tools/determinism.py

# zig links against the glibc of manylinux2014 and for other processors. It comes from PyPI.
$(VENV)/zig: $(VENV)/ready
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt ziglang
	touch $@

# Artifacts do not contain paths of the build machine.
REMAP = packaging/rustflags.sh

wheels: wheel-x86_64 wheel-aarch64 ## Build the wheels of the Python package into dist/: x86_64 and aarch64

wheel-x86_64 wheel-aarch64: wheel-%: $(VENV)/zig web ## Build the wheel for this processor into dist/
	@! command -v rustup >/dev/null || rustup --quiet target add $*-unknown-linux-gnu
	CARGO_ENCODED_RUSTFLAGS="$$($(REMAP))" maturin build --release --locked --quiet --strip --zig --target $*-unknown-linux-gnu \
	  --compatibility manylinux2014 --target-dir target/wheels-zig --out dist

sdist: $(VENV)/ready ## Build the source distribution of the Python package into dist/
	maturin sdist --out dist

# In an empty folder: cargo takes files as old as those of an archive for built.
sdist-builds: sdist ## Build a wheel from the source distribution, as pip does where no wheel fits
	rm -rf target/sdist
	CARGO_TARGET_DIR="$(CURDIR)/target/sdist" $(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps \
	  --no-cache-dir --wheel-dir target/sdist/wheels dist/narrows-[0-9]*.tar.gz

first-result: ## Measure the time from `pip install` to the first table in a clean environment
	@$(MAKE) --no-print-directory wheel-$$(uname -m)
	$(BIN)/python tools/clean_install.py dist/narrows-*-cp311-abi3-*_$$(uname -m).whl

release: setup ## Build every artifact with checksums into dist/ (PARTS='sdist deb': only these; PARTS=--partial: all that can be built)
	@$(BIN)/python tools/release.py $(PARTS)

bench: setup ## Measure speed: the simulator beside ns-3 (libns3-dev) and htsim (HTSIM=csg-htsim/sim), the agent and, as root, its eBPF programs
	$(BIN)/python benches/run.py
	$(BIN)/python benches/htsim.py $(HTSIM)
	$(BIN)/python benches/matrix.py
	$(BIN)/python benches/throughput.py
	$(BIN)/python benches/growth.py
	$(BIN)/python benches/agent.py
	cargo bench --locked --quiet -p narrows-capture

docs: setup ## Build the documentation site (site/index.html); ARGS=--no-rust leaves out the crates
	$(BIN)/python tools/build_site.py $(ARGS)

reference: setup ## Regenerate the generated parts of docs/, the course's figures, and the JSON schema
	$(BIN)/narrows schema > python/narrows/scenario/schema.json
	$(BIN)/python tools/plan_types.py
	$(BIN)/python tools/channel_types.py
	$(BIN)/python tools/reference.py
	$(BIN)/python tools/course.py
	$(BIN)/python tools/paper_items.py

clean: ## Remove all build products and results
	rm -rf target $(VENV) dist results python/narrows/*.so
