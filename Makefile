# Everything runs in .venv, which is made on first use and rebuilt when pyproject.toml or constraints.txt change.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help install train test test-slow drill check format bench tensorboard wheel clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; name it with make PYTHON=python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

install: $(STAMP) ## create .venv and install everything, with the tested versions

train: $(STAMP) ## train on the built-in demo corpus, report BLEU, show how to translate; ARGS="model=lstm" adds options
	$(BIN)/python -m translator.train experiment=demo_transformer $(ARGS)

test: $(STAMP) ## run the quick tests
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow" $(ARGS)

test-slow: $(STAMP) ## run the tests that take longer
	$(BIN)/python -m pytest -m slow $(ARGS)

drill: $(STAMP) ## kill, starve, damage and fuzz everything for half an hour; nothing else should run meanwhile
	OMP_NUM_THREADS=1 PYTHONPATH=scripts $(BIN)/python -m drill $(ARGS)

check: $(STAMP) ## style, types and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_imports.py

format: $(STAMP) ## format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP) ## measure speed and memory; nothing else should run meanwhile
	$(BIN)/python scripts/bench_startup.py
	$(BIN)/python scripts/bench_data.py
	$(BIN)/python scripts/bench_transformer.py
	$(BIN)/python scripts/bench_lstm.py
	$(BIN)/python scripts/bench_training.py
	$(BIN)/python scripts/bench_consistency.py
	$(BIN)/python scripts/bench_decoding.py
	$(BIN)/python scripts/bench_serve.py

tensorboard: $(STAMP) ## look at all runs in the browser, best at http://localhost:6006/#custom_scalars
	$(BIN)/tensorboard --logdir runs

wheel: $(STAMP) ## build dist/*.whl
	$(BIN)/python -m build --wheel

clean: ## remove what the tools made, but neither runs/ nor data/
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
