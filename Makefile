# make demo: the demo site, from nothing.   make test: every check, from nothing.

PYTHON ?= python3
PORT ?= 8000
DEMO ?= celosia-demo
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
SOURCES := app solver demo tests bench

.PHONY: demo free-port test lint audit bench-solver clean

# Ctrl-C is how it is meant to end: the shell outlives it, so that make has no error to tell.
demo: free-port $(VENV)/.installed
	@trap : INT; $(BIN)/celosia demo --dir $(DEMO) --port $(PORT) || [ $$? -eq 130 ]

# Asked before anything is installed, which takes minutes.
free-port:
	@$(PYTHON) -c 'import socket; s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(("127.0.0.1", $(PORT)))' 2>/dev/null \
	  || { echo "Port $(PORT) can't be had. Choose another one: make demo PORT=8001"; exit 1; }

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
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Celosia needs Python 3.11 or later; name one with: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
	@echo "Making an environment of its own in $(VENV) …"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Installing Celosia and what it needs …"
	@$(PIP) --editable .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Installing Celosia and what its tests need …"
	@$(PIP) --editable '.[dev]'
	@touch $@ $(VENV)/.installed

# Asks the advisory database of Python packages; where that knows nothing of one, it fails. The tool has its own
# environment.
audit: $(VENV)/bin/python
	@test -d $(VENV)/audit || $(PYTHON) -m venv $(VENV)/audit
	@$(VENV)/audit/bin/python -m pip install --quiet --disable-pip-version-check pip-audit
	$(VENV)/audit/bin/pip-audit --requirement constraints.txt --no-deps --disable-pip --strict --progress-spinner off

# The peers go into environments of their own, which it makes itself.
bench-solver: $(VENV)/.installed-dev
	$(BIN)/python bench/solver.py

clean:
	rm -rf $(VENV) $(DEMO)
