"""Frozen instance sets: draw, search, keep the controllable ones, write one file per family. Resumable.

Every (draw, seed) search is one small file in a work directory, written once and whole. Well-behaved draws are
numbered; controllable ones fill `test` first, then `train32`, whose first members are `train`.
"""

import dataclasses
import functools
import json
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np

from hipmdp.data.files import whole_file
from hipmdp.families import make
from hipmdp.families.family import AbstractFamily, Theta
from hipmdp.families.hiv import HIV
from hipmdp.families.instance_sets import file_name

DRAW_KEY = 2017
"""Key of the numbered draws from the prior."""


@dataclass(frozen=True)
class SetSizes:
    """How many instances each set needs."""

    test: int
    train: int
    train32: int
    partial: int


SIZES = {
    "grid": SetSizes(test=2, train=2, train32=0, partial=0),
    "acrobot": SetSizes(test=20, train=8, train32=32, partial=0),
    "hiv": SetSizes(test=20, train=5, train32=32, partial=10),
}


@functools.cache
def draws(family: AbstractFamily, count: int) -> list[Theta]:
    """The first `count` numbered well-behaved draws (on grid: the two classes)."""
    if family.name == "grid":
        return [family.theta({"theta": c}) for c in (0, 1)][:count]
    stacked = family.draw_instances(jax.random.key(DRAW_KEY), count)
    return [jax.tree.map(lambda leaf, i=i: leaf[i], stacked) for i in range(count)]


@functools.cache
def worth_searching(family: AbstractFamily, count: int, audit: int) -> list[int]:
    """Numbers of the draws to search: the first `audit` in any case, later ones only if they look controllable."""
    if not isinstance(family, HIV):
        return list(range(len(draws(family, count))))
    stacked = family.draw_instances(jax.random.key(DRAW_KEY), count)
    promising = np.asarray(eqx.filter_jit(jax.vmap(family.stays_healthy))(stacked))
    return [i for i in range(count) if i < audit or promising[i]]


def _task(name: str, options: dict[str, Any], draw: int, seed: int, path: str) -> None:
    """One search (seed −1: the baselines) in a worker process."""
    from hipmdp.transfer.search import baselines, search

    family = make(name, **options)
    theta = draws(family, draw + 1)[draw]
    result = baselines(family, theta) if seed < 0 else search(family, theta, seed)
    record = {"draw": draw, "seed": seed, "theta": _by_name(theta), **result}
    with whole_file(Path(path)) as temporary:
        temporary.write_text(json.dumps(record))


def _by_name(theta: Theta) -> dict[str, float]:
    return {name: float(value) for name, value in theta._asdict().items()}


def _end_with_parent(parent: int) -> None:
    """Workers of a killed parent would wait for work for ever."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def task_path(work: Path, draw: int, seed: int) -> Path:
    """Where the result of a search is kept."""
    return work / (f"draw{draw:04d}-baselines.json" if seed < 0 else f"draw{draw:04d}-seed{seed}.json")


def run_tasks(
    name: str,
    options: dict[str, Any],
    work: Path,
    tasks: list[tuple[int, int]],
    jobs: int,
    say: Callable[[str], None],
) -> None:
    """Run those searches whose file is missing, in `jobs` processes of one thread each."""
    missing = [task for task in tasks if not task_path(work, *task).exists()]
    if not missing:
        return
    given = os.environ.get("XLA_FLAGS", "")
    os.environ["XLA_FLAGS"] = f"{given} --xla_cpu_multi_thread_eigen=false"
    begin = time.perf_counter()
    pool = ProcessPoolExecutor(
        jobs, mp_context=get_context("spawn"), initializer=_end_with_parent, initargs=(os.getpid(),)
    )
    try:
        futures = [pool.submit(_task, name, options, d, s, str(task_path(work, d, s))) for d, s in missing]
        for done, future in enumerate(as_completed(futures), 1):
            future.result()
            spent = time.perf_counter() - begin
            left = spent / done * (len(missing) - done)
            say(f"{name}: {done}/{len(missing)} searches, {spent:.0f} s, about {left:.0f} s left")
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def collected(work: Path, draw: int) -> dict[str, Any] | None:
    """Everything known about a draw, or None if its baselines or first search are missing."""
    base_path = task_path(work, draw, -1)
    searches = sorted(work.glob(f"draw{draw:04d}-seed*.json"))
    if not base_path.exists() or not task_path(work, draw, 0).exists():
        return None
    base = json.loads(base_path.read_text())
    results = [json.loads(path.read_text()) for path in searches]
    candidates = [r[kind] for r in results for kind in ("best", "succeeding") if r[kind] is not None]
    # What any other method found, where that was better (benchmarks/best_known.py writes these).
    others = sorted(work.glob(f"draw{draw:04d}-other-*.json"))
    candidates += [json.loads(path.read_text()) for path in others]
    candidates.append({"return": base["scripted"], "method": "scripted", "rule": base["scripted_rule"]})
    candidates.append({"return": base["constant"], "method": "constant"})
    best = max(candidates, key=lambda c: c["return"])
    healing = [r["succeeding"] for r in results if r["succeeding"] is not None]
    # The first search alone decides who is controllable, so that more searches never reshuffle the sets.
    first = next(r for r in results if r["seed"] == 0)
    return {
        **base,
        "best": best,
        "controllable": first["succeeding"] is not None,
        "ever_succeeded": bool(healing),
        "succeeding": max(healing, key=lambda c: c["return"]) if healing else None,
        "searches": len(results),
    }


def is_partial(found: dict[str, Any]) -> bool:
    """Improves at least twofold on random and constant treatment, but does not heal."""
    simple = max(found["random"], found["constant"])
    return not found["ever_succeeded"] and simple > 0 and found["best"]["return"] >= 2 * simple


def assemble(family: AbstractFamily, work: Path, count: int, command: str, audit: int = 0) -> dict[str, Any]:
    """The content of the family's file from all finished searches among the first `count` draws."""
    sizes = SIZES[family.name]
    known = [(i, collected(work, i)) for i in range(count)]
    done = [(i, found) for i, found in known if found is not None]
    thetas = draws(family, count)
    for i, found in done:
        if "theta" in found and found["theta"] != _by_name(thetas[i]):
            raise ValueError(f"The searches in {str(work)!r} are of other instances: give another --work.")

    def row(i: int, found: dict[str, Any]) -> dict[str, Any]:
        source = {k: v for k, v in found["best"].items() if k != "return"}
        return {
            "draw": i,
            "theta": _by_name(thetas[i]),
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
    partial = [row(i, found) for i, found in done if is_partial(found)][: sizes.partial]
    if family.name == "grid":
        sets = {"train": good, "test": good}
    else:
        rest = good[sizes.test : sizes.test + sizes.train32]
        sets = {"train": rest[: sizes.train], "train32": rest, "test": good[: sizes.test]}
    if sizes.partial:
        sets["partial"] = partial
    return {
        "family": family.name,
        "options": {field.name: getattr(family, field.name) for field in dataclasses.fields(family)},
        "draws": count,
        "searched": len(done),
        "audit": _audit(family, [(i, found) for i, found in done if i < audit], count),
        "controllable": len(good),
        "partial": sum(is_partial(found) for _, found in done),
        "sets": sets,
    }


def _audit(family: AbstractFamily, done: list[tuple[int, dict[str, Any]]], count: int) -> dict[str, int]:
    """Of the draws that were all searched: how many are controllable, and how many of those looked hopeless."""
    looked = set(worth_searching(family, count, 0))
    good = [i for i, found in done if found["controllable"]]
    return {
        "draws": len(done),
        "controllable": len(good),
        "controllable_but_unpromising": sum(i not in looked for i in good),
        "promising": len(looked),
    }


def is_complete(family: AbstractFamily, content: dict[str, Any]) -> bool:
    """Whether every set has all its members."""
    sizes = SIZES[family.name]
    return all(len(members) >= getattr(sizes, name) for name, members in content["sets"].items())


def write_instances(content: dict[str, Any], path: Path) -> None:
    """Write the family's file, whole or not at all."""
    with whole_file(path) as temporary:
        temporary.write_text(json.dumps(content, indent=1) + "\n")


def default_path(family: AbstractFamily) -> Path:
    """The file inside the package."""
    import hipmdp.families

    return Path(hipmdp.families.__file__).parent / "instances" / file_name(family)
