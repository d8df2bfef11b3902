# Two commands: `make demo` and `make test`. Both create .venv and install into it what they need; so does `make test-ray`.
PYTHON ?= python3
BIN := .venv/bin
JOBS ?= 2
MINUTES ?= 5
PYTEST = PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder
# Tests that compute more than they compile: they run with XLA's optimisations (tests/conftest.py).
COMPUTE := tests/families tests/oracles tests/adaptation/test_cartpole.py

.PHONY: demo test test-ray fuzz docs lint types unit bench constraints clean

demo: .venv/.core
	$(BIN)/hipmdp demo --out demo

test: lint types unit

lint: .venv/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: .venv/.test
	$(BIN)/mypy

# Heavy files first (tests/conftest.py); the processes that tests start may keep compiled modules.
unit: .venv/.test
	HIPMDP_TEST_XLA_LEVEL=0 $(PYTEST) $(addprefix --ignore=,$(COMPUTE))
	$(PYTEST) $(COMPUTE)

# A study on a Ray cluster of two nodes, one of which dies.
test-ray: .venv/.ray
	$(BIN)/python -m pytest -m ray tests/ray_cluster

# As long as asked (MINUTES for each): mutated and lying files and odd command lines; kills. Then odd logs, twenty times as many
# as in the suite.
fuzz: .venv/.test
	$(BIN)/python -m tests.fuzz --minutes $(MINUTES) --files 1000000 --seed $$(date +%s)
	$(BIN)/python benchmarks/kills.py --minutes $(MINUTES) --kills 1000000 --seed $$(date +%s) --dry
	HIPMDP_FUZZ=20 $(BIN)/python -m pytest -q tests/data/test_malformed.py tests/data/test_log_properties.py \
	  tests/data/test_checkpoint.py tests/study/test_hostile.py tests/test_outputs.py

# The documentation as a site of its own.
docs: .venv/.test
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir site

.venv/.core: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else f"hipmdp needs Python 3.11 or newer, this is {v[0]}.{v[1]}: try make PYTHON=python3.12")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	touch $@

.venv/.test: .venv/.core
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test,oracles,gp,minari,tensorboard,docs]'
	touch $@

.venv/.ray: .venv/.test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[ray]'
	touch $@

# Every benchmark writes its last measured result beside itself.
bench: .venv/.test
	$(BIN)/python benchmarks/environment_speed.py
	$(BIN)/python benchmarks/hiv_integrators.py
	$(BIN)/python benchmarks/instance_prior.py
	$(BIN)/python benchmarks/collect_speed.py
	$(BIN)/python benchmarks/ddqn.py
	$(BIN)/python benchmarks/best_known.py
	$(BIN)/python benchmarks/dynamics_speed.py
	$(BIN)/python benchmarks/hiv_pretrain.py
	$(BIN)/python benchmarks/joint_uncertainty.py
	$(BIN)/python benchmarks/prediction_error.py
	$(BIN)/python benchmarks/scaling.py
	$(BIN)/python benchmarks/adapt.py --jobs $(JOBS)
	$(BIN)/python benchmarks/adapt_speed.py
	$(BIN)/python benchmarks/logs_speed.py
	$(BIN)/python benchmarks/first_episode.py
	$(BIN)/python benchmarks/identification.py
	$(BIN)/python benchmarks/online.py

# Resolve the newest releases that fit pyproject.toml, all extras together, and pin them.
constraints:
	$(PYTHON) -m venv .venv-constraints
	.venv-constraints/bin/python -m pip install --quiet '.[minari,ray,gp,tensorboard,examples,docs,test,oracles]'
	(echo '# The versions this release was tested with; written by `make constraints`.'; \
	 .venv-constraints/bin/python -m pip freeze --exclude hipmdp) > constraints.txt
	rm -rf .venv-constraints

clean:
	rm -rf .venv demo site
