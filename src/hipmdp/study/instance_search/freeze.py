"""Frozen instance sets: numbered draws, of which the controllable ones are kept; one file per family.

Controllable draws fill the sets in `ORDER`; the first members of `train32` are `train`. The first draws of those sets
that ship are of version 1 of the random streams: their θ stand in the searches, and numbered draws of today differ.
"""

import dataclasses
import time
from importlib import resources
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np

from hipmdp._files import save_json
from hipmdp._random import root_key, stream
from hipmdp.families.instance import stack_thetas
from hipmdp.families.protocol import BaseFamily
from hipmdp.study.instance_search.searches import Searches

ORDER = ("test", "train32", "validation", "final")
"""Sets that controllable draws fill, one after the other: a set that is added later leaves the others as they are."""
DRAW_SEED = 2017
"""Seed of the numbered draws from the prior."""


def numbered_draws(family: BaseFamily, count: int, stored: dict[int, dict[str, float]]) -> list[dict[str, float]]:
    """θ by name of the first `count` well-behaved draws (or listed members), stored ones first of all."""
    if family.listed_members:
        return [dict(theta) for theta in family.listed_members[:count]]
    if all(number in stored for number in range(count)):
        return [stored[number] for number in range(count)]
    drawn = family.draw_instances(stream(root_key(DRAW_SEED), "families/frozen_draws"), count)._asdict()
    fresh = [{name: float(values[number]) for name, values in drawn.items()} for number in range(count)]
    return [stored.get(number, fresh[number]) for number in range(count)]


def promising_draws(family: BaseFamily, thetas: list[dict[str, float]]) -> list[int]:
    """Numbers of the draws that look controllable."""
    stacked = stack_thetas([family.theta(theta) for theta in thetas])
    looks = jax.vmap(family.simulator("instances").looks_controllable)
    return np.flatnonzero(np.asarray(eqx.filter_jit(looks)(stacked))).tolist()


def collected(searches: Searches, draw: int) -> dict[str, Any] | None:
    """Everything known about a draw, or None if its baselines or first search are missing."""
    results = searches.of_draw(draw, "seed")
    first = next((r for r in results if r["seed"] == 0), None)
    simple = searches.of_draw(draw, "baselines")
    if first is None or not simple:
        return None
    base = simple[0]
    candidates = [r[kind] for r in results for kind in ("best", "succeeding") if r[kind] is not None]
    candidates += searches.of_draw(draw, "other-")
    candidates.append({"return": base["scripted"], "method": "scripted", "rule": base["scripted_rule"]})
    candidates.append({"return": base["constant"], "method": "constant"})
    best = max(candidates, key=lambda c: c["return"])
    healing = [r["succeeding"] for r in results if r["succeeding"] is not None]
    return {
        **base,
        "best": best,
        # The first search alone decides what is controllable, so that more searches never reshuffle the sets.
        "controllable": first["succeeding"] is not None,
        "ever_succeeded": bool(healing),
        "succeeding": max(healing, key=lambda c: c["return"]) if healing else None,
        "searches": len(results),
    }


def is_partial(found: dict[str, Any]) -> bool:
    """Improves at least twofold on random and constant treatment, but does not heal."""
    simple = max(found["random"], found["constant"])
    return not found["ever_succeeded"] and simple > 0 and found["best"]["return"] >= 2 * simple


def assemble(
    family: BaseFamily,
    searches: Searches,
    thetas: list[dict[str, float]],
    *,
    promising: list[int],
    audit: int,
    command: str,
) -> dict[str, Any]:
    """The content of the family's file from all finished searches among the numbered draws `thetas`."""
    sizes, count = family.set_sizes, len(thetas)
    known = [(i, collected(searches, i)) for i in range(count)]
    done = [(i, found) for i, found in known if found is not None]

    def row(i: int, found: dict[str, Any]) -> dict[str, Any]:
        source = {k: v for k, v in found["best"].items() if k != "return"}
        return {
            "draw": i,
            "theta": thetas[i],
            "random": found["random"],
            "constant": found["constant"],
            "scripted": found["scripted"],
            "best_known": found["best"]["return"],
            "best_succeeding": None if found["succeeding"] is None else found["succeeding"]["return"],
            "source": {
                **source,
                "searches": found["searches"],
                "date": time.strftime("%Y-%m-%d"),
                "command": command,
            },
        }

    good = [row(i, found) for i, found in done if found["controllable"]]
    if family.listed_members:
        sets = dict.fromkeys(sizes, good)
    else:
        ends = np.cumsum([0, *(sizes[name] for name in ORDER)])
        sets = {name: good[a:b] for name, a, b in zip(ORDER, ends[:-1], ends[1:], strict=True)}
        sets["train"] = sets["train32"][: sizes["train"]]
        if "partial" in sizes:
            sets["partial"] = [row(i, found) for i, found in done if is_partial(found)][: sizes["partial"]]
    return {
        "family": family.name,
        "options": family_options(family),
        "draws": count,
        "searched": len(done),
        "audit": _audit([(i, found) for i, found in done if i < audit], promising),
        "controllable": len(good),
        "partial": sum(is_partial(found) for _, found in done),
        "sets": sets,
    }


def _audit(done: list[tuple[int, dict[str, Any]]], promising: list[int]) -> dict[str, int]:
    """Of the draws that were all searched: how many are controllable, and how many of those did not look so."""
    good = [i for i, found in done if found["controllable"]]
    return {
        "draws": len(done),
        "controllable": len(good),
        "controllable_but_unpromising": len(set(good) - set(promising)),
        "promising": len(promising),
    }


def family_options(family: BaseFamily) -> dict[str, Any]:
    """The options that a built-in family was made with, by name."""
    return {field.name: getattr(family, field.name) for field in dataclasses.fields(family)}


def is_complete(family: BaseFamily, content: dict[str, Any]) -> bool:
    """Whether every set has all its members."""
    return all(len(content["sets"][name]) >= size for name, size in family.set_sizes.items())


def write_instances(content: dict[str, Any], path: Path) -> None:
    """Write the family's file, whole or not at all."""
    save_json(path, content, indent=1)


def default_path(family: BaseFamily) -> Path:
    """The file inside the package."""
    if family.instance_file is None:
        raise ValueError(f"{family!r} has no file of frozen instances inside the package: give --out.")
    return Path(str(resources.files("hipmdp.families"))) / "instances" / family.instance_file
