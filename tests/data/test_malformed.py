"""Files that lie, are cut off or were never ours: one clear sentence each, never a crash, a hang or a traceback."""

import hashlib
import io
import json
import warnings
from dataclasses import replace

import jax
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hipmdp
from hipmdp.data.logs.columns import LogColumns
from hipmdp.data.logs.read import LeftOutWarning, read_logs
from hipmdp.dynamics.model import new_dynamics
from hipmdp.dynamics.reward_head import new_reward_head
from hipmdp.pretraining.header import Header
from hipmdp.settings.dqn import DDQNConfig
from hipmdp.settings.dynamics import DynamicsConfig
from tests.fuzz.effort import examples
from tests.systems.fleet import fleet

COLUMNS = LogColumns(state=("x", "v"), action="push", instance="machine", episode="run", time="t", reward="gain")
NAMES = ("machine", "run", "t", "x", "v", "push", "gain")
CELLS = (
    "",
    "nan",
    "inf",
    "-inf",
    "1e999",
    "abc",
    "-1",
    "0",
    "1",
    "2.5",
    "True",
    "2024-01-01",
    '"',
    "\x00",
    "é",
    "1;2",
    "NULL",
    "9007199254740993",
    "0001-01-01",
    "²",
    "3.0",
)


def settled(count):
    # The directory is shared between examples, whose file is written anew each time.
    return settings(
        max_examples=examples(count),
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
        database=None,
    )


def refused_in_words(function):
    """True if it was refused; whatever else is raised fails the test."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LeftOutWarning)
            function()
    except ValueError as error:
        told = str(error)
    else:
        return False
    assert told.strip()
    assert "\n" not in told
    return True


def good_table():
    count = 12
    return pa.table(
        {
            "machine": ["a"] * 6 + ["b"] * 6, "run": [1] * count, "t": [float(i % 6) for i in range(count)],
            "x": [float(i) for i in range(count)], "v": [0.5 * i for i in range(count)],
            "push": ["left", "right"] * 6, "gain": [1.0] * count,
        }
    )  # fmt: skip


def good_bytes(kind):
    buffer = io.BytesIO()
    if kind == "parquet":
        pq.write_table(good_table(), buffer)
    elif kind == "npz":
        np.savez(buffer, **{n: np.asarray(good_table()[n].to_pylist()) for n in NAMES})
    else:
        lines = [",".join(map(str, row.values())) for row in good_table().to_pylist()]
        buffer.write(("\n".join([",".join(NAMES), *lines]) + "\n").encode())
    return buffer.getvalue()


GOOD = {kind: good_bytes(kind) for kind in ("parquet", "npz", "csv")}
FAULTS = st.sampled_from([{}, {"drop": True}, {"split": True}])
CHANGES = st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=12)


def mutated(raw, changes, cut):
    data = bytearray(raw)
    for place, value in changes:
        data[place % len(data)] = value
    return bytes(data[: max(1, len(data) - cut)])


def test_the_files_that_are_mutated_are_good_ones(tmp_path):
    for kind, raw in GOOD.items():
        (tmp_path / f"log.{kind}").write_bytes(raw)
        assert len(read_logs(tmp_path / f"log.{kind}", COLUMNS, least=1)) == 10


@settled(500)
@given(kind=st.sampled_from(sorted(GOOD)), changes=CHANGES, cut=st.sampled_from([0, 0, 1, 7, 100]), faults=FAULTS)
def test_changed_and_cut_logs(tmp_path, kind, changes, cut, faults):
    path = tmp_path / f"log.{kind}"
    path.write_bytes(mutated(GOOD[kind], changes, cut))
    refused_in_words(lambda: read_logs(path, COLUMNS, least=1, **faults))


@settled(400)
@given(kind=st.sampled_from(sorted(GOOD)), raw=st.binary(max_size=400))
def test_bytes_that_are_no_log(tmp_path, kind, raw):
    path = tmp_path / f"log.{kind}"
    path.write_bytes(raw)
    assert refused_in_words(lambda: read_logs(path, COLUMNS))


@settled(500)
@given(
    cells=st.lists(st.lists(st.sampled_from(CELLS), min_size=7, max_size=7), min_size=1, max_size=8),
    faults=FAULTS,
)
def test_cells_that_are_no_numbers(tmp_path, cells, faults):
    path = tmp_path / "log.csv"
    path.write_text("\n".join([",".join(NAMES), *(",".join(row) for row in cells)]), encoding="utf-8")
    assert refused_in_words(lambda: read_logs(path, COLUMNS, **faults))


@pytest.fixture(scope="module")
def model_bytes(tmp_path_factory):
    directory = tmp_path_factory.mktemp("model")
    batch = fleet(directory, (-1.0, 1.0), runs=1)
    # Untrained, but with everything that a model file can hold.
    model = hipmdp.pretrain(batch, "scratch", config=DynamicsConfig(hidden=(4,), latent_size=2), quiet=True)
    dynamics = model.need_dynamics("test")
    scaling, key = dynamics.scaling, jax.random.key(0)
    model = replace(
        model,
        method="embedded",
        dynamics=new_dynamics(dynamics.config, batch.specification, scaling, 2, key=key),
        reward_head=new_reward_head(batch.specification, scaling, 2, key=key),
        policy=model.new_network(DDQNConfig(hidden=(4,)), key),
        metrics={"error_on_held_out_episodes": 0.1},
    )
    model.save(directory / "m.hipmdp")
    return (directory / "m.hipmdp").read_bytes()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 10**13) | st.floats() | st.text(max_size=5)
    | st.sampled_from(["float32", "object", "embedded", "|O8", "i4,i4", "__class__"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


def paths_of(value, here=()):
    """The way to every value of a JSON document."""
    yield here
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in items:
        yield from paths_of(part, (*here, key))


def with_header(raw, change):
    """A model file whose header was changed by somebody who knows how it is written."""
    _, length, rest = raw.split(b"\n", 2)
    text = json.dumps(change(json.loads(rest[: int(length)]))).encode()
    return sealed(text, rest[int(length) :])


def sealed(text, payload=b""):
    """A model file whose checksum is right."""
    content = b"%d\n" % len(text) + text + payload
    return b"hipmdp model 2 %s\n" % hashlib.sha256(content).hexdigest().encode() + content


def replaced(document, place, value, remove):
    if not place:
        return value
    inner = document
    for key in place[:-1]:
        inner = inner[key]
    if remove:
        del inner[place[-1]]
    else:
        inner[place[-1]] = value
    return document


@settled(350)
@given(number=st.integers(0, 10**6), value=JSON, remove=st.booleans())
def test_headers_that_lie(tmp_path, model_bytes, number, value, remove):
    def change(header):
        places = list(paths_of(header))
        return replaced(header, places[number % len(places)], value, remove)

    path = tmp_path / "m.hipmdp"
    path.write_bytes(with_header(model_bytes, change))
    refused_in_words(lambda: hipmdp.load(path))


@pytest.mark.parametrize(
    ("place", "value", "told"),
    [
        ("dynamics.config.rounds", float("nan"), "rounds must be a whole number"),
        ("dynamics.config.rounds", -1, "rounds of DynamicsConfig must be from 0"),
        ("dynamics.config.weight_steps", [[]], "weight_steps must be a whole number"),
        ("dynamics.config.alpha", 0, "alpha"),
        ("dynamics.config.alpha", float("nan"), "alpha must be a number, got NaN"),
        ("dynamics.config.hidden", [0], "hidden"),
        ("dynamics.config.prior_variance", 1e308, "prior_variance of DynamicsConfig must be from 0 to 3.4e"),
        ("dynamics.config.role", "evil:role", "role must be one of embedded"),
        ("dynamics.instances", -1, "negative"),
        ("dynamics", {}, "has no 'config'"),
        ("specification.state_scale", [""], r"state_scale\[0\] must be a number"),
        ("specification.state_scale", [0.0], "scales positive"),
        ("specification.discount", float("inf"), "discount"),
        ("specification.horizon", True, "horizon must be a whole number"),
        ("specification.schema", float("inf"), "unknown 'schema'"),
        ("policy", False, "policy must be a list"),
        ("policy", [], "layers of a policy"),
        ("scale", [0.0], "scale must be positive"),
        ("centre", [float("inf"), 1.0], "a number per state dimension"),
        ("reward_head", "2", "reward_head must be a whole number"),
        ("support", 10**300, "too large"),
        ("oracle", {"names": ["a"], "centre": [0.0], "scale": []}, "true parameters"),
        ("metrics", {"error": "low"}, "must be a number"),
        ("metadata", [], "must be a mapping"),
        ("metadata.columns", {"state": "x", "action": "a"}, "state must be a list"),
        ("method", "evil:method", "Unknown method"),
        ("names", [1], "must be a text"),
    ],
)
def test_values_that_cannot_be_true_are_named(tmp_path, model_bytes, place, value, told):
    *way, last = place.split(".")

    def change(header):
        inner = header["meta"]
        for name in way:
            inner = inner[name]
        inner[last] = value
        return header

    path = tmp_path / "m.hipmdp"
    path.write_bytes(with_header(model_bytes, change))
    with pytest.raises(ValueError, match=f"header of .* is damaged .*{told}") as caught:
        hipmdp.load(path)
    assert "\n" not in str(caught.value)


def test_every_value_of_a_header_is_needed(tmp_path, model_bytes):
    path = tmp_path / "m.hipmdp"
    for name in Header._fields:
        path.write_bytes(with_header(model_bytes, lambda header, n=name: replaced(header, ("meta", n), None, True)))
        assert refused_in_words(lambda: hipmdp.load(path)), name


@settled(300)
@given(changes=CHANGES, cut=st.sampled_from([0, 1, 50, 5000]))
def test_changed_and_cut_models(tmp_path, model_bytes, changes, cut):
    path = tmp_path / "m.hipmdp"
    path.write_bytes(mutated(model_bytes, changes, cut))
    if path.read_bytes() != model_bytes:
        assert refused_in_words(lambda: hipmdp.load(path))


def test_a_header_that_promises_terabytes_is_not_believed(tmp_path, model_bytes):
    def change(header):
        header["meta"]["dynamics"]["instances"] = 10**9
        return header

    path = tmp_path / "m.hipmdp"
    path.write_bytes(with_header(model_bytes, change))
    with pytest.raises(ValueError, match="other shapes"):
        hipmdp.load(path)


def test_a_header_that_is_a_deep_hole_is_not_followed(tmp_path):
    (tmp_path / "m.hipmdp").write_bytes(sealed(b"[" * 100_000))
    with pytest.raises(ValueError, match=r"header of .* is damaged"):
        hipmdp.load(tmp_path / "m.hipmdp")
