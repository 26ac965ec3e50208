# Two commands on a fresh machine with Python 3.11: `make demo` runs the main job, `make test` passes the tests.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: setup demo test check bench lock docs clean

setup: $(STAMP)

$(STAMP): pyproject.toml requirements.lock
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "CogniCraft needs Python 3.11 or later: make PYTHON=python3.11 ...")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $(STAMP)

demo: setup
	sh demo/run.sh $(BIN)/cognicraft

test: setup
	$(BIN)/python -m pytest

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/generate_docs.py --check
	$(BIN)/python scripts/benchmark_tables.py --check

docs: setup
	$(BIN)/python scripts/generate_docs.py
	$(BIN)/python scripts/benchmark_tables.py

bench: setup
	$(BIN)/python benchmarks/quality.py
	$(BIN)/python benchmarks/answers.py
	$(BIN)/python benchmarks/chunking.py
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/filings.py
	$(BIN)/python benchmarks/crash.py

# After a change of dependencies in pyproject.toml.
lock:
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --python-version 3.11 \
		--all-extras --group dev --output-file requirements.lock pyproject.toml

clean:
	rm -rf .demo .bench .mypy_cache .ruff_cache .pytest_cache .hypothesis
