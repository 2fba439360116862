# `make lab` opens the course, `make test` runs every test. Both set up all they need in .venv first.
# PYTHON=/path/to/python3 chooses the interpreter; otherwise the first one >= 3.11 that runs.

PYTHON ?=
IN_VENV := .venv/bin/python

.PHONY: help lab install install-test test test-all matrix lint notebooks bench pictures constraints
.DEFAULT_GOAL := help

help:
	@echo "make lab          open the course in JupyterLab"
	@echo "make install      make .venv and install the course into it; mend it where something is missing"
	@echo "make install-test the same, and what the tests need"
	@echo "make test         run the tests: lint, types, units, browser, and the notebooks that changed since they passed here"
	@echo "make test NOTEBOOK=05   one notebook alone, its exercises, and its page in the browser"
	@echo "make test KINDS=units   some kinds alone: lint units first again browser (the last three execute notebooks)"
	@echo "make test-all     run every test on every notebook, whatever passed before"
	@echo "make matrix ROW=py313   the tests as on another machine; scripts/matrix.sh names the rows"
	@echo "make lint         only ruff, mypy and import-linter"
	@echo "make notebooks    run all notebooks again and store their outputs (NOTEBOOK=05: that one)"
	@echo "make bench        time this package beside the textbook way (TORCH=/path/to/python: and PyTorch)"
	@echo "make pictures     draw the pictures of the README again"
	@echo "make constraints  renew the tested versions in constraints.txt"

install:
	@python="$$(sh scripts/find_python.sh "$(PYTHON)")" && "$$python" scripts/install.py --extra data --extra profilers

install-test:
	@python="$$(sh scripts/find_python.sh "$(PYTHON)")" && "$$python" scripts/install.py --extra test --extra data --extra profilers

lab: install
	@.venv/bin/dlcourse lab

test: install-test
	@$(IN_VENV) scripts/test.py $(if $(KINDS),--only $(KINDS)) $(if $(NOTEBOOK),--notebook $(NOTEBOOK))

test-all: install-test
	@$(IN_VENV) scripts/test.py --all

matrix:
	@bash scripts/matrix.sh $(ROW)

lint: install-test
	@$(IN_VENV) scripts/test.py --only lint

notebooks: install-test
	@$(IN_VENV) tests/notebooks.py store $(NOTEBOOK)

bench: install
	@.venv/bin/dlcourse bench $(if $(TORCH),--torch-python "$(TORCH)")

pictures: install
	@$(IN_VENV) scripts/pictures.py

constraints: install
	@$(IN_VENV) scripts/constraints.py
