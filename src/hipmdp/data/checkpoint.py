"""A pytree of arrays as one file: a JSON header and the raw leaves. Reading it never runs code.

hipmdp <kind> <schema>\\n          who wrote it
<length of the header>\\n
{"leaves": [{"shape", "dtype"}, …], "checksum": sha256 of the leaves, "meta": anything}
the leaves, little-endian, one after the other
"""

import hashlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from hipmdp.data.files import whole_file

SCHEMA = 1
Tree = TypeVar("Tree")
_DTYPES = {"bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64"}
_DAMAGE = (ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError, RecursionError, MemoryError)
"""What a header that lies can lead to."""


def _is_key(leaf: Any) -> bool:
    return hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _to_array(leaf: Any) -> np.ndarray:
    return np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)


def _expected(leaf: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and dtype of a template's leaf, which may have no values."""
    if isinstance(leaf, jax.ShapeDtypeStruct):
        return leaf.shape, np.dtype(leaf.dtype)
    array = _to_array(leaf)
    return array.shape, array.dtype


def _leaf_shape(leaf: dict[str, Any]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """What the header says of one leaf."""
    shape = tuple(leaf["shape"])
    if leaf["dtype"] not in _DTYPES or any(type(side) is not int or side < 0 for side in shape):
        raise ValueError
    return shape, np.dtype(leaf["dtype"])


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
    if not length.isdigit() or len(length) > 12 or len(rest) < int(length):
        raise ValueError(f"{what} is truncated.")
    try:
        header = json.loads(rest[: int(length)])
        shapes = [_leaf_shape(leaf) for leaf in header["leaves"]]
        checksum, meta = header["checksum"], header["meta"]
        sizes = [math.prod(shape) * dtype.itemsize for shape, dtype in shapes]
    except _DAMAGE:
        raise ValueError(f"The header of {what} is damaged.") from None
    payload = rest[int(length) :]
    if len(payload) < sum(sizes):
        raise ValueError(f"{what} is truncated.")
    if hashlib.sha256(payload).hexdigest() != checksum:
        raise ValueError(f"{what} is damaged: its checksum does not match.")
    try:
        leaves, treedef = jax.tree.flatten(template(meta))
    except _DAMAGE:
        raise ValueError(f"The header of {what} is damaged.") from None
    if [_expected(leaf) for leaf in leaves] != shapes:
        raise ValueError(f"{what} was written with other settings: its arrays have other shapes.")
    result, start = [], 0
    for leaf, (shape, dtype), size in zip(leaves, shapes, sizes, strict=True):
        array = np.frombuffer(payload, dtype.newbyteorder("<"), offset=start, count=size // dtype.itemsize)
        value = jnp.asarray(array.reshape(shape).astype(dtype))
        result.append(jax.random.wrap_key_data(value) if _is_key(leaf) else value)
        start += size
    return jax.tree.unflatten(treedef, result), meta
