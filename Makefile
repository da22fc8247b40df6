# Needs python3 (3.11 or newer) with venv, and make; for the tests Node.js (20.15 or newer) with npm, and tmux, strace and
# Chromium, which apt brings. Everything else goes into .venv, pinned by requirements/dev.lock and requirements/node.

PYTHON ?= python3
ARGS ?=
BIN := .venv/bin
LOCK := requirements/dev.lock
NODE_LOCK := requirements/node/package.json requirements/node/package-lock.json
# A demo with a real model needs its provider's extra, too.
comma := ,
EXTRAS := server$(if $(OPENAI_API_KEY),$(comma)openai)$(if $(ANTHROPIC_API_KEY),$(comma)anthropic)
DEMO := .venv/demo-$(subst $(comma),-,$(EXTRAS)).stamp
PACKAGE := pyproject.toml src/timbal/_version.py

export VIRTUAL_ENV := $(CURDIR)/.venv
ifdef CI
export UV_NO_PROGRESS := 1
endif

.DEFAULT_GOAL := help
.PHONY: help setup test tmux check static formatted lint types imports fmt lock vendor demo torture strace chromium screenshots

help:  ## list the commands
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/\1\t\2/p' Makefile | expand -t 12

setup: .venv/dev.stamp .venv/node.stamp  ## make .venv with the package and all tools; quick when nothing changed

test: setup tmux strace chromium  ## run all tests, with coverage; ARGS goes to pytest
	$(BIN)/python -m pytest -n auto --cov $(ARGS)

torture: setup  ## kill, race and simulate in full, on SQLite and PostgreSQL; ARGS="--points 10 --seeds 50" for less
	$(BIN)/python -m tests.torture $(ARGS)
	TIMBAL_TORTURE=40 $(BIN)/python -m pytest -q -n auto tests/server/test_openapi.py

check: static test  ## all that CI checks

tmux strace chromium:
	@command -v $@ >/dev/null || if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update -qq && apt-get install -y -qq --no-install-recommends $@; \
	else \
		echo "The tests use $@. Install it: sudo apt-get install $@"; exit 1; \
	fi

static: formatted lint types imports  ## everything but the tests

formatted: setup
	$(BIN)/ruff format --check .

lint: setup
	$(BIN)/ruff check .

types: setup
	$(BIN)/mypy
	.venv/node/node_modules/.bin/tsc --project jsconfig.json

imports: setup
	$(BIN)/lint-imports --no-logo

fmt: setup  ## format, and mend what the linter can mend
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

lock: $(BIN)/uv  ## write requirements/dev.lock again; ARGS=--upgrade takes newer releases
	$(BIN)/uv pip compile pyproject.toml requirements/dev.in --all-extras --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --custom-compile-command "make lock" --quiet $(ARGS) --output-file $(LOCK)

screenshots: setup chromium  ## pictures of each state of the page, into screenshots/
	$(BIN)/python -m tests.page.screenshots screenshots

vendor:  ## bundle the page's vendored modules again, from requirements/vendor
	rm -rf .venv/vendor && mkdir -p .venv/vendor && cp requirements/vendor/* .venv/vendor
	npm install --prefix .venv/vendor --silent --no-audit --no-fund
	.venv/vendor/node_modules/.bin/esbuild .venv/vendor/lit.js --bundle --format=esm --minify --target=es2022 \
		--legal-comments=eof --outfile=src/timbal/web/vendor/lit.js
	sha256sum src/timbal/web/vendor/*.js

demo: $(DEMO)  ## run the demo, installing only what it needs; ARGS=--terminal plays it without a browser
	$(BIN)/timbal demo $(ARGS)

.venv/dev.stamp: $(LOCK) $(PACKAGE) | $(BIN)/uv
	$(BIN)/uv pip sync --quiet --require-hashes $(LOCK)
	$(BIN)/uv pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $(DEMO) $@

# The fake model API that the tests talk to, and what checks the page.
.venv/node.stamp: $(NODE_LOCK) | $(BIN)/uv
	@npm --version >/dev/null 2>&1 || \
		{ echo "Tests and type checks need Node.js 20.15 or newer with npm. On Debian and Ubuntu: apt-get install nodejs npm"; exit 1; }
	@mkdir -p .venv/node && cp $(NODE_LOCK) .venv/node
	npm ci --prefix .venv/node --silent --no-audit --no-fund
	@touch $@

$(DEMO): $(PACKAGE) | $(BIN)/uv
	$(BIN)/uv pip install --quiet --constraint $(LOCK) --editable '.[$(EXTRAS)]'
	@touch $@

# The lock pins uv too: its lines are cut out for pip, which checks their hashes.
$(BIN)/uv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "$(PYTHON) is older than 3.11. Name a newer one: make setup PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo "$(PYTHON) cannot make a virtual environment. On Debian and Ubuntu: apt-get install python3-venv"; exit 1; }
	$(PYTHON) -m venv --clear .venv
	@sed -n '/^uv==/,/[^\\]$$/p' $(LOCK) > .venv/uv.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r .venv/uv.txt
