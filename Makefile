# Tessera's commands. `make` alone lists them.
#   PORT=8000 DATA=.local   for run: where it listens, where it keeps its data
#   PYTHON=python3.12       which interpreter makes .venv (3.11 to 3.13)
#   ARGS="…"                more arguments for pytest or the benchmark
#   BENCH=inference         one benchmark of bench/ instead of all

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
PY := .venv/bin/python
export PYTHON

.PHONY: help run test prove check format bench cover lock clean

help:
	@echo "make run     set up on first use, start everything, stay in the foreground (PORT=8000 DATA=.local)"
	@echo "make test    the test suite on real PostgreSQL, Valkey, chat and embedding servers (ARGS=…)"
	@echo "make check   style, types, import contracts, migrations, manifests"
	@echo "make prove   the long proofs: crashes, floods, whole collections"
	@echo "make bench   speed figures (see bench/README.md)"
	@echo "make format  put the code into its one form"
	@echo "make cover   the test suite with line and branch coverage"
	@echo "make lock    resolve requirements/*.in again"
	@echo "make clean   remove caches and .venv; data stays"

run:
	@tools/venv base embedded ocr
	@exec env $(if $(DATA),TESSERA_DATA="$(DATA)") $(PY) manage.py up $(if $(PORT),--port $(PORT)) $(if $(DATA),--data "$(DATA)")

test:
	@tools/test -n 2 --dist loadfile --no-loadscope-reorder $(ARGS)

prove:
	@tools/test -m prove $(ARGS)

cover:
	@tools/test -n 2 --dist loadfile --no-loadscope-reorder --cov --cov-report=term $(ARGS)

check:
	@tools/venv base embedded ocr dev
	@tools/check

format:
	@tools/venv base embedded ocr dev
	@.venv/bin/ruff check --quiet --fix-only . && .venv/bin/ruff format --quiet .

bench:
	@tools/venv base embedded ocr dev
	@for part in $(or $(BENCH),$(patsubst bench/%/__main__.py,%,$(wildcard bench/*/__main__.py))); do \
	echo "bench.$$part"; $(PY) -m "bench.$$part" $(ARGS); done

lock:
	@command -v uv >/dev/null || { echo "make lock needs uv (any recent version) on the PATH."; exit 1; }
	@cd requirements && for set in base bedrock s3 embedded ocr dev clients; do \
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url $$set.in -o $$set.txt; done
	@cd requirements && uv pip compile -q --no-deps --python-version 3.11 --generate-hashes --no-emit-index-url \
	model.in -o model.txt

clean:
	@rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis htmlcov .coverage .coverage.*
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
