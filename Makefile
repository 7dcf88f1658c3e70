# make audit    sets up a virtual environment, then audits the rule Sprout along five axes
# make test     sets up a virtual environment, then checks style, types and behaviour (every test)
# make fast     runs the tests marked fast: under two minutes on two idle cores
# make check    compares our numbers with those of the original programs
# make bench    measures the speed on this machine
# make results  turns the records of the replication into the figures and tables of the docs
# make docs     writes the generated numbers and tables of the pages
# make torture  kills campaigns, damages files and fills disks, and checks what must still hold
# make clean    removes the virtual environment, builds and caches

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
WORKERS ?= 2
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest -n $(WORKERS) --dist worksteal

.PHONY: help audit test fast lint types unit check bench results docs torture clean

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
	$(PYTEST)

fast: $(VENV)/.developer
	$(PYTEST) -m fast

check: $(VENV)/.installed
	$(BIN)/rulescope check

bench: $(VENV)/.developer
	$(BIN)/python -m benchmarks

results: $(VENV)/.installed
	$(BIN)/rulescope check --out replication/results
	$(BIN)/rulescope check rules --out replication/results
	$(BIN)/rulescope check worlds --out replication/results
	$(BIN)/rulescope check verdicts --out replication/results
	mkdir -p replication/results/claims
	$(BIN)/rulescope claims --claims exact --store replication/store --json \
		> replication/results/claims/exact.json
	$(BIN)/rulescope report --store replication/store --results replication/results --out build/report
	rm -rf replication/publication
	cp -r build/report/publication replication/publication
	$(BIN)/python scripts/documents

docs: $(VENV)/.installed
	$(BIN)/python scripts/documents

torture: $(VENV)/.developer
	OMP_NUM_THREADS=1 $(BIN)/python scripts/torture

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable .
	@touch $@

$(VENV)/.developer: $(VENV)/.installed
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev,bench,jax,minatar,ray,wandb]'
	@touch $@

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
