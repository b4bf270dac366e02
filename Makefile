# The one door to the house. `make` lists what it can do.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

# compiled once: tests start hundreds of Python processes, and without byte code on disk each takes twice as long
export PYTHONDONTWRITEBYTECODE :=

BIN := .venv/bin
SOURCES := src tests testkit benchmarks demo fuzz scripts examples
PYTEST_ARGS ?=
SEED ?=
CHECKS ?=
PROCESSES ?=
TARGETS ?=
SAMPLE ?=
MINUTES ?= 120
SHORT ?=
POINTS ?=
CONNECT ?=
TARGET ?= authorizer
INPUTS ?= 5000000
VERSIONS ?=

# what `make test-quick` runs: what takes seconds is left out, and a property has fewer examples
QUICK := -m 'not slow' --hypothesis-profile=quick
QUICK_SIDES := "property: $(QUICK) tests/property" "unit-1: $(QUICK) -p testkit.parts --part=1/2 tests/unit" "unit-2: $(QUICK) -p testkit.parts --part=2/2 tests/unit"

# sides of `make test`, the longest first; `rest` is what no other names, so none is left out
# tests of clients mostly wait, and one process of the pipeline's would outlast all others on one core, so two
# processes share the files of each (`testkit/parts.py`); sides of brokers and clients go before the others
# short sides are last, so three run to the end: with two left a quarter of the cores was idle
# `fuzz` searches each target for 10 s by the clock, four at a time; KUSTOS_FUZZ_S=60 as in CI takes two
# minutes of all that other sides leave
LONG_SIDES := 'pipeline-1: NICE=5 -p testkit.parts --part=1/2 tests/pipeline' 'pipeline-2: NICE=5 -p testkit.parts --part=2/2 tests/pipeline' 'clients-2: -p testkit.parts --part=2/2 tests/e2e' 'clients-1: -p testkit.parts --part=1/2 tests/e2e'
CONNECT_SIDE := 'connect: NICE=5 KUSTOS_TEST_SPARK=connect-short tests/pipeline'
REST := tests --ignore=tests/conformance --ignore=tests/e2e --ignore=tests/fuzz --ignore=tests/pipeline --ignore=tests/quorum
REST_SIDES := 'rest-1: NICE=5 -p testkit.parts --part=1/2 $(REST)' 'rest-2: NICE=5 -p testkit.parts --part=2/2 $(REST)'
SHORT_SIDES := 'brokers: tests/conformance' $(REST_SIDES) 'fuzz: NICE=5 tests/fuzz' 'quorum: tests/quorum'

# what `scripts/setup` knows; each target names the one that has all it uses
SETUPS := setup-python setup-demo setup-bench setup-differential setup-faults setup-fuzz setup-score-anomalies

.PHONY: $(SETUPS) help setup demo test test-quick test-connect test-python check bench docs differential fuzz fuzz-soak mutation simulation faults score-anomalies soak lock clean

help: ## list the targets
	@grep -E '^[a-z%-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 22

setup: ## install all that tests need; each other target installs what it uses itself, `scripts/setup --print demo` lists it
	@scripts/setup

$(SETUPS): setup-%:
	@scripts/setup $*

demo: setup-demo ## show a guarded Kafka, start to report
	@$(BIN)/python -m demo

test: setup ## run every test, four pytest at a time; SEED=s draws as that run did; CONNECT=1 adds test-connect SHORT=1; PYTEST_ARGS=... goes to one
ifeq ($(strip $(PYTEST_ARGS)),)
	@KUSTOS_SEED=$(SEED) $(BIN)/python scripts/side_by_side.py $(LONG_SIDES) $(if $(CONNECT),$(CONNECT_SIDE)) $(SHORT_SIDES)
else
	@KUSTOS_SEED=$(SEED) $(BIN)/python -m pytest $(PYTEST_ARGS)
endif

test-quick: setup ## run unit tests and properties without what is slow, in less than two minutes of two idle cores
	@KUSTOS_SEED=$(SEED) $(BIN)/python scripts/side_by_side.py $(QUICK_SIDES)

test-connect: setup ## run the tests of the pipeline over a Spark Connect server; SHORT=1 leaves long ones out
	@KUSTOS_TEST_SPARK=connect$(if $(SHORT),-short) $(BIN)/python -m pytest tests/pipeline $(PYTEST_ARGS)

test-python: setup-python ## run the unit and property tests on each Python from 3.11 to 3.14 that is found; VERSIONS=... for some
	@scripts/test_pythons $(VERSIONS)

check: setup-python ## lint, format, types, import contracts
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy $(SOURCES)
	$(BIN)/lint-imports

bench: $(patsubst benchmarks/%.py,bench-%,$(filter-out %/__init__.py %/figures.py %/flames.py,$(wildcard benchmarks/*.py))) ## run every benchmark

bench-%: setup-bench ## run one benchmark, as bench-authorizer
	@$(BIN)/python -m benchmarks.$*

docs: setup-python ## build the documentation into site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "site/index.html"

differential: setup-differential ## compare with Kafka's own authorizer; CHECKS=n for more, SEED=s repeats a run
	@KUSTOS_SEED=$(SEED) KUSTOS_CHECKS=$(CHECKS) KUSTOS_PROCESSES=$(PROCESSES) $(BIN)/python -m pytest -s --timeout=0 tests/differential $(PYTEST_ARGS)

fuzz: setup-fuzz ## search, guided by coverage, for inputs that break a property; TARGET=frames (authorizer) MINUTES=m SEED=s
	@$(BIN)/python -m fuzz $(TARGET) -max_total_time=$$(($(MINUTES) * 60)) $(if $(SEED),-seed=$(SEED))

fuzz-soak: setup-fuzz ## search all that anybody can send for long; INPUTS=n SEED=s; adds to soak/fuzz.md
	@$(BIN)/python -m fuzz.searching --inputs $(INPUTS) $(if $(SEED),--seed $(SEED))

score-anomalies: setup-score-anomalies ## print precision and recall of the anomaly detectors on stories that were made for it
	@$(BIN)/python -m testkit.incident_scores

mutation: setup ## break the authorizer line by line and ask the tests; TARGETS=acl SAMPLE=n faults a module or SHARE=percent SEED=s
	@$(BIN)/python scripts/mutation.py $(TARGETS) $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(SHARE),--share $(SHARE)) $(if $(SEED),--seed $(SEED))

simulation: setup-python ## crash the metadata log on a simulated disk; POINTS=n SEED=s; adds to soak/simulations.md
	@$(BIN)/python -m tests.simulation $(if $(POINTS),--points $(POINTS)) $(if $(SEED),--seed $(SEED))

faults: setup-faults ## kill, pause, cut and slow under load; MINUTES=30 SEED=s; adds to soak/faults.md
	@$(BIN)/python -m testkit.faults --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

soak: setup-differential ## compare and test properties for long; CHECKS=n MINUTES=m SEED=s; adds to soak/results.md
	@$(BIN)/python scripts/soak.py $(if $(CHECKS),--checks $(CHECKS)) --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

lock: setup-python ## compile requirements/ anew from pyproject.toml
	@scripts/lock

clean: ## remove everything that was built or downloaded
	rm -rf .venv .cache site demo-out .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
