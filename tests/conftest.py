"""Strictness for every test: no silent dtype or rank promotion; warnings are errors (pyproject.toml)."""

import os

import jax
from hypothesis import settings

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

# The first call of anything compiles, so examples have no deadline. CI must not fail by a lucky find in code that the
# change did not touch: there the examples are fixed, everywhere else they are drawn anew.
settings.register_profile("explore", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "explore")
