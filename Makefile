# Mobula. `make help` lists the targets.
GO       ?= go
BIN      := bin
PKGS     ?= ./...

# The steps of the gate. TRIES says how often what may fail by chance is tried: downloads, and tests that failed. The gate itself, .ci/run,
# says 3.
GATE     := $(GO) run ./internal/tools/gate
TRIES    ?= 1
export TRIES

# Of the stress tests; the time bounds one package. Each repeat has a MOBULA_TEST_SEED of its own, SEED and its number, which make prints with its
# command.
STRESS_COUNT ?= 5
STRESS_TIME  ?= 30m
ifndef SEED
SEED := $(shell date +%s)
endif

# Of the demo; every combination finishes, only the time differs.
SIZE       ?= 2GiB
STORE      ?= 512MiB
PARTITIONS ?= 100
WORKERS    ?= 2

# Of the demo over nodes: each node's store, and the first node's port.
CLUSTER_STORE ?= 256MiB
CLUSTER_PORT  ?= 7710

# The Python SDK: its virtual environment, made by make python. PYTHON names an interpreter; without it the first of the usual names
# that will do is taken. With REQUIRE_PYTHON set, make test fails where there is none. The tests' files are shared out among
# PYTEST_JOBS processes; with 1, pytest runs them itself.
PYTHON ?=
VENV   := .venv
PYTEST_JOBS ?= 2
export PYTHON PYTEST_JOBS

LINT     := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.6.2

.DEFAULT_GOAL := help
.PHONY: help build demo demo-cluster test gotest python wheel pytest mypy pytest-newest dask-suite joblib-suite dask-ml set-index-sweep race soak life upgrade deep stress fuzz fetch lint api ruff bench bench-compare bench-peers sim cover docs generate clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-12s %s\n", $$1, $$2}'
	@echo "  demo takes SIZE=$(SIZE) STORE=$(STORE) PARTITIONS=$(PARTITIONS) WORKERS=$(WORKERS)"

build: ## one static binary, bin/mobula
	CGO_ENABLED=0 $(GO) build -trimpath -o $(BIN)/mobula ./cmd/mobula
	@$(GO) run ./internal/tools/checkstatic $(BIN)/mobula

demo: ## sort generated data four times larger than the object store
	CGO_ENABLED=0 $(GO) build -trimpath -o $(BIN)/sort ./samples/sort
	$(BIN)/sort -size $(SIZE) -store $(STORE) -partitions $(PARTITIONS) -workers $(WORKERS)

demo-cluster: build ## the same over three nodes of a local cluster, which have half a store each
	CGO_ENABLED=0 $(GO) build -trimpath -o $(BIN)/sort ./samples/sort
	@dir=$$(mktemp -d) && trap '$(BIN)/mobula cluster stop --dir $$dir; rm -rf $$dir' EXIT && \
	$(BIN)/mobula cluster local --nodes 3 --cpus 1 --store-size $(CLUSTER_STORE) --dir $$dir --port $(CLUSTER_PORT) --detach && \
	MOBULA_ADDRESS=$$dir/n1 $(BIN)/sort -size $(SIZE) -store $(CLUSTER_STORE) -partitions $(PARTITIONS) -workers 3

test: ## everything, checked: the Go half, then the Python half where there is Python 3.11 or later; each step's time at the end
	@if sh python/interpreter.sh >/dev/null; then \
		$(MAKE) --no-print-directory python && $(GATE) vet types packages processes docs python peers; \
	elif [ -n "$$REQUIRE_PYTHON" ]; then \
		echo "make test: REQUIRE_PYTHON is set, and there is no Python for the Python half" >&2; exit 1; \
	else \
		$(MAKE) --no-print-directory gotest && \
		echo "make test: the Go half has passed. The Python half was NOT run: it needs what is said above." >&2; \
	fi

gotest: ## the Go half: vet and all tests (needs only Go and make; calls between the languages are tested where make python was)
	$(GATE) vet packages processes docs

python: build ## a virtual environment, .venv, with the Python SDK (needs Python 3.11 or later with venv and pip)
	@.ci/try sh python/venv.sh $(VENV)
	@.ci/try $(VENV)/bin/python python/tests/suites/bring.py
	@mkdir -p python/mobula/bin && ln -sf ../../../$(BIN)/mobula python/mobula/bin/mobula

wheel: python ## dist/*.whl: the Python package with the executable of this machine's kind inside
	$(VENV)/bin/python python/build_wheel.py $(BIN)/mobula dist

pytest: python ## the Python half, the SDK and the benchmarks beside peers: types and tests
	$(GATE) types python peers

mypy: python ## mypy, over the Python code
	cd python && ../$(VENV)/bin/python -m mypy
	cd python && ../$(VENV)/bin/python -m mypy ../samples/python/*.py
	cd benchmarks/peers && ../../$(VENV)/bin/python -m mypy

pytest-newest: build ## the SDK's tests on the newest Python that the machine has or uv can load, in an environment of its own; ARGS names tests
	@mkdir -p .cache python/mobula/bin && ln -sf ../../../$(BIN)/mobula python/mobula/bin/mobula
	@python=$$(sh python/newest.sh) && PYTHON=$$python sh python/venv.sh .cache/newest
	cd python && MOBULA_BINARY=$(CURDIR)/$(BIN)/mobula ../.cache/newest/bin/python -m pytest -q -n $(PYTEST_JOBS) --dist loadfile $(ARGS)

dask-suite: python ## Dask's own tests under our scheduler, held against its own; goes on where it was, ARGS=--help says more
	@sh python/venv.sh $(VENV) python/dask_suite/requirements.txt
	cd python && MOBULA_BINARY=$(CURDIR)/$(BIN)/mobula ../$(VENV)/bin/python -m dask_suite $(ARGS)

joblib-suite: python ## joblib's own tests of Parallel, with our backend among theirs
	cd python && MOBULA_BINARY=$(CURDIR)/$(BIN)/mobula PYTHONPATH=tests ../$(VENV)/bin/python -m pytest -q -W ignore -p suites.joblib_plugin --pyargs joblib.test.test_parallel

dask-ml: build ## the slides' example of Dask-ML, in a virtual environment of its own, as that brings Dask's own cluster
	@mkdir -p .cache
	@sh python/venv.sh .cache/dask-ml python/tests/suites/dask_ml_requirements.txt
	cd python && MOBULA_BINARY=$(CURDIR)/$(BIN)/mobula ../.cache/dask-ml/bin/python -m pytest -q tests/suites/of_dask_ml.py

set-index-sweep: python ## a data frame of 2 GiB sorted with few and many partitions, stores and workers; ARGS=--help says more
	cd python && MOBULA_BINARY=$(CURDIR)/$(BIN)/mobula ../$(VENV)/bin/python benchmarks/set_index_sweep.py $(ARGS)

race: ## all tests under the race detector, with invariants (needs a C compiler)
	CGO_ENABLED=1 $(GO) test -race -tags invariants -timeout 30m $(PKGS)

stress: python ## the fault tests, full size, Go's STRESS_COUNT times (default 5) with seeds of SEED (default a new number), within STRESS_TIME (default 30m)
	MOBULA_STRESS=1 MOBULA_TEST_SEED=$(SEED) CGO_ENABLED=0 $(GO) test -count 1 -timeout $(STRESS_TIME) -run 'Promises|Mutants' ./internal/world
	$(foreach n,$(shell seq $(STRESS_COUNT)),$(call repeat,$(n)))
	cd python && MOBULA_STRESS=1 MOBULA_BINARY=$(CURDIR)/$(BIN)/mobula ../$(VENV)/bin/python -m pytest -q tests/test_faults.py tests/test_nested.py

# A line of stress, for the repeat of a number.
define repeat
MOBULA_STRESS=1 MOBULA_TEST_SEED=$(SEED)$(1) CGO_ENABLED=0 $(GO) test -count 1 -timeout $(STRESS_TIME) -run 'Fault|Crash|Kill|Chaos|Stress|Lanes|Quicksort' $(PKGS)

endef

soak: ## 30 minutes of short jobs under kills of workers, after which the node holds what it held before; SOAK=10m says otherwise
	MOBULA_SOAK=$(or $(SOAK),30m) CGO_ENABLED=0 $(GO) test -count 1 -timeout 3h -v -run TestSoak ./e2e/restarts

upgrade: build ## a cluster of the last release is replaced by this tree's node by node, while a program of that release sorts
	@rm -rf .cache/previous && mkdir -p .cache/previous
	@commit=$$(git log -1 --format=%H -G'^const Version' HEAD~1 -- internal/release/release.go) && git archive $$commit | tar -x -C .cache/previous
	cd .cache/previous && for c in cmd/mobula samples/sort; do CGO_ENABLED=0 $(GO) build -trimpath -o bin/ ./$$c || exit 1; done
	MOBULA_BINARY=$(CURDIR)/$(BIN)/mobula MOBULA_PREVIOUS=$(CURDIR)/.cache/previous/bin $(GO) test -count 1 -timeout 18m -run TestUpgrade -v ./e2e/cluster

life: ## one job of 5,000,000 tasks, as many calls, and more, after which the node holds what it held before; then under kills. LIFE=N says otherwise
	MOBULA_LIFE=$(or $(LIFE),5000000) CGO_ENABLED=0 $(GO) test -count 1 -timeout 3h -v -run TestALongLife ./e2e/restarts

deep: ## a part of what looks for new faults, and takes too long for every change, on a clone; ARGS=--list, ARGS="--part NAME"
	$(GO) run ./internal/tools/deep $(ARGS)

fuzz: ## every fuzz target for FUZZTIME (default 30s)
	$(GO) run ./internal/tools/fuzzall -time $(or $(FUZZTIME),30s)

fetch: ## what lint and test download, so that they need no network
	.ci/try $(GO) mod download
	.ci/try $(GO) mod tidy -diff
	cd internal/tools/docs && $(CURDIR)/.ci/try $(GO) mod download
	.ci/try $(GO) run $(LINT) version
	@if sh python/interpreter.sh >/dev/null; then $(MAKE) --no-print-directory python; fi

lint: ## golangci-lint, go.mod, the rules of internal/lint (pure cores, layers, the API, the size of hello world), and ruff where there is Python 3.11 or later
	$(GO) run $(LINT) run
	$(GO) mod tidy -diff
	CGO_ENABLED=0 $(GO) test -count 1 ./internal/lint
	@if sh python/interpreter.sh >/dev/null; then \
		$(MAKE) --no-print-directory ruff; \
	elif [ -n "$$REQUIRE_PYTHON" ]; then \
		echo "make lint: REQUIRE_PYTHON is set, and there is no Python for ruff" >&2; exit 1; \
	else \
		echo "make lint: the Python code was NOT looked at: it needs what is said above." >&2; \
	fi

api: ## the exported API as the baseline of the next release: with every release, and at no other time
	CGO_ENABLED=0 $(GO) test -count 1 -run TestTheAPIKeepsItsWord ./internal/lint -update

ruff: python ## ruff, over the Python code
	cd python && ../$(VENV)/bin/ruff check .
	cd python && ../$(VENV)/bin/ruff check --config pyproject.toml --ignore I001 ../samples/python ../benchmarks/peers

bench: ## mobench, every case
	CGO_ENABLED=0 $(GO) run ./benchmarks/mobench $(ARGS)

sim: ## a million tasks on 10 to 10,000 nodes, in virtual time; ARGS=--help says more
	$(GO) run ./benchmarks/sim $(ARGS)

bench-peers: build ## the same work on Mobula, Ray and Dask, or of actors beside protoactor-go, in turn; ARGS=--help says more (needs Python 3.11 and pip)
	CGO_ENABLED=0 $(GO) build -trimpath -o $(BIN)/actorbench ./benchmarks/actorbench
	@python=$$(sh python/interpreter.sh) && PYTHONPATH=benchmarks $$python -m peers $(ARGS)

bench-compare: ## the work tree against the commit BASE, by rows of mobench and of Python, in ten minutes; ARGS=--help says more
	@$(GO) run ./internal/tools/compare -base "$(BASE)" $(ARGS)

cover: ## coverage by package
	CGO_ENABLED=0 $(GO) test -coverprofile=$(BIN)/cover.out -coverpkg=./... $(PKGS)
	$(GO) tool cover -func=$(BIN)/cover.out | tail -1

docs: ## the site, bin/site: guides, the reference of Go, and of Python where there is Python; links and snippets are checked
	cd internal/tools/docs && $(GO) run . check
	rm -rf $(BIN)/site
	@if sh python/interpreter.sh >/dev/null; then \
		mkdir -p .cache && sh python/venv.sh .cache/docs docs/requirements.txt && \
		.cache/docs/bin/python -m pdoc -o $(BIN)/site/python-reference mobula; \
	else \
		echo "make docs: without Python the site lacks its reference" >&2; \
	fi
	cd internal/tools/docs && $(GO) run . site $(CURDIR)/$(BIN)/site

generate: ## generated code anew
	$(GO) generate ./...

clean: ## what was built
	rm -rf $(BIN) $(VENV) dist python/mobula/bin
