"""Checkpoints: bits survive; damaged files are refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hipmdp.data.checkpoint import load_checkpoint, save_checkpoint
from tests.fuzz.effort import examples


def tree():
    return {
        "a": jnp.asarray([[1.5]]), "b": jnp.arange(3), "c": jnp.asarray(True), "k": jax.random.key(7),
        "n": np.float64(0.1),
    }  # fmt: skip


def test_round_trip_keeps_shapes_dtypes_keys_and_bits(tmp_path):
    path = tmp_path / "c.checkpoint"
    save_checkpoint(path, "thing", tree(), {"x": 1})
    again, meta = load_checkpoint(path, "thing", lambda meta: tree())
    assert meta == {"x": 1}
    assert again["a"].shape == (1, 1)
    assert jnp.array_equal(jax.random.normal(again["k"]), jax.random.normal(tree()["k"]))
    np.testing.assert_array_equal(again["b"], [0, 1, 2])
    assert bool(again["c"])


def refused(path, kind="thing", template=None):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        load_checkpoint(path, kind, template or (lambda meta: tree()))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_damaged_foreign_and_newer_files(tmp_path):
    path = tmp_path / "c.checkpoint"
    save_checkpoint(path, "thing", tree(), {})
    raw = path.read_bytes()
    assert "is not a hipmdp model file" in refused(path, "model")
    assert "other shapes" in refused(path, template=lambda meta: {"a": jnp.zeros(2)})
    path.write_bytes(raw[:-3])
    assert "checksum" in refused(path)
    path.write_bytes(raw[:-1] + bytes([raw[-1] ^ 1]))
    assert "checksum" in refused(path)
    path.write_bytes(raw.replace(b"thing 2", b"thing 9", 1))
    assert "newer hipmdp" in refused(path)
    path.write_bytes(raw.replace(b"thing 2", b"thing 1", 1))
    assert "make the thing again" in refused(path)
    path.write_bytes(b"")
    assert "is not a hipmdp" in refused(path)
    assert "Cannot read" in refused(tmp_path / "none")


@settings(max_examples=examples(200), deadline=None)
@given(position=st.integers(0, 400), byte=st.integers(0, 255), cut=st.integers(0, 400))
def test_any_damage_is_noticed(tmp_path_factory, position, byte, cut):
    path = tmp_path_factory.mktemp("fuzz") / "c.checkpoint"
    save_checkpoint(path, "thing", tree(), {})
    whole = path.read_bytes()
    raw = bytearray(whole)
    raw[position % len(raw)] = byte
    damaged = bytes(raw[: len(raw) - cut % len(raw)])
    path.write_bytes(damaged)
    if damaged != whole:
        refused(path)
