# `make demo` and `make test` need Python 3.11 to 3.13, git and make; everything else goes into .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= auto

.PHONY: demo test lint generate paper systemc clean

demo: $(VENV)/.installed
	$(BIN)/python examples/digits/demo.py

test: $(VENV)/.installed-dev lint
	$(BIN)/python -m pytest -n $(WORKERS)

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' \
	  || { echo "error: $(PYTHON) must be Python 3.11 to 3.13; name another with make PYTHON=..."; exit 1; }
	@$(PYTHON) -m venv $(VENV) \
	  || { rm -rf $(VENV); echo "error: no venv module; on Debian: apt-get install python3-venv"; exit 1; }

$(VENV)/.installed: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,explore,tensorflow]'
	@touch $@ $(VENV)/.installed

# Every table, figure and claim of the paper, into paper/. Fig. 6 takes its layers from Keras models.
paper: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[explore,tensorflow]'
	TF_CPP_MIN_LOG_LEVEL=3 $(BIN)/cim-explore paper -o paper

# The SystemC model against cim-emu on all layers of Table I; needs g++, libsystemc-dev and nlohmann-json3-dev.
systemc: $(VENV)/.installed-dev
	$(BIN)/python tests/systemc/compare_table1.py

# Everything under spec/ that is made from the spec and the models; tests compare the checked-in copies.
generate: $(VENV)/.installed-dev
	$(BIN)/cim-isa export md > spec/isa.md
	$(BIN)/cim-isa export c > spec/generated/cim_isa.h
	$(BIN)/cim-isa export sv > spec/generated/cim_isa_pkg.sv
	$(BIN)/cim-isa export json > spec/generated/isa.json
	$(BIN)/python -m cim.emulator.schemas

clean:
	rm -rf $(VENV) build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
