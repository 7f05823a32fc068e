# Every target that needs Python makes its own virtual environment first: Python 3.11+ and make are all that is assumed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help demo test test-long cluster lint configs types bench bench-cel bench-audit fuzz audit-proof faults lock clean

help: ## what can be done here
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/demo ## real records through a real broker, a worker killed inside a transaction, and the proof
	@$(BIN)/reckon demo

test: $(VENV)/dev ## all tests, on a real broker
	@$(BIN)/python -m pytest -n 2 --dist loadgroup -m "not long"

test-long: $(VENV)/dev ## the tests of the audit and of faults that take long
	@$(BIN)/python -m pytest -n 2 --dist loadgroup -m long --durations=10

cluster: $(VENV)/dev ## the audit by spark-submit on a standalone cluster of two workers
	@$(BIN)/python -m pytest -n 0 tests/audit/test_cluster.py

lint: $(VENV)/dev ## style and formatting
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

configs: $(VENV)/dev ## lint and test the pipelines of config/
	@$(BIN)/reckon lint config
	@$(BIN)/reckon test config

types: $(VENV)/dev ## mypy --strict, the tests too
	@$(BIN)/mypy

bench: $(VENV)/dev ## side by side with the peers: prints ratios
	@$(BIN)/python -m tests.bench

bench-cel: $(VENV)/dev ## CEL side by side with other evaluators
	@$(BIN)/python -m tests.bench.cel

bench-audit: $(VENV)/dev ## the audit against a bare count() of the same topics
	@$(BIN)/python -m tests.bench.audit

audit-proof: $(VENV)/dev ## a thousand planted defects to be found, a hundred audits of a running pipeline without a false alarm
	@$(BIN)/python -m tests.audit sensitivity
	@$(BIN)/python -m tests.audit specificity --audits 100

faults: $(VENV)/dev ## a thousand faults on three brokers, and a report
	@$(BIN)/python -m tests.faults --faults 1000

fuzz: $(VENV)/dev ## a million records through every step, ten thousand damaged pipeline files
	@$(BIN)/python -m tests.fuzz records --count 1000000
	@$(BIN)/python -m tests.fuzz configs --count 10000

lock: $(VENV)/dev ## write the lock files anew from pyproject.toml
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header \
		pyproject.toml -o requirements/worker.lock
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header \
		pyproject.toml --extra devkit --extra audit requirements/build.in -c requirements/worker.lock -o requirements/demo.lock
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header \
		requirements/build.in -c requirements/demo.lock -o requirements/build.lock
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header \
		pyproject.toml --extra dev requirements/build.in -c requirements/demo.lock -o requirements/dev.lock

clean: ## remove the virtual environment and caches
	rm -rf $(VENV) build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Reckon needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12 ...")'
	@$(PYTHON) -m venv $(VENV)

$(VENV)/%: requirements/%.lock pyproject.toml | $(VENV)/bin/python
	@echo "installing $< into $(VENV) ..."
	@$(PIP) install --require-hashes -r $<
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@
