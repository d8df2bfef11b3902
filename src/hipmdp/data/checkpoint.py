"""A pytree of arrays as one file: a JSON header and the raw leaves. Reading it never runs code.

hipmdp <kind> <schema>\\n          who wrote it
<length of the header>\\n
{"leaves": [{"shape", "dtype"}, …], "checksum": sha256 of the leaves, "meta": anything}
the leaves, little-endian, one after the other
"""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from hipmdp.data.files import whole_file

SCHEMA = 1
Tree = TypeVar("Tree")


def _to_array(leaf: Any) -> np.ndarray:
    if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    return np.asarray(leaf)


def save_checkpoint(path: Path, kind: str, tree: Any, meta: dict[str, Any]) -> None:
    """Write `tree` and `meta`, whole or not at all."""
    arrays = [_to_array(leaf) for leaf in jax.tree.leaves(tree)]
    payload = b"".join(a.astype(a.dtype.newbyteorder("<")).tobytes() for a in arrays)
    header = {
        "leaves": [{"shape": list(a.shape), "dtype": a.dtype.name} for a in arrays],
        "checksum": hashlib.sha256(payload).hexdigest(),
        "meta": meta,
    }
    text = json.dumps(header).encode()
    with whole_file(path) as temporary:
        temporary.write_bytes(b"hipmdp %s %d\n%d\n" % (kind.encode(), SCHEMA, len(text)) + text + payload)


def load_checkpoint(path: Path, kind: str, template: Callable[[dict[str, Any]], Tree]) -> tuple[Tree, dict[str, Any]]:
    """Read what `save_checkpoint` wrote, shaped like `template(meta)`; anything else is a `ValueError`."""
    what = f"{str(path)!r}"
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ValueError(f"Cannot read {what}: {error.strerror}.") from None
    first, _, rest = raw.partition(b"\n")
    words = first.split()
    if len(words) != 3 or words[0] != b"hipmdp" or words[1] != kind.encode() or not words[2].isdigit():
        raise ValueError(f"{what} is not a hipmdp {kind} file.")
    if int(words[2]) > SCHEMA:
        raise ValueError(
            f"{what} has schema {int(words[2])}; this hipmdp reads up to {SCHEMA}: install a newer hipmdp."
        )
    length, _, rest = rest.partition(b"\n")
    if not length.isdigit() or len(rest) < int(length):
        raise ValueError(f"{what} is truncated.")
    try:
        header = json.loads(rest[: int(length)])
        shapes = [(tuple(leaf["shape"]), np.dtype(leaf["dtype"])) for leaf in header["leaves"]]
        checksum, meta = header["checksum"], header["meta"]
        sizes = [int(np.prod(shape, dtype=np.int64)) * dtype.itemsize for shape, dtype in shapes]
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"The header of {what} is damaged.") from None
    payload = rest[int(length) :]
    if len(payload) < sum(sizes):
        raise ValueError(f"{what} is truncated.")
    if hashlib.sha256(payload).hexdigest() != checksum:
        raise ValueError(f"{what} is damaged: its checksum does not match.")
    try:
        leaves, treedef = jax.tree.flatten(template(meta))
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"The header of {what} is damaged.") from None
    if [(a.shape, a.dtype) for a in map(_to_array, leaves)] != shapes:
        raise ValueError(f"{what} was written with other settings: its arrays have other shapes.")
    result, start = [], 0
    for leaf, (shape, dtype), size in zip(leaves, shapes, sizes, strict=True):
        array = np.frombuffer(payload, dtype.newbyteorder("<"), offset=start, count=size // dtype.itemsize)
        value = jnp.asarray(array.reshape(shape).astype(dtype))
        if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            value = jax.random.wrap_key_data(value)
        result.append(value)
        start += size
    return jax.tree.unflatten(treedef, result), meta
