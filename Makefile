# Every target sets up what it needs; `make help` lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest -n auto --dist loadfile  # a file's tests share what they set up

.DEFAULT_GOAL := help
.PHONY: help demo demo-metrics compare test quick fuzz chaos soak lint types reproduce bench pictures dashboards grafana-check constraints clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */  make \1 /' | awk '{printf "  %s %-13s", $$1, $$2; $$1=$$2=""; print}'

demo: $(VENV)/live  ## start a small Ray, push a bursty load, let one policy after the other decide, compare them
	@$(BIN)/dsms demo

demo-metrics: $(VENV)/live  ## the same with a Prometheus beside it at port 9090 (PORT=9090), with our rules (Debian's prometheus)
	@deploy/prometheus --interval 1s $(if $(PORT),--port $(PORT)) -- $(BIN)/dsms demo --metrics 9471

compare: $(VENV)/core  ## run a bursty plan in virtual time under a dozen policies and compare them
	@$(BIN)/dsms sim tests/plans/bursts.toml --policy fifo --policy rr --policy rr-query --policy greedy --policy mtiq --policy chain --policy partition-latency --policy rb-mcq --policy fas-mcq --policy fas-gamma --policy qos-chain --policy adaptive

test: $(VENV)/all lint types  ## the whole suite, lint and types first
	$(PYTEST) tests

quick: $(VENV)/all  ## the fast part of the suite: no Ray, no Spark, no paper's experiments
	$(PYTEST) tests -m "not ray and not spark and not papers"

fuzz: $(VENV)/fuzz  ## the property tests on many more plans (EXAMPLES=200), and hostile input: a million frames (FRAMES=1000000), queries
	DSMS_EXAMPLES=$(or $(EXAMPLES),200) $(PYTEST) tests/test_properties.py tests/test_swap.py tests/test_measures.py tests/test_charts.py tests/test_duckdb.py tests/test_cuts.py tests/test_hostile_queries.py -o timeout=0
	DSMS_FRAMES=$(or $(FRAMES),1000000) $(BIN)/python -m pytest tests/test_hostile_frames.py -n auto -o timeout=0
	cd tests && ../$(BIN)/python -m fuzzing.by_coverage frames $(or $(COVERED),500000) && ../$(BIN)/python -m fuzzing.by_coverage queries 30000

chaos: $(VENV)/all  ## kill processes of durable deployments at random and compare all results with DuckDB's (KILLS=200)
	cd tests && ../$(BIN)/python -m chaos $(or $(KILLS),200) $(or $(SEED),0)

lint: $(VENV)/all  ## ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/all  ## mypy --strict on all packages
	$(BIN)/mypy

soak: $(VENV)/all  ## ten times the capacity for two minutes, then ten minutes at 80 % load with a swap each second
	cd tests && ../$(BIN)/python -m soak.run

reproduce: $(VENV)/all  ## every claim of the five papers beside what comes out here (under an hour; QUICK=1: minutes; SEEDS=1)
	@$(BIN)/dsms reproduce $(if $(QUICK),--quick) $(if $(SEEDS),--seeds $(SEEDS))

bench: $(VENV)/bench  ## speed as ratios against a peer in the same run, and our policies against the papers' (a quarter of an hour)
	cd tests && ../$(BIN)/python -m benchmarks.bench

pictures: $(VENV)/all  ## take the README's picture of the console anew (two minutes; needs chromium)
	cd tests && ../$(BIN)/python -m browser.console_picture ../deploy/console.png

dashboards: $(VENV)/core  ## write Grafana's dashboards anew from the table of metrics
	@$(BIN)/python -m grafana.generate

grafana-check: $(VENV)/all tests/browser/node_modules  ## the dashboards by Grafana's own types and components, drawn on live data (npm, chromium, prometheus)
	@PYTHONPATH=.:tests $(BIN)/python tests/browser/grafana_check.py $(if $(PICTURE),--picture $(PICTURE))

tests/browser/node_modules: tests/browser/package.json
	@cd tests/browser && npm install --no-package-lock --silent && touch node_modules

constraints: $(VENV)/all  ## pin the dependencies anew
	$(BIN)/uv pip compile pyproject.toml --all-extras --universal --upgrade --python-version 3.11 \
		--no-header --no-annotate --no-emit-index-url --quiet --output-file constraints.txt

clean:  ## remove the environment and what tools left
	rm -rf $(VENV) build tests/browser/node_modules *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis

# uv installs in seconds what takes pip minutes; where it cannot reach the packages (it does not read pip's settings), pip can.
LIVE := ".[ray,spark,plot,console]"
ALL := ".[ray,spark,plot,console,dev]"
FUZZ := ".[ray,spark,plot,console,dev,fuzz]"
BENCH := ".[ray,spark,plot,console,dev,bench]"
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
	@touch $@ $(VENV)/core $(VENV)/live

$(VENV)/fuzz: $(VENV)/all
	@echo "installing what fuzzes by coverage ..."
	@$(call INSTALL,$(FUZZ))
	@touch $@

$(VENV)/bench: $(VENV)/all
	@echo "installing the peers that benchmarks run beside ..."
	@$(call INSTALL,$(BENCH))
	@touch $@
