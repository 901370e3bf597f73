# make demo: the demo site, from nothing.   make test: every check, from nothing.

PYTHON ?= python3
PORT ?= 8000
DEMO ?= celosia-demo
VENV := .venv
BIN := $(VENV)/bin
SOURCES := app solver demo tests bench

.PHONY: demo test lint clean

demo: $(VENV)/.installed
	$(BIN)/celosia demo --dir $(DEMO) --port $(PORT)

test: $(VENV)/.installed-dev
	bash .ci/services
	$(MAKE) lint
	$(BIN)/python -m pytest -n 2 --dist loadfile -p tests.no_skips

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check $(wildcard $(SOURCES))
	$(BIN)/ruff format --check $(wildcard $(SOURCES))
	$(BIN)/mypy
	$(BIN)/lint-imports

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable .
	touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@ $(VENV)/.installed

clean:
	rm -rf $(VENV) $(DEMO)
