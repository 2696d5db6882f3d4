# Everything needed is installed into .venv by the first target that needs it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test drill lint format bench docs clean

demo: $(VENV)/.installed
	$(BIN)/softspike demo

# Two processes of one thread each: tests are small, and threads would only wait for each other.
test: $(VENV)/.installed
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

# Hours: crashes, lost processes, hostile files, random settings, long runs, faults put in by hand.
drill: $(VENV)/.installed
	for name in crashes team fuzz properties long mutants; do $(BIN)/python -m drills.$$name || exit 1; done

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.installed
	$(BIN)/python -m benchmarks.step

docs: $(VENV)/.installed
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going -b html docs build/docs
	@echo "wrote build/docs/index.html"

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("softspike needs Python 3.10 or newer, this is " + sys.version.split()[0]) if sys.version_info < (3, 10) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[test,lint,docs]'
	touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info src/*.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis
