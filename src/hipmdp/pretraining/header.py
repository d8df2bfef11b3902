"""The header of a model file: every value is checked for its type and range before anything is made from it."""

from typing import Any, NamedTuple

import numpy as np

from hipmdp._errors import known_name
from hipmdp._typed import typed
from hipmdp.data.logs.columns import LogColumns
from hipmdp.dynamics.oracle import OracleLatents
from hipmdp.families.specification import Specification
from hipmdp.settings.dynamics import DynamicsConfig

MODEL_METHODS = ("embedded", "linear", "average", "scratch", "model_free", "blind", "amortised")
"""Methods that models are made for. `refined` uses an amortised one."""
MOST_LAYERS = 100
"""Layers of a network that a file may promise."""


class DynamicsHeader(NamedTuple):
    """What the header says of T̂."""

    config: DynamicsConfig
    instances: int


class Header(NamedTuple):
    """What the header of a model file says, by the names of `Model` or as the shape of what is stored."""

    method: str
    specification: dict[str, Any]
    centre: tuple[float, ...]
    scale: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    names: tuple[str, ...]
    metrics: dict[str, float]
    dynamics: DynamicsHeader | None
    policy: tuple[int, ...] | None
    latent_policy: tuple[int, ...] | None
    normalised: tuple[str, ...]
    """Which of the two policies have layer normalisation."""
    reward_head: int | None
    oracle: OracleLatents | None
    support: int | None
    metadata: dict[str, Any]


def read_header(meta: Any) -> Header:
    """The header, if each value has its type and can be true; otherwise a `ValueError`."""
    metrics = typed(dict[str, float], meta["metrics"], "metrics", nan=True)
    header: Header = typed(Header, {**meta, "metrics": {}}, "header")._replace(metrics=metrics)
    size = Specification.from_dict(header.specification).state_size
    known_name("method", header.method, MODEL_METHODS)
    ranges = [header.centre, header.scale, *(values for values in (header.low, header.high) if values)]
    if any(len(values) != size or not np.isfinite(values).all() for values in ranges):
        raise ValueError("centre, scale, low and high must have a number per state dimension")
    if min(header.scale) <= 0:
        raise ValueError("scale must be positive")
    counts = [header.dynamics and header.dynamics.instances, header.reward_head, header.support]
    if any(count is not None and count < 0 for count in counts):
        raise ValueError("counts must not be negative")
    for sizes in (header.policy, header.latent_policy):
        if sizes is not None and (not 2 <= len(sizes) <= MOST_LAYERS or min(sizes) < 1):
            raise ValueError("the layers of a policy must have units")
    if header.dynamics is not None and len(header.dynamics.config.hidden) > MOST_LAYERS:
        raise ValueError("the network has too many layers")
    oracle = header.oracle
    if oracle is not None and not (len(oracle.names) == len(oracle.centre) == len(oracle.scale) and all(oracle.scale)):
        raise ValueError("the true parameters must each have a centre and a scale")
    if "columns" in header.metadata:
        typed(LogColumns, header.metadata["columns"], "columns")
    return header
