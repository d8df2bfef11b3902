"""What all benchmarks share: where results go and how they are timed."""

import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax

RESULTS = Path(__file__).parent / "results"


def machine() -> dict[str, Any]:
    return {"cores": os.cpu_count(), "machine": platform.machine(), "jax": jax.__version__}


def pin_to_one_core() -> None:
    """Speed is told per core; call before JAX starts its threads."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def best_seconds(run: Callable[[], Any], repeats: int = 5) -> float:
    """Shortest wall-clock time of `run` after one call that compiles it."""
    jax.block_until_ready(run())
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(run())
        times.append(time.perf_counter() - start)
    return min(times)


def save(name: str, command: str, rows: Any) -> None:
    """Keep the last measured result beside the benchmark, with the command that made it."""
    RESULTS.mkdir(exist_ok=True)
    payload = {"command": command, "date": time.strftime("%Y-%m-%d"), "machine": machine(), "rows": rows}
    (RESULTS / f"{name}.json").write_text(json.dumps(payload, indent=1) + "\n")
