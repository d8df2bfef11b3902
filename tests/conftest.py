"""Strictness for every test: no silent dtype or rank promotion; warnings are errors (pyproject.toml)."""

import jax

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")
