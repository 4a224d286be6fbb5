# Paceline's commands. `make` alone lists them.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
# One shell runs a whole recipe, so that a stopwatch can time it.
.ONESHELL:
.DEFAULT_GOAL := help
.PHONY: help setup build dist tarballs deb images sidecar-image images-python data demo smoke cluster-demo fmt lint doc \
  compile unit docker-tests experiments test test-all test-faults test-cgroup2 test-kube test-packages test-deny \
  test-images test-images-python compare-pytorch test-burn test-frameworks test-deploy test-dist check-targets \
  bench bench-sidecar bench-training bench-exec bench-reaction bench-scale bench-cluster soak results \
  check-results schemas guide pictures release-check clean

CARGO ?= cargo
PACELINE := target/release/paceline
# The folder of programs that are run from there, independent of CARGO_TARGET_DIR.
BUILD := $(CARGO) build --release --target-dir target
# The policy that the demo compares with `none`.
POLICY ?= paceline
# The length of `make soak`.
MINUTES ?= 60
# The schedules of the papers' experiments; FULL=1 adds one.
EXPERIMENTS := r-fc3 r-tr5 r-dq10 r-mix r-sp $(if $(FULL),r-fc10)
# One selection of packages and features for all development builds: with another one cargo would compile
# the same code again. All of the reporter's features but `tch`, which needs libtorch and is tested with the
# images.
ALL := --workspace --locked --features paceline-reporter/metrics,paceline-reporter/sigterm,paceline-reporter/tensorboard
DEBUG := $(or $(CARGO_TARGET_DIR),target)/debug
# The first line of a recipe: prints the seconds of its target at the end.
STOPWATCH = source tests/stopwatch.sh $@
# Tests run under nextest, which is fetched if needed; without it cargo runs the same tests.
TOOLS = command -v cargo-nextest >/dev/null || ! tools="$$(tests/tools.sh)" || PATH="$$tools:$$PATH"
# For plain cargo: the integration tests of each crate, and those of the whole system.
CRATES := allocator $(patsubst %/Cargo.toml,%,$(wildcard allocator/*/Cargo.toml)) reporter reporter/https \
  reporter/local reporter/otlp reporter/tfevents reporter/wire sidecar sidecar/grammar sidecar/lines \
  sidecar/manual sidecar/watch
UNIT_TESTS := $(foreach crate,$(CRATES),\
  $(wildcard $(crate)/tests/*.rs) $(patsubst %/main.rs,%.rs,$(wildcard $(crate)/tests/*/main.rs)))
UNIT_TARGETS := --lib --bins $(patsubst %.rs,--test %,$(notdir $(UNIT_TESTS)))
SYSTEM_TARGETS := $(shell sed -n '/^\[\[test\]\]/,/^name/ s/^name = "\(.*\)"/--test \1/p' tests/Cargo.toml)

# Some unit tests wait for timers and for other processes.
UNIT_THREADS := $(shell echo $$((3 * $$(nproc))))

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## check for Rust and Docker; on Debian, offer to install Docker
	@images/setup.sh

build: ## build the `paceline` and `paceline-sidecar` commands
	@$(STOPWATCH)
	$(BUILD) --bin paceline --bin paceline-sidecar

dist: ## the wheels and source archives of Python's packages `paceline` and `paceline-allocator`, into dist/
	@$(STOPWATCH)
	sidecar/python/dist.sh

tarballs: dist ## archives of both programs with bills of materials, and SHA256SUMS: writes dist/
	@$(STOPWATCH)
	allocator/tarballs/build.sh

deb: build ## the Debian packages of both programs: writes dist/
	@$(STOPWATCH)
	allocator/deb/build.sh

images: setup build ## build the container images
	@$(STOPWATCH)
	allocator/image.sh
	images/build.sh

sidecar-image: setup ## build the sidecar's image alone
	@$(STOPWATCH)
	sidecar/image.sh

images-python: sidecar-image ## build the images of the Python workloads: minutes, and up to 2 GB to fetch
	@$(STOPWATCH)
	images/python/build.sh

data: images ## find or fetch the training images; print their folder
	@$(STOPWATCH)
	images/data.sh

demo: images ## real training jobs under `none` and POLICY=paceline: 5 minutes once it is built
	@$(STOPWATCH)
	data="$$(images/data.sh | tail -n 1)"
	$(PACELINE) bench examples/schedules/demo.toml --data "$$data" --arm none,$(POLICY) --fresh

smoke: images ## two real training jobs for seconds under `none` and `paceline`: check that the demo works
	@$(STOPWATCH)
	data="$$(images/data.sh | tail -n 1)"
	$(PACELINE) bench examples/schedules/smoke.toml --data "$$data" --fresh

cluster-demo: images ## real jobs on a Swarm of four engines (root; PART=spread|objectives|placement|queue)
	@$(STOPWATCH)
	data="$$(images/data.sh | tail -n 1)"
	$(BUILD) --locked --bin paceline --bin cluster-demo
	target/release/cluster-demo $(PART) --data "$$data"

# A bench with a failed job still has a page; a refused or interrupted one has none.
experiments: images ## the papers' experiments, 75 minutes; continues if interrupted (FULL=1: 3 hours; REDO=1: disturbed runs again)
	@$(STOPWATCH)
	data="$$(images/data.sh | tail -n 1)"
	status=0
	$(PACELINE) bench $(EXPERIMENTS:%=examples/schedules/%.toml) --data "$$data" $(if $(FULL),--full) \
	  $(if $(REDO),--redo-spoiled) || status=$$?
	if [ "$$status" -le 1 ]; then
	  $(PACELINE) experiments $(EXPERIMENTS:%=paceline-bench/%) --commit "$$(git rev-parse --short HEAD)" \
	    -o images/EXPERIMENTS.md
	fi
	exit "$$status"

fmt: ## format the code
	$(CARGO) fmt --all
	$(CARGO) fmt --all --manifest-path images/Cargo.toml
	$(CARGO) fmt --manifest-path reporter/burn/Cargo.toml

lint: ## format and lints
	@$(STOPWATCH)
	$(CARGO) fmt --all --check
	$(CARGO) fmt --all --check --manifest-path images/Cargo.toml
	$(CARGO) clippy --all-targets $(ALL) -- -D warnings

doc: ## the documentation, without a warning
	@$(STOPWATCH)
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --no-deps $(ALL)

compile: ## compile everything that is tested here
	@$(STOPWATCH)
	$(CARGO) build --bins --tests $(ALL)

unit: compile ## unit and property tests: seconds, once they are compiled
	@$(STOPWATCH)
	$(TOOLS)
	if $(CARGO) nextest --version >/dev/null 2>&1; then
	  $(CARGO) nextest run $(ALL) --test-threads $(UNIT_THREADS) -E 'not package(paceline-system-tests)'
	else
	  $(CARGO) test $(ALL) $(UNIT_TARGETS)
	fi
	if command -v python3 >/dev/null; then
	  sidecar="$$(realpath $(DEBUG)/paceline-sidecar)"
	  (cd sidecar/python && PYTHONPATH=src PACELINE_SIDECAR="$$sidecar" python3 -m unittest discover -q -s tests)
	else
	  echo "python3 is missing: the tests of the Python package are skipped"
	fi
	$(CARGO) test --doc $(ALL)

# Tests of the programs as a whole: by nextest's filter, or the words for plain cargo. Three tests at a time,
# except those that .config/nextest.toml has alone.
define SYSTEM_TESTS
@$(STOPWATCH)
$(TOOLS)
sidecar/frameworks/bars.sh target/bars
if $(CARGO) nextest --version >/dev/null 2>&1; then
  $(DEBUG)/test-fixtures $(CARGO) nextest run $(ALL) --test-threads 3 -E 'package(paceline-system-tests) $(1)'
else
  $(DEBUG)/test-fixtures $(CARGO) test $(ALL) $(2)
fi
endef

docker-tests: compile ## tests on the real engine, and of the programs as a whole
	$(call SYSTEM_TESTS,- test(faults::),$(SYSTEM_TARGETS) -- --skip faults::)

test-faults: compile ## tests on the real engine that kill, fill, restart and contradict: minutes
	$(call SYSTEM_TESTS,& test(faults::),--test docker -- faults::)

test-cgroup2: ## tests under cgroup v2 and systemd, in a virtual machine: an hour if emulated (PART=docker|processes)
	@$(STOPWATCH)
	tests/cgroup2/run.sh "$(PART)"

test-packages: deb ## the Debian packages in a virtual machine: installed, limiting two jobs, purged
	@$(STOPWATCH)
	tests/cgroup2/packages.sh

test-kube: build ## the allocator on a real Kubernetes of two nodes (root): minutes; PART=all adds 10, the first run builds it
	@$(STOPWATCH)
	$(CARGO) build $(ALL) --bin toy-job
	tests/kube/fetch.sh
	tests/kube/tests.sh "$(or $(PART),core)" "$(PACELINE)" "$(PACELINE)-sidecar" "$(DEBUG)/toy-job"

test: ## everything but the heavy targets below
	@$(STOPWATCH)
	images/setup.sh || echo "The tests that need a Docker engine will be skipped."
	$(MAKE) --no-print-directory lint doc unit docker-tests

test-all: ## everything: hours, and gigabytes to fetch
	@$(STOPWATCH)
	$(MAKE) --no-print-directory PART=all test test-faults test-deny test-images test-images-python test-deploy test-dist \
	  check-targets test-burn test-frameworks test-cgroup2 test-packages test-kube demo check-results

test-deny: ## licences, sources and advisories of all dependencies
	@$(STOPWATCH)
	command -v cargo-deny >/dev/null || PATH="$$(tests/tools.sh):$$PATH"
	for manifest in Cargo.toml images/Cargo.toml; do
	  $(CARGO) deny --manifest-path "$$manifest" check licenses bans sources
	done
	if $(CARGO) deny fetch db >/dev/null 2>&1; then $(CARGO) deny check advisories
	else echo "advisories: skipped, cannot fetch their database from here"; fi

test-images: images ## lint and test the workloads, train briefly in their containers
	@$(STOPWATCH)
	images/test.sh

test-images-python: images-python ## train the Python workloads briefly in their containers
	@$(STOPWATCH)
	images/python/test.sh

compare-pytorch: ## the workloads' models beside PyTorch's: outputs, losses, gradients (needs torch in Python)
	@images/compare/compare.sh

test-burn: ## lint and test the reporter's adapter for Burn, which has 200 dependencies
	@$(STOPWATCH)
	$(CARGO) fmt --check --manifest-path reporter/burn/Cargo.toml
	$(CARGO) clippy --manifest-path reporter/burn/Cargo.toml --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --manifest-path reporter/burn/Cargo.toml --no-deps --locked
	$(CARGO) test --manifest-path reporter/burn/Cargo.toml --locked

test-frameworks: compile ## run the real Python frameworks again, alone and in containers; check the values read from them
	@$(STOPWATCH)
	fixtures=target/frameworks
	rm -rf "$$fixtures"
	mkdir -p "$$fixtures"
	sidecar/frameworks/run.sh --check --into "$$fixtures"
	PACELINE_FIXTURES="$$PWD/$$fixtures" $(CARGO) test $(ALL) --test frameworks
	PACELINE_FRAMEWORKS="$$(sidecar/frameworks/run.sh --environments)" \
	  $(CARGO) test $(ALL) --test docker -- frameworks

test-deploy: ## try examples/deploy and its images, as far as this machine allows
	@$(STOPWATCH)
	tests/deploy.sh

test-dist: tarballs ## install the wheels offline in fresh environments and clean containers, train; check the archives and `docker build .`
	@$(STOPWATCH)
	allocator/tarballs/test.py
	sidecar/python/test-dist.sh
	# 77: this machine lacks a part, which it has named.
	tests/dockerfile.sh || [ "$$?" = 77 ]

check-targets: ## the reporter and the sidecar for Windows, macOS and 64-bit ARM, as far as this machine can check
	@$(STOPWATCH)
	tests/targets.sh

bench: ## speed and memory of the reporter and the sidecar's parsers, speed of every policy's decision
	$(CARGO) bench --package paceline-reporter --package paceline-policy
	$(CARGO) bench --package paceline-grammar --bench parse

bench-sidecar: ## the whole sidecar: speed (beside `mtail`, if installed), memory, delay, idle CPU
	$(CARGO) bench --package paceline-sidecar --bench program

bench-reaction: ## the time from a reached target to the new quota, beside a bare `docker update`
	$(BUILD) --locked --bin paceline
	$(CARGO) bench --package paceline-system-tests --bench reaction

bench-exec: ## the cost of a job's start by `paceline exec`, beside a bare start or `systemd-run --scope` (root)
	$(BUILD) --locked --bin paceline --bin paceline-sidecar
	$(CARGO) bench --package paceline-system-tests --bench exec

bench-scale: ## the cost of the allocator beside 60 real containers and beside 1,000 simulated ones
	$(BUILD) --locked --bin paceline
	$(CARGO) bench --package paceline-system-tests --bench scale

soak: ## MINUTES=60 with 60 real containers that come and go, engine faults and hostile jobs; not part of CI
	@$(STOPWATCH)
	$(BUILD) --locked --bin paceline
	MINUTES="$(MINUTES)" $(CARGO) bench --package paceline-system-tests --bench soak

bench-cluster: ## a manager's round for 10 to 10,000 machines with 20 jobs each
	$(CARGO) bench --package paceline-cluster --bench cluster

bench-training: data ## the cost of the reporter in a real training
	@images/overhead.sh

results: ## every policy in every scenario beside the best possible: writes allocator/sim/RESULTS.md
	@$(STOPWATCH)
	$(BUILD) --locked --bin paceline
	$(PACELINE) scenarios run --markdown > target/RESULTS.md
	mv target/RESULTS.md allocator/sim/RESULTS.md

check-results: build ## check that allocator/sim/RESULTS.md is the output of `make results`
	@$(STOPWATCH)
	$(PACELINE) scenarios run --check allocator/sim/RESULTS.md

schemas: ## JSON Schemas of files and answers, and their part of the descriptions of both APIs: writes examples/schemas
	@$(STOPWATCH)
	PACELINE_BLESS=1 $(CARGO) test $(ALL) --test schemas files::every_file

guide: ## the guide as a book of HTML pages: writes target/guide
	@$(STOPWATCH)
	examples/guide/build.sh

pictures: images ## the picture in README.md, from real jobs under `none` and `paceline`: 6 minutes
	@$(STOPWATCH)
	data="$$(images/data.sh | tail -n 1)"
	$(PACELINE) bench examples/schedules/r-fc3.toml --data "$$data" --arm none,paceline --fresh \
	  --report target/pictures/report.html
	cp target/pictures/pictures/cpu.svg examples/guide/cpu.svg

release-check: ## what a release needs: versions, packages, a dry run of publishing (DIRTY=1: as it is; FINAL=1: to tag)
	@$(STOPWATCH)
	ALL="$(ALL)" tests/release-check.sh

clean: ## remove build outputs, but not the caches of libtorch and data
	$(CARGO) clean
	rm -rf images/target images/.build reporter/burn/target
