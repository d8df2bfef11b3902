"""A pytree of arrays as one file: a JSON header and the raw leaves. Reading it never runs code.

hipmdp <kind> <schema> <sha256 of all that follows>\\n
<length of the header>\\n
{"leaves": [{"shape", "dtype"}, …], "meta": anything}
the leaves, little-endian, one after the other
"""

import hashlib
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from hipmdp._files import atomic_write

SCHEMA = 2
"""Raised when a file of this version could not be read by an earlier one."""
Tree = TypeVar("Tree")
_DTYPES = {"bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64"}
DAMAGE = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError, MemoryError)
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
    header = {"leaves": [{"shape": list(a.shape), "dtype": a.dtype.name} for a in arrays], "meta": meta}
    text = json.dumps(header).encode()
    content = b"".join([b"%d\n" % len(text), text, *(a.astype(a.dtype.newbyteorder("<")).tobytes() for a in arrays)])
    checksum = hashlib.sha256(content).hexdigest()
    with atomic_write(path) as temporary, temporary.open("wb") as file:
        file.write(f"hipmdp {kind} {SCHEMA} {checksum}\n".encode())
        file.write(content)


def read_checkpoint(path: Path, kind: str, remedy: str = "") -> memoryview:
    """What follows the first line of a checkpoint, if it is whole; otherwise a `ValueError` with the `remedy`."""
    what = f"{str(path)!r}"
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ValueError(f"Cannot read {what}: {error.strerror}.") from None
    first, _, _ = raw.partition(b"\n")
    words = first.split(b" ")
    if len(words) < 3 or words[:2] != [b"hipmdp", kind.encode()] or not re.fullmatch(rb"[0-9]{1,4}", words[2]):
        raise ValueError(f"{what} is damaged, or is not a hipmdp {kind} file{remedy}.")
    schema = int(words[2])
    if schema > SCHEMA:
        raise ValueError(f"{what} has schema {schema}; this hipmdp reads {SCHEMA}: install a newer hipmdp.")
    if schema < SCHEMA:
        raise ValueError(f"{what} has schema {schema}, which this hipmdp does not read: make the {kind} again{remedy}.")
    content = memoryview(raw)[len(first) + 1 :]
    if [hashlib.sha256(content).hexdigest().encode()] != words[3:]:
        raise ValueError(f"{what} is damaged: its checksum does not match{remedy}.")
    return content


def load_checkpoint(
    path: Path, kind: str, template: Callable[[dict[str, Any]], Tree], remedy: str = ""
) -> tuple[Tree, dict[str, Any]]:
    """Read what `save_checkpoint` wrote, shaped like `template(meta)`; anything else is a `ValueError`."""
    what = f"{str(path)!r}"
    content = read_checkpoint(path, kind, remedy)
    length, _, _ = bytes(content[:20]).partition(b"\n")
    try:
        start, end = len(length) + 1, len(length) + 1 + int(length)
        header = json.loads(bytes(content[start:end]))
        shapes = [_leaf_shape(leaf) for leaf in header["leaves"]]
        meta = header["meta"]
        sizes = [math.prod(shape) * dtype.itemsize for shape, dtype in shapes]
        if len(content) - end != sum(sizes):
            raise ValueError
    except DAMAGE:
        raise ValueError(f"The header of {what} is damaged.") from None
    payload = content[end:]
    try:
        leaves, treedef = jax.tree.flatten(template(meta))
    except DAMAGE as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise ValueError(f"The header of {what} is damaged ({reason}).") from None
    if [_expected(leaf) for leaf in leaves] != shapes:
        raise ValueError(f"{what} was written with other settings: its arrays have other shapes.")
    result, start = [], 0
    for leaf, (shape, dtype), size in zip(leaves, shapes, sizes, strict=True):
        array = np.frombuffer(payload, dtype.newbyteorder("<"), offset=start, count=size // dtype.itemsize)
        value = jnp.asarray(array.reshape(shape).astype(dtype))
        result.append(jax.random.wrap_key_data(value) if _is_key(leaf) else value)
        start += size
    return jax.tree.unflatten(treedef, result), meta
