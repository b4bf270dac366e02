# Every task of the project. `make` lists the targets.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

# tests start hundreds of Python processes; without byte code on disk each one takes twice as long
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

# `make test-quick` leaves out slow tests and draws fewer examples for each property
QUICK := -m 'not slow' --hypothesis-profile=quick
QUICK_JOBS := "property: $(QUICK) tests/property" "unit-1: $(QUICK) -p testkit.parts --part=1/2 tests/unit" "unit-2: $(QUICK) -p testkit.parts --part=2/2 tests/unit"

# jobs of `make test`, the longest first; `rest` covers every folder that no other job names
# two processes share the files of the pipeline and of the clients (`testkit/parts.py`): client tests mostly wait,
# and a single pipeline process would outlast all others; broker and client jobs run at a higher priority
# short jobs come last so that three run until the end: with only two, a quarter of the processor time was idle
# `fuzz` searches each target for 10 s, four targets at a time; CI sets KUSTOS_FUZZ_S=60, which takes two minutes
LONG_JOBS := 'pipeline-1: NICE=5 -p testkit.parts --part=1/2 tests/pipeline' 'pipeline-2: NICE=5 -p testkit.parts --part=2/2 tests/pipeline' 'clients-2: -p testkit.parts --part=2/2 tests/e2e' 'clients-1: -p testkit.parts --part=1/2 tests/e2e'
CONNECT_JOB := 'connect: NICE=5 KUSTOS_TEST_SPARK=connect-short tests/pipeline'
REST := tests --ignore=tests/conformance --ignore=tests/e2e --ignore=tests/fuzz --ignore=tests/pipeline --ignore=tests/quorum
REST_JOBS := 'rest-1: NICE=5 -p testkit.parts --part=1/2 $(REST)' 'rest-2: NICE=5 -p testkit.parts --part=2/2 $(REST)'
# a few tests run again with older releases of Kafka (`testkit/versions.py`)
RELEASE_JOBS := 'previous: KUSTOS_TEST_KAFKA=previous tests/conformance/test_gateway_equals_broker_at_the_edges.py tests/quorum/test_following.py tests/e2e/test_java_tools.py' 'oldest: KUSTOS_TEST_KAFKA=oldest tests/quorum/test_following.py'
SHORT_JOBS := 'brokers: tests/conformance' $(REST_JOBS) 'fuzz: NICE=5 tests/fuzz' 'quorum: tests/quorum' $(RELEASE_JOBS)

# the sets that `scripts/setup` can install; each target depends on the set that it uses
SETUPS := setup-python setup-demo setup-bench setup-differential setup-faults setup-fuzz setup-score-anomalies

.PHONY: $(SETUPS) help setup demo test test-quick test-connect test-python check bench docs differential fuzz fuzz-soak mutation simulation faults score-anomalies soak lock clean

help: ## list the targets
	@grep -E '^[a-z%-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 22

setup: ## install what the tests need; other targets install what they use (see `scripts/setup --print demo`)
	@scripts/setup

$(SETUPS): setup-%:
	@scripts/setup $*

demo: setup-demo ## show a guarded Kafka from start-up to report
	@$(BIN)/python -m demo

test: setup ## run every test, four processes at a time; SEED=s repeats a run's draws, CONNECT=1 adds test-connect SHORT=1, PYTEST_ARGS=... runs one pytest with these arguments
ifeq ($(strip $(PYTEST_ARGS)),)
	@KUSTOS_SEED=$(SEED) $(BIN)/python scripts/run_tests.py $(LONG_JOBS) $(if $(CONNECT),$(CONNECT_JOB)) $(SHORT_JOBS)
else
	@KUSTOS_SEED=$(SEED) $(BIN)/python -m pytest $(PYTEST_ARGS)
endif

test-quick: setup ## run unit and property tests without the slow ones, in under two minutes on two idle cores
	@KUSTOS_SEED=$(SEED) $(BIN)/python scripts/run_tests.py $(QUICK_JOBS)

test-connect: setup ## run the pipeline tests over a Spark Connect server; SHORT=1 leaves out the long ones
	@KUSTOS_TEST_SPARK=connect$(if $(SHORT),-short) $(BIN)/python -m pytest tests/pipeline $(PYTEST_ARGS)

test-python: setup-python ## run unit and property tests on each installed Python from 3.11 to 3.14; VERSIONS=... selects some
	@scripts/test_pythons $(VERSIONS)

check: setup-python ## check lint, format, types and import contracts
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy $(SOURCES)
	$(BIN)/lint-imports

bench: $(patsubst benchmarks/%.py,bench-%,$(filter-out %/__init__.py %/figures.py %/flames.py,$(wildcard benchmarks/*.py))) ## run every benchmark

bench-%: setup-bench ## run one benchmark, for example bench-authorizer
	@$(BIN)/python -m benchmarks.$*

docs: setup-python ## build the documentation into site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "site/index.html"

differential: setup-differential ## compare decisions with Kafka's own authorizer; CHECKS=n, SEED=s repeats a run
	@KUSTOS_SEED=$(SEED) KUSTOS_CHECKS=$(CHECKS) KUSTOS_PROCESSES=$(PROCESSES) $(BIN)/python -m pytest -s --timeout=0 tests/differential $(PYTEST_ARGS)

fuzz: setup-fuzz ## search by coverage for inputs that break a property; TARGET=frames (default authorizer) MINUTES=m SEED=s
	@$(BIN)/python -m fuzz $(TARGET) -max_total_time=$$(($(MINUTES) * 60)) $(if $(SEED),-seed=$(SEED))

fuzz-soak: setup-fuzz ## fuzz every target with INPUTS=n inputs; SEED=s; appends to soak/fuzz.md
	@$(BIN)/python -m fuzz.searching --inputs $(INPUTS) $(if $(SEED),--seed $(SEED))

score-anomalies: setup-score-anomalies ## print precision and recall of the anomaly detectors on labeled incidents
	@$(BIN)/python -m testkit.incident_scores

mutation: setup ## mutate modules and check that a test fails; TARGETS=acl, SAMPLE=n mutants a module or SHARE=percent, SEED=s
	@$(BIN)/python scripts/mutation.py $(TARGETS) $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(SHARE),--share $(SHARE)) $(if $(SEED),--seed $(SEED))

simulation: setup-python ## crash the metadata log on a simulated disk; POINTS=n SEED=s; appends to soak/simulations.md
	@$(BIN)/python -m tests.simulation $(if $(POINTS),--points $(POINTS)) $(if $(SEED),--seed $(SEED))

faults: setup-faults ## kill, pause, cut off and slow down nodes under load; MINUTES=30 SEED=s; appends to soak/faults.md
	@$(BIN)/python -m testkit.faults --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

soak: setup-differential ## compare with Kafka and test properties for MINUTES=m; CHECKS=n SEED=s; appends to soak/results.md
	@$(BIN)/python scripts/soak.py $(if $(CHECKS),--checks $(CHECKS)) --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

lock: setup-python ## recompile requirements/ from pyproject.toml
	@scripts/lock

clean: ## remove everything built or downloaded
	rm -rf .venv .cache site demo-out .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
