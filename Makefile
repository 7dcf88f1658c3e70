# make test   sets up a virtual environment, then checks style, types and behaviour
# make audit  sets up a virtual environment, then audits a rule and draws the result

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
WORKERS ?= 2

.PHONY: help audit test lint types unit check bench clean

help:
	@sed -n 's/^# //p' Makefile

audit: $(VENV)/.installed
	$(BIN)/rulescope audit

test: lint types unit

lint: $(VENV)/.developer
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.developer
	$(BIN)/mypy

unit: $(VENV)/.developer
	OMP_NUM_THREADS=1 $(BIN)/pytest -n $(WORKERS) --dist worksteal

check: $(VENV)/.installed
	$(BIN)/rulescope check

bench: $(VENV)/.developer
	$(BIN)/rulescope bench

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable .
	@touch $@

$(VENV)/.developer: $(VENV)/.installed
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev,bench,minatar]'
	@touch $@

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
