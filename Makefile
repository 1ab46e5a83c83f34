# Each target is a line or two; what they do is in scripts/ and in the tidemark command.
.DEFAULT_GOAL := help
.NOTPARALLEL:
SHELL := /bin/bash
PYTHON := .venv/bin/python
TIDEMARK := .venv/bin/tidemark
# Each takes a core and, with Spark, up to 3 GiB.
WORKERS ?= 2
PYTEST := .venv/bin/pytest
# A lane of `make test`: a mark and its folders, without what is long; it leaves its durations.
# Every process imports all modules of these folders.
lane = $(PYTEST) $(addprefix tests/,$(2)) -m "$(1) and not long" --junitxml=build/durations/$(1).xml
# PROFILE=cluster: settings of profiles/cluster.yml, for every target.
ifdef PROFILE
export TIDEMARK_PROFILE := $(PROFILE)
endif
# Python keeps what it compiles, wherever a container's image says otherwise: without that, each
# process compiles every module that it imports, which doubles the CPU of a short command.
unexport PYTHONDONTWRITEBYTECODE
# What a profile's stack has beyond the small one's.
NEEDS_cluster := s3

.PHONY: help lint-types lint-style setup setup-cassandra setup-s3 up restart shell down status logs demo check fmt lint lock-jars sbom audit golden docs clean \
	test test-unit test-spark test-dags test-long durations e2e e2e-cluster e2e-cassandra e2e-s3 walk mutants test-tpch bench-ivm bench-storm bench-streams \
	bench-scaling bench-snapshot bench-kills bench-views

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## Install missing system packages, the Python environment and jars
	@sh scripts/bootstrap.sh $(NEEDS_$(PROFILE))
	@$(TIDEMARK) schema --write >/dev/null

setup-cassandra: ## Also install the jars of a local Cassandra
	@sh scripts/bootstrap.sh cassandra

setup-s3: ## Also install the jars for a lake in an object store, and a local server
	@sh scripts/bootstrap.sh s3

up: setup ## Start the local stack and wait until every part is ready
	@$(TIDEMARK) stack up

restart: ## Restart some parts of the stack (PART="streams"); the others keep running
	@$(TIDEMARK) stack restart $(PART)

shell: ## Open a shell in which `tidemark` and `airflow` use the local stack
	@$(TIDEMARK) stack shell

down: ## Stop the local stack and everything that it started
	@$(TIDEMARK) stack down

status: ## Show the state of each part of the stack
	@$(TIDEMARK) stack status

logs: ## Show the last lines of the logs (PART=kafka for one part, FOLLOW=1 to follow)
	@$(TIDEMARK) stack logs $(PART) $(if $(FOLLOW),--follow)

demo: setup ## From nothing to audited gold tables; the stack stays up until `make down`
	@$(TIDEMARK) demo

check: setup lint test-unit ## Everything without Java: formatting, lint, types, layers, unit tests

lint: ## Check formatting, style, types, layers and spelling
	@$(MAKE) --no-print-directory -j 2 lint-types lint-style

lint-types:
	.venv/bin/mypy

lint-style:
	.venv/bin/ruff format --check . && .venv/bin/ruff check .
	.venv/bin/lint-imports && .venv/bin/codespell

fmt: ## Format the code
	.venv/bin/ruff format . && .venv/bin/ruff check --fix .

golden: ## Rewrite the golden files from the current code
	REWRITE=1 $(PYTEST) tests/golden

lock-jars: ## Update the jars' checksums in jars/*/SHA256SUMS after a pom has changed
	@sh scripts/bootstrap.sh lock-jars

sbom: setup ## List all dependencies (CycloneDX) and check their licences
	@$(PYTHON) scripts/sbom.py

audit: setup ## The same, and check OSV for known vulnerabilities; needs the internet
	@$(PYTHON) scripts/sbom.py --audit

docs: setup ## Build the documentation and the data dictionary: site/index.html
	@$(TIDEMARK) docs build

test: setup ## The whole suite, end-to-end tests included
	@$(MAKE) --no-print-directory lint test-unit test-spark test-dags e2e

test-unit: ## Tests without Java, in WORKERS + 1 processes, because some of them wait
	$(call lane,unit,unit golden properties walk) -n $$(($(WORKERS) + 1))

test-spark: ## Tests on local Spark sessions, in WORKERS + 1 processes, each with its own session
	$(call lane,spark,spark tpch properties) -n $$(($(WORKERS) + 1)) --dist loadscope --no-loadscope-reorder

test-dags: ## Tests of the DAGs
	$(call lane,airflow,dags) -n $(WORKERS) --dist worksteal

e2e: ## Tests against local stacks, each stack with its own process
	$(call lane,services,e2e) --timeout 1200 --randomly-dont-reorganize -n $(WORKERS) --dist loadfile --no-loadscope-reorder

test-long: ## Tests that take hours, before a release: several runs of MINUTES=85 (PARTS="spark e2e-s3")
	@sh scripts/bootstrap.sh walk
	@$(PYTHON) scripts/long.py --minutes $(or $(MINUTES),85) $(if $(SEED),--seed $(SEED)) $(PARTS)

walk: ## Ten minutes of random work and faults on a separate stack (OPTIONS="--seed 7")
	@sh scripts/bootstrap.sh walk
	@$(PYTHON) -m tests.walk $(OPTIONS)

mutants: ## Mutation tests of the maintenance of views (OPTIONS="--sample 300 --seed 7")
	@$(PYTHON) scripts/mutants.py --workers $(WORKERS) $(OPTIONS)

durations: ## Show the duration of the last run of each test suite
	@$(PYTHON) scripts/durations.py

e2e-cluster: setup-s3 ## Kill parts of the profile `cluster`; takes minutes and 15 GiB, not in `make test`
	$(PYTEST) -m cluster --timeout 3600 -p no:randomly -rP

e2e-cassandra: setup-cassandra ## Sinks to a real Cassandra; not in `make test`
	$(PYTEST) -m cassandra -p no:randomly

e2e-s3: setup-s3 ## A lake in an object store; not in `make test`
	$(PYTEST) -m s3 --timeout 1800 -p no:randomly

test-tpch: setup ## All 22 queries of TPC-H as views; `make test` runs one of them
	$(PYTEST) tests/tpch -p no:randomly

bench-ivm: setup ## Measure incremental maintenance on TPC-H (SCALE=0.1 OPTIONS="--query q01")
	@$(PYTHON) -m benchmarks.ivm --scale $(or $(SCALE),0.1) $(OPTIONS)

bench-storm: setup ## Simulate 50 views on one table with and without pools, staggering, coalescing
	@$(PYTHON) -m benchmarks.storm

bench-streams: setup ## Measure the streams on a separate stack (OPTIONS="--only latency")
	@$(PYTHON) -m benchmarks.streams $(OPTIONS)

bench-scaling: setup ## Measure one and two Spark workers (OPTIONS="--scale 1 --query q01")
	@$(PYTHON) -m benchmarks.scaling $(OPTIONS)

bench-views: setup ## Measure commands and Airflow with 100 views and with 1,000 (OPTIONS="--no-airflow")
	@$(PYTHON) -m benchmarks.views $(OPTIONS)

bench-snapshot: setup ## Measure the first rows of a table, beside JDBC (OPTIONS="--rows 100000")
	@$(PYTHON) -m benchmarks.snapshot $(OPTIONS)

bench-kills: setup ## 10,000 transactions while Connect and the streams are killed (OPTIONS="--count 500")
	@$(PYTHON) -m benchmarks.kills $(OPTIONS)

clean: ## Delete caches and build results; state and Python environments stay
	rm -rf build .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache jars/*/target
