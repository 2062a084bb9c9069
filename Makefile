# Everything is made from nothing but Debian, Python 3.11 with pip, node 20 with npm, and make.
# Two commands for everybody: `make serve` and `make test`. The rest is for working on turnlog.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

PYTHON ?= python3
ROOT := $(if $(filter 0,$(shell id -u)),,sudo)
BIN := .venv/bin
# pip is told where to install, since the system's Python may lack what puts a pip into a new environment.
PIP := $(PYTHON) -m pip --python $(BIN)/python --disable-pip-version-check install --quiet

# The bytecode of tests is kept, also where Python may write none by itself: rewriting their assertions takes each of
# their processes as long as all imports.
export PYTHONDONTWRITEBYTECODE :=

# The web app, once there is one.
WEB := $(wildcard web/package.json)
STATIC := $(if $(WEB),src/turnlog/server/static/index.html)
PACKAGES := $(if $(WEB),web/node_modules/.package-lock.json)
# Programs of others that the tests run on what turnlog writes: the real AI SDK checks its messages and streams.
CHECKERS := tests/conformance/node_modules/.package-lock.json
# The page of the example, which a browser test drives.
EXAMPLE := examples/chat/page
SOURCES := $(shell find src/turnlog -name '*.py')
WEB_SOURCES := $(shell find web -type f -not -path '*/node_modules/*' -not -path 'web/dist/*' 2>/dev/null)

.PHONY: help serve setup test test-all test-rest thorough lint types layers webcheck pytest units pages format lock web browser wheel bench rig \
	clean prices schema promises states docs man pictures sbom

help: ## Say what can be made
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' Makefile | expand -t 18

serve: .build/bytecode $(STATIC) ## Open turnlog in the browser (ARGS="--port 8000")
	$(BIN)/turnlog serve $(ARGS)

setup: .build/tools .build/bytecode $(STATIC) $(CHECKERS) ## Install and build what the tests need

test: ## Check what changes are likely to break, in minutes: style, types of src, layers, web app, behaviour
	$(call checked,quick,types $(UNITS) pages webcheck)

test-all: ## Check everything, and with the thorough profile of the property tests
	$(call checked,all,types $(UNITS) pages webcheck)

test-rest: ## Check what `make test-all` has and `make test` has not
	$(call checked,rest,types thorough pages)

# Which tests: all of them where nothing else is said, as for `make units`.
TESTS ?= all
quick_ONLY := and not thorough
rest_ONLY := and thorough
quick_TYPES := src
rest_TYPES := tests website
# `make test-all` tries more examples of each property, and so does what continuous integration runs.
PROFILE = $(if $(filter quick,$(1)),,TURNLOG_TESTS=thorough)

# All steps at once, as many as the processor can take, and what each took at the end. Style and layers come first: they
# take seconds. Each step shows what it printed when it has ended.
define checked
	@rm -rf .build/costs; mkdir -p .build/costs
	@export TESTS=$(1) TURNLOG_COSTS=$(CURDIR)/.build/costs $(PROFILE); failed=0; \
	$(if $(filter rest,$(1)),,$(MAKE) --no-print-directory lint layers &&) \
	$(MAKE) --no-print-directory --keep-going -j$(JOBS) --output-sync=target $(2) || failed=1; \
	$(REPORT); exit $$failed
endef

# Measures a step where one of the targets above runs it.
STEP = $(PYTHON) tests/support/steps.py run $@
REPORT = $(PYTHON) tests/support/steps.py report

lint: .build/tools ## Check style and formatting
	$(STEP) sh -c "$(BIN)/ruff check && $(BIN)/ruff format --check"

types: .build/tools ## Check types
	$(STEP) $(BIN)/pyright --project pyproject.toml $($(TESTS)_TYPES)

layers: .build/tools ## Check that dependencies run one way
	$(STEP) $(BIN)/lint-imports

webcheck: $(PACKAGES) ## Check the web app: types, style, tests
	$(if $(WEB),$(STEP) npm --prefix web run check,@echo "There is no web app to check yet.")

pytest: ## Run the tests, also those with a browser (ARGS="-k usage")
	$(MAKE) --no-print-directory --keep-going -j$(JOBS) --output-sync=target pages $(UNITS)

# Tests wait for other processes a third of their time.
JOBS := $(shell echo $$(($$(nproc) + 1)))

# Folders of tests that share a process. To import and collect all tests takes half a minute and a gigabyte, and
# processes that take turns at all files would each do it. Those with PostgreSQL share a server, and those of recorded
# sessions what is read of these. Beside the types, which need most memory, run those that need little; then those that
# take long. `rest` has what no other names.
SETS := agents store hub rest cli server logs recorded chat
hub_TESTS := tests/hub tests/store/postgres
agents_TESTS := tests/agents
store_TESTS := tests/store --ignore=tests/store/postgres
cli_TESTS := tests/cli
server_TESTS := tests/server tests/mcp
logs_TESTS := tests/sync tests/logs tests/runs tests/commits
recorded_TESTS := tests/aisdk tests/cassette tests/conformance tests/formats
chat_TESTS := tests/chat tests/tui tests/exports tests/replay
rest_TESTS := $(filter-out $(foreach set,$(SETS),$($(set)_TESTS)) tests/e2e tests/data tests/support tests/__pycache__,\
	$(patsubst %/,%,$(wildcard tests/*/)) $(wildcard tests/test_*.py))
UNITS := $(if $(ARGS),units,$(SETS:%=units-%))

# The files of which `make test` leaves out something. pytest exits with 5 if no test was selected.
THOROUGH = $(shell sed -n 's|^\([^\#:]*\)::.*|tests/\1|p' tests/thorough.txt | grep -v '^tests/e2e/' | sort -u)
SELECT = $(BIN)/pytest -m "not browser $($(TESTS)_ONLY)"

BUILT := .build/tools .build/bytecode $(STATIC) $(CHECKERS) $(EXAMPLE)/dist/index.html
units-%: $(BUILT)
	$(STEP) $(SELECT) $($*_TESTS)

units: $(BUILT) ## Run some of the tests without a browser (ARGS="tests/model")
	$(SELECT) -n 2 $(ARGS) || [ $$? -eq 5 ]

thorough: $(BUILT) ## Run the tests without a browser that `make test` leaves out
	$(STEP) $(SELECT) -n 2 $(THOROUGH)

# A browser keeps an event loop running: its tests have processes of their own, and a file of them one server. Their files
# are named: collecting the others would take each process half a minute.
pages: .build/tools .build/bytecode $(STATIC) $(EXAMPLE)/dist/index.html browser ## Run the tests with a browser (ARGS="-k search")
	$(STEP) $(BIN)/pytest -n 2 --loadscope-reorder -m "browser $($(TESTS)_ONLY)" \
		$(or $(ARGS),tests/e2e tests/hub/test_pages.py) || [ $$? -eq 5 ]

format: .build/tools ## Format the code and repair what can be repaired
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

web: $(STATIC) ## Build the web app
	$(if $(WEB),,@echo "There is no web app to build yet.")

# Written beside it first: a failure leaves the old types.
schema: .build/venv ## Generate the page's types from the server's responses
	$(BIN)/python -m turnlog.server.typescript > web/src/api/schema.ts.new
	mv web/src/api/schema.ts.new web/src/api/schema.ts
	$(BIN)/python -m turnlog.hub.typescript > web/src/hub/schema.ts.new
	mv web/src/hub/schema.ts.new web/src/hub/schema.ts
	$(BIN)/python -m turnlog.hub.client_models clients

promises: .build/tools ## Write what the tests hold stable (docs/reference/stability.md)
	cd tests && ../$(BIN)/python -m support.stable

states: .build/tools ## Write what readers remember between two syncs (CONTRIBUTING.md)
	cd tests && ../$(BIN)/python -m support.fold_states

wheel: .build/venv $(STATIC) man ## Build sdist and wheel into dist/
	rm -rf dist
	$(BIN)/python -m build --no-isolation

sbom: .build/tools ## Write what a release is made of into .build/turnlog.cdx.json (CycloneDX)
	$(BIN)/python website/bill_of_materials.py > .build/turnlog.cdx.json

man: .build/venv ## Write the manual page from the commands' help
	$(BIN)/python website/man_page.py > man/turnlog.1.new
	mv man/turnlog.1.new man/turnlog.1

docs: .build/docs $(PACKAGES) ## Build the documentation site into .build/website/site
	$(BIN)/python website/site_pages.py

pictures: .build/tools $(STATIC) browser ## Take the pictures of the documentation
	$(BIN)/python website/site_pictures.py

bench: .build/tools .build/bytecode ## Time turnlog (ARGS are passed on)
	$(BIN)/python benchmarks/sync.py $(ARGS)

# The newest of each that can be installed, whatever it is: the rig is there to find out what has changed. No agent can be
# installed on every day and everywhere, so each is installed by itself: those that can be are run. Mistral Vibe and OpenHands want Python 3.12.
AGENTS := @anthropic-ai/claude-code @openai/codex @github/copilot @google/gemini-cli opencode-ai \
	@earendil-works/pi-coding-agent @qwen-code/qwen-code @moonshot-ai/kimi-code @kilocode/cli @continuedev/cli droid \
	@aaif/goose-binary-linux-x64 cline
PYTHON_AGENTS := mistral-vibe llm openhands hermes-agent grok-cli-bin gptme
RIG_PYTHON ?= python3.12
# A network of its own that leads nowhere; a user who is not root is root in there alone.
OFFLINE := unshare $(if $(filter 0,$(shell id -u)),,--map-root-user) --net --fork --kill-child \
	sh -c 'ip link set lo up && exec "$$@"' offline
rig: .build/venv ## Run the real agents of today against a scripted model (ARGS="codex")
	$(BIN)/python rig/install.py $(AGENTS)
	for agent in $(PYTHON_AGENTS); do \
		{ $(RIG_PYTHON) -m venv .build/rig/python/$$agent && \
		.build/rig/python/$$agent/bin/pip install --quiet --upgrade $$agent; } || echo "$$agent: not installed"; \
	done
	@# What one half finds says nothing about the other: both run, and either makes this fail.
	failed=; \
	$(OFFLINE) $(BIN)/python rig/run.py $(ARGS) || failed="$$failed conversations"; \
	$(OFFLINE) $(BIN)/python rig/run_handoffs.py $(if $(RESULTS),--results $(RESULTS)) $(ARGS) || failed="$$failed hand-overs"; \
	test -z "$$failed" || { echo "not as it should be:$$failed"; exit 1; }

prices: .build/tools ## Take the prices of the pinned genai-prices
	$(BIN)/python -m turnlog.pricing.generate

clean: ## Remove everything that was made
	rm -rf .build .venv dist src/turnlog/server/static web/node_modules web/dist tests/conformance/node_modules
	rm -rf $(EXAMPLE)/node_modules $(EXAMPLE)/dist
	rm -rf .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# Debian's chromium: the browser tests download none of their own. Its shell without windows takes less than half of the
# time; where that cannot be installed, or only with a password, the whole browser does.
browser:
	@{ command -v chromium-headless-shell$(if $(ROOT), || command -v chromium); } >/dev/null || { \
		$(ROOT) apt-get update -qq && \
		DEBIAN_FRONTEND=noninteractive $(ROOT) apt-get install -qq -y --no-install-recommends \
			chromium-headless-shell fonts-liberation; \
	} || command -v chromium

# Newer versions: make lock UPGRADE=1. uv resolves for every platform and Python at once. Extras stay in the locks:
# older versions of pip look for "package[extra]" apart from "package", and refuse a newer release, whose hash is missing.
LOCK := .build/lock/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-strip-extras \
	--no-emit-index-url $(if $(UPGRADE),--upgrade)
lock: export UV_CUSTOM_COMPILE_COMMAND = make lock
lock: ## Resolve the dependencies again
	$(PYTHON) -m venv --without-pip .build/lock
	$(PYTHON) -m pip --python .build/lock/bin/python --disable-pip-version-check install --quiet uv==0.13.8
	$(LOCK) pyproject.toml -o requirements/runtime.lock
	$(LOCK) --group build -c requirements/runtime.lock -o requirements/build.lock
	$(LOCK) pyproject.toml --group dev -c requirements/runtime.lock -c requirements/build.lock -o requirements/test.lock
	$(LOCK) pyproject.toml --group docs -c requirements/test.lock -o requirements/docs.lock

# What has been made, and from what.

.venv/pyvenv.cfg:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "turnlog needs Python 3.11 or newer: make PYTHON=…")'
	$(PYTHON) -m venv --without-pip .venv

.build/venv: requirements/runtime.lock requirements/build.lock pyproject.toml .venv/pyvenv.cfg
	$(PIP) --require-hashes -r requirements/runtime.lock -r requirements/build.lock
	$(PIP) --no-deps --no-build-isolation --editable .
	@mkdir -p .build && touch $@

# pip compiles what it installs, but not what stays where it is. Where Python may not write bytecode by itself, every
# start would compile it anew.
.build/bytecode: $(SOURCES) .build/venv
	$(BIN)/python -m compileall -q -j 0 src/turnlog
	@touch $@

.build/docs: requirements/docs.lock .build/venv
	$(PIP) --require-hashes -r requirements/docs.lock
	@touch $@

.build/tools: requirements/test.lock .build/venv
	$(PIP) --require-hashes -r requirements/test.lock
	@touch $@

web/node_modules/.package-lock.json: web/package.json web/package-lock.json
	cd web && npm ci
	@touch $@

$(CHECKERS): tests/conformance/package.json tests/conformance/package-lock.json
	cd tests/conformance && npm ci
	@touch $@

$(EXAMPLE)/dist/index.html: $(EXAMPLE)/package-lock.json $(wildcard $(EXAMPLE)/*.* $(EXAMPLE)/src/*)
	cd $(EXAMPLE) && npm ci && npm run build
	@touch $@

src/turnlog/server/static/index.html: web/node_modules/.package-lock.json $(WEB_SOURCES)
	cd web && npm run build
	@touch $@
