# make book | test | old-cpu | execute | lint | bench | peers | clean; each first sets up what it needs
PYTHON ?= python3
PY := .venv/bin/python
export OMP_NUM_THREADS := 1

.PHONY: book test old-cpu execute lint bench peers weights clean

book: weights
	.venv/bin/jupyter-book build . --all -W -n --keep-going --quiet
	@echo "Open file://$(CURDIR)/_build/html/index.html"

test: weights
	$(PY) -m tools.run_tests

old-cpu: weights
	$(PY) -m tools.run_tests old-cpu

execute: weights
	$(PY) -m tools.book_data
	$(PY) -m tools.execute_book

lint: .venv/ready
	$(PY) -m tools.run_tests lint

bench: weights
	@set -e; for file in benchmarks/bench_*.py; do $(PY) -m benchmarks.$$(basename $$file .py); done

# Long comparisons with other engines; llama.cpp compiles for minutes. TEXTS: folders of text in many languages
peers: weights
	$(PY) -m pip install --quiet --disable-pip-version-check -r benchmarks/requirements.txt
	$(PY) -m benchmarks.exact_sampling
	$(PY) -m benchmarks.peers_next_token
	$(PY) -m benchmarks.peers_tokenizer $(TEXTS)

weights: .venv/ready
	$(PY) -m llm_internals.weights_file

.venv/ready: requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or later is needed: install it, then run make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PY) -m pip --version > /dev/null 2>&1 || $(PYTHON) -m venv .venv
	@echo "Installing what requirements.txt names into .venv; the first time takes minutes"
	$(PY) -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@touch $@

clean:
	rm -rf _build .hypothesis .pytest_cache .ruff_cache
