"""Named random streams: registered, all different, and the only source of keys."""

import re
from pathlib import Path

import jax
import numpy as np
import pytest

import hipmdp
from hipmdp._random import STREAMS, host_seed, numpy_generator, root_key, stream

SOURCES = Path(hipmdp.__file__).parent


def data(key):
    return tuple(np.asarray(jax.random.key_data(key)).tolist())


def test_registered_streams_and_neighbouring_seeds_differ():
    """Also from each other's members, and from the parts of a split of any of them."""
    seen = {}
    for seed in range(4):
        root = root_key(seed)
        named = {
            (seed, name, index): stream(root, name, *index) for name in STREAMS for index in ((), (0,), (1,), (0, 0))
        }
        named |= {(seed, "root", ()): root}
        parts = {
            (*name, "split", i): part for name, key in named.items() for i, part in enumerate(jax.random.split(key, 3))
        }
        for name, key in (named | parts).items():
            assert seen.setdefault(data(key), name) == name
    assert len(seen) == 4 * (4 * len(STREAMS) + 1) * 4


def test_an_unregistered_stream_is_an_error():
    with pytest.raises(ValueError, match="'adaptation/luck' is not a registered random stream"):
        stream(root_key(0), "adaptation/luck")


def test_indices_may_be_traced():
    inside = jax.jit(lambda i: stream(root_key(3), "families/prior", i))(5)
    assert data(inside) == data(stream(root_key(3), "families/prior", 5))


def test_keys_are_made_nowhere_else():
    """`fold_in` and `random.key(` would be streams without a name; no arithmetic on seeds."""
    pattern = re.compile(r"fold_in|random\.key\(|PRNGKey\(|\bseed \+ |\+ seed\b")
    found = [
        f"{path.relative_to(SOURCES)}:{number}: {line.strip()}"
        for path in sorted(SOURCES.rglob("*.py"))
        if path.name != "_random.py"
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if pattern.search(line)
    ]
    assert found == []


def test_every_registered_stream_is_used():
    text = "".join(path.read_text(encoding="utf-8") for path in SOURCES.rglob("*.py") if path.name != "_random.py")
    assert [name for name in STREAMS if f'"{name}"' not in text] == []


def test_seeds_for_other_libraries_come_from_keys():
    first, second = (stream(root_key(0), "collect/run", i) for i in (0, 1))
    assert 0 <= host_seed(first) < 2**31
    assert host_seed(first) != host_seed(second)
    draws = [numpy_generator(key).integers(1 << 30) for key in (first, first, second)]
    assert draws[0] == draws[1] != draws[2]


def test_the_upper_half_of_a_seed_counts():
    """JAX alone would take 2³² for 0; small seeds give what they always gave."""
    seeds = (0, 5, 2**32 - 1, 2**32, 2**32 + 5, 2**40, 2**63 - 1)
    assert len({data(root_key(seed)) for seed in seeds}) == len(seeds)
    assert data(root_key(5)) == data(jax.random.key(5))
    for seed in (-1, 2**63, 10**20):
        with pytest.raises(ValueError, match="seed must be"):
            root_key(seed)
