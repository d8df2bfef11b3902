"""The run-time type checker of the tests: beartype, with ints allowed where floats are expected (PEP 484)."""

from beartype import BeartypeConf, beartype

typechecker = beartype(conf=BeartypeConf(is_pep484_tower=True))
