"""Strictness for every test: no silent dtype or rank promotion; warnings are errors (pyproject.toml)."""

import contextlib
import ctypes
import gc
import hashlib
import os
import platform
from importlib.metadata import version
from pathlib import Path

# Compiled programs are shared by the tests, their workers and the processes they start: a third of the suite's time.
# Programs are of one jaxlib and one processor, so that is what the directory is named after.
_ABOUT = Path("/proc/cpuinfo")
_PROCESSOR = (
    next((line for line in _ABOUT.read_text().splitlines() if line.startswith("flags")), "")
    if (_ABOUT.exists())
    else platform.processor()
)
_NAME = f"jax-{version('jaxlib')}-{hashlib.sha256(_PROCESSOR.encode()).hexdigest()[:12]}"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / ".pytest_cache" / _NAME))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
# Tests compile more than they compute: XLA's older emitters compile our loops in half the time, though HIV then runs a
# third slower; level 0 saves another fifth, but HIV's integrator then takes twice as long (`make unit` has both).
_LEVEL = os.environ.get("HIPMDP_TEST_XLA_LEVEL", "1")
_QUICK = f"--xla_backend_optimization_level={_LEVEL} --xla_cpu_use_fusion_emitters=false"
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {_QUICK}".strip()

import jax
import pytest
from hypothesis import settings

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

# The first call of anything compiles, so examples have no deadline. CI must not fail by a lucky find in code that the
# change did not touch: there the examples are fixed, everywhere else they are drawn anew.
settings.register_profile("explore", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("ci" if os.environ.get("CI") else "explore")

HEAVY = (
    "cli/test_cli.py", "online/test_online.py", "pretraining/test_amortise.py", "docs/test_docs.py",
    "families/test_contract.py", "adaptation/test_cartpole.py", "from_logs/test_identify.py", "cli/test_logs_cli.py",
    "study/test_study.py", "adaptation/test_algorithm.py", "dynamics/test_belief.py", "study/test_own_family.py",
    "dynamics/test_fit.py", "pretraining/test_collect.py", "families/test_gymnasium_family.py",
    "report/test_page_browser.py",
)  # fmt: skip
"""Files that take longest, so begun first: one that is begun last leaves the other workers with nothing to do."""


def pytest_collection_modifyitems(items):
    """Heavy files first, the others as they come (`make test` tells xdist to keep this order)."""
    places = {Path(__file__).parent / name: place for place, name in enumerate(HEAVY)}
    items.sort(key=lambda item: places.get(item.path, len(places)))


MOST_MAPS, MOST_BYTES = 30_000, 1_000_000_000
"""A process may have 65,530 maps of memory; every compiled program takes some, and the compiler crashes without. Beyond
so many bytes the programs of earlier tests are dropped too: they come back from the cache on disk when needed."""


@pytest.fixture(autouse=True)
def _forget_programs():
    """Programs of earlier tests are dropped when they take too much."""
    yield
    status, maps = Path("/proc/self/statm"), Path("/proc/self/maps")
    if not status.exists():
        return
    resident = int(status.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    if resident > MOST_BYTES or maps.read_text().count("\n") > MOST_MAPS:
        jax.clear_caches()
        gc.collect()
        # glibc keeps what was freed; other C libraries have no such function.
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)
