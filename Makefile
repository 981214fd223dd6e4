# Every target installs what it needs; `make help` lists them. tests/unit/repository/test_make_targets.py names the short form of
# each target that `make test` runs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest -n auto --dist loadgroup --no-loadscope-reorder  # groups: see tests/conftest.py

# Ray, Spark and commands start hundreds of Python processes: without cached bytecode each compiles all it imports.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo demo-metrics compare test quick fuzz chaos soak lint types reproduce bench fidelity pictures dashboards grafana-check constraints clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */  make \1 /' | awk '{printf "  %s %-13s", $$1, $$2; $$1=$$2=""; print}'

demo: $(VENV)/live  ## start a small Ray, push a bursty load, run one policy after the other, compare them
	@$(BIN)/dsms demo

demo-metrics: $(VENV)/live  ## the demo with a Prometheus beside it at port 9090 (PORT=9090), with our rules (needs prometheus)
	@deploy/prometheus --interval 1s $(if $(PORT),--port $(PORT)) -- $(BIN)/dsms demo --metrics 9471

compare: $(VENV)/core  ## run a bursty plan in virtual time under a dozen policies and compare them
	@$(BIN)/dsms sim tests/plans/bursts.toml --policy fifo --policy rr --policy rr-query --policy greedy --policy mtiq --policy chain --policy partition-latency --policy rb-mcq --policy fas-mcq --policy fas-gamma --policy qos-chain --policy adaptive

test: $(VENV)/all lint types  ## the whole suite, lint and types first
	$(PYTEST) tests

quick: $(VENV)/all  ## the fast part of the suite: no Ray, no Spark, no experiments of papers; fewer random examples (EXAMPLES=8)
	DSMS_EXAMPLES=$(or $(EXAMPLES),8) $(PYTEST) tests -m "not ray and not spark and not papers and not targets and not slow"

fuzz: $(VENV)/all  ## the property tests on many more plans (EXAMPLES=200), and hostile input: a million frames (FRAMES=1000000), queries
	DSMS_EXAMPLES=$(or $(EXAMPLES),200) $(PYTEST) tests/contract/test_every_policy.py tests/contract/test_policy_swap.py tests/unit/dsms/measure/test_run_measures.py tests/unit/dsms/charts/test_charts.py tests/contract/test_duckdb.py tests/contract/test_batch_boundaries.py tests/fuzz/test_hostile_queries.py -o timeout=0
	DSMS_FRAMES=$(or $(FRAMES),1000000) $(BIN)/python -m pytest tests/fuzz/test_hostile_frames.py -n auto -o timeout=0
	cd tests && ../$(BIN)/python -m fuzz.by_coverage frames $(or $(COVERED),500000) && ../$(BIN)/python -m fuzz.by_coverage queries 30000

chaos: $(VENV)/all  ## kill processes of durable deployments at random and compare all results with DuckDB's (KILLS=200)
	cd tests && ../$(BIN)/python -m chaos $(or $(KILLS),200) $(or $(SEED),0)

lint: $(VENV)/all  ## ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/all  ## mypy --strict on all packages
	$(BIN)/mypy

soak: $(VENV)/all  ## ten times the capacity for two minutes, then ten minutes at 80 % load with a swap each second
	cd tests && ../$(BIN)/python -m soak.run

reproduce: $(VENV)/all  ## every claim of the five papers beside our result (20 minutes; QUICK=1: minutes; SEEDS=1)
	@$(BIN)/dsms reproduce $(if $(QUICK),--quick) $(if $(SEEDS),--seeds $(SEEDS))

bench: $(VENV)/all  ## speed as ratios against a peer in the same run, and our policies against the papers' (a quarter of an hour; SHORT=1: two minutes)
	cd tests && ../$(BIN)/python -m benchmarks.bench $(if $(SHORT),--short)

fidelity: $(VENV)/all  ## does a simulation predict the live system? every policy on four plans, both ways (a quarter of an hour; POLICY=chain, PLOT=folder)
	cd tests && ../$(BIN)/python -m benchmarks.live.fidelity $(if $(POLICY),--policy $(POLICY)) $(if $(PLOT),--plot $(abspath $(PLOT)))

pictures: $(VENV)/all  ## take the README's picture of the console (two minutes; needs chromium)
	cd tests && ../$(BIN)/python -m browser.console_picture ../deploy/console.png

dashboards: $(VENV)/all  ## generate Grafana's dashboards from the table of metrics
	@$(BIN)/python -m grafana.generate

grafana-check: $(VENV)/all tests/browser/node_modules  ## check the dashboards by Grafana's types, draw them on live data (npm, chromium, prometheus)
	@PYTHONPATH=.:tests $(BIN)/python tests/browser/grafana_check.py $(if $(PICTURE),--picture $(PICTURE))

tests/browser/node_modules: tests/browser/package.json
	@cd tests/browser && npm install --no-package-lock --silent && touch node_modules

constraints: $(VENV)/all  ## pin the latest dependencies in constraints.txt
	$(BIN)/uv pip compile pyproject.toml --all-extras --universal --upgrade --python-version 3.11 \
		--no-header --no-annotate --no-emit-index-url --quiet --output-file constraints.txt

clean:  ## remove the environment and the files of tools
	rm -rf $(VENV) build tests/browser/node_modules *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis

# uv installs in seconds what takes pip minutes; pip is the fallback where uv cannot reach the packages (it does not read
# pip's settings). The peers of benchmarks and the fuzzer have no wheels for some platforms: tests skip without them.
LIVE := ".[ray,spark,plot,console]"
ALL := ".[ray,spark,plot,console,dev]"
PEERS := ".[bench,fuzz]"
INSTALL = $(BIN)/uv pip install --quiet --python $(BIN)/python -c constraints.txt -e $(1) 2>/dev/null \
	|| $(BIN)/python -m pip install --quiet -c constraints.txt -e $(1)

$(VENV)/bin/uv:
	@echo "setting up $(VENV) ..."
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "dsms needs Python 3.11 or later, this is " + sys.version)'
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt uv

$(VENV)/core: pyproject.toml constraints.txt $(VENV)/bin/uv
	@echo "installing dsms ..."
	@$(call INSTALL,.)
	@touch $@

$(VENV)/live: pyproject.toml constraints.txt $(VENV)/bin/uv
	@echo "installing dsms with Ray and Spark ..."
	@$(call INSTALL,$(LIVE))
	@touch $@ $(VENV)/core

$(VENV)/all: pyproject.toml constraints.txt $(VENV)/bin/uv
	@echo "installing dsms with Ray, Spark and the tools for tests ..."
	@$(call INSTALL,$(ALL))
	@$(call INSTALL,$(PEERS)) 2>/dev/null || echo "no SimPy, Bytewax or Atheris: their benchmarks and fuzzing will not run"
	@touch $@ $(VENV)/core $(VENV)/live
