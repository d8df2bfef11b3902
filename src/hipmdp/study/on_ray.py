"""The tasks of a study as tasks of a Ray cluster: Ray decides where they run, and runs them again when a node dies.

With `shared` storage every node writes into the study's directory itself, as a local process would. Otherwise inputs
and results travel through Ray, and the driver writes the files.
"""

import os
import tempfile
import time
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hipmdp._files import atomic_write, output_directory
from hipmdp.study.scheduler import BUSY_SECONDS, Report, dependencies, one_thread
from hipmdp.study.store import Outcome, Task, error_path, record_failure, run_task

RETRIES = 5
"""How often Ray begins a task again whose node or process has died."""


def run_on_ray(
    directory: Path, goals: Iterable[Task], report: Report, address: str | None, cpus: int, shared: bool
) -> None:
    """Submit everything at once, each task with those that it needs; write what comes."""
    ray = _ray()
    own = not ray.is_initialized()
    if own:
        _connect(ray, address)
    # As here: numbers depend on them.
    flags = {"XLA_FLAGS": one_thread() if cpus == 1 else os.environ.get("XLA_FLAGS", "")}
    function = _run_shared if shared else _run_away
    remote = ray.remote(num_cpus=cpus, max_retries=RETRIES, runtime_env={"env_vars": flags})(function)
    try:
        results: dict[Any, Task] = {}
        handles: dict[Task, Any] = {}
        for task in dependencies(directory, goals):
            path = directory / task.path
            if path.exists():
                report(task, Outcome.DONE)
                handles[task] = None if shared else path
                continue
            needs = [_handle(ray, handles, need) for need in task.needs]
            handles[task] = remote.remote(str(directory.resolve()), task, cpus, *needs)
            results[handles[task]] = task
        while results:
            (done,), _ = ray.wait(list(results), num_returns=1)
            task = results.pop(done)
            report(task, _receive(ray, directory, task, done))
    finally:
        if own:
            ray.shutdown()


def _ray() -> Any:
    try:
        import ray
    except ImportError:
        raise ValueError("--executor ray needs Ray: pip install 'hipmdp[ray]'.") from None
    return ray


def _connect(ray: Any, address: str | None) -> None:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if address is None:
        # A cluster of this machine alone, which no other machine can reach.
        ray.init(address="local", include_dashboard=False, log_to_driver=False, _node_ip_address="127.0.0.1")
        return
    try:
        ray.init(address=address, log_to_driver=False)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise ValueError(f"There is no Ray cluster at {address!r}: {str(error).splitlines()[0]}") from None


def _handle(ray: Any, handles: dict[Task, Any], task: Task) -> Any:
    """A reference to the bytes of a task's file; one of an earlier run is given to Ray when it is first needed."""
    if isinstance(handles[task], Path):
        handles[task] = ray.put((Outcome.DONE, handles[task].read_bytes()))
    return handles[task]


def _receive(ray: Any, directory: Path, task: Task, reference: Any) -> Outcome:
    try:
        outcome, payload = ray.get(reference)
    except ray.exceptions.RayError as error:
        record_failure(directory, task, f"Ray gave it up: {str(error).strip().splitlines()[0]}", str(error))
        return Outcome.FAILED
    if isinstance(payload, bytes):
        target = directory / task.path
        output_directory(target.parent)
        with atomic_write(target) as temporary:
            temporary.write_bytes(payload)
        error_path(directory, task).unlink(missing_ok=True)
    elif payload is not None:
        record_failure(directory, task, *payload)
    return Outcome(outcome)


def _run_shared(directory: str, task: Task, cpus: int, *needs: Any) -> tuple[Outcome, Any]:
    """Runs on a node that sees the study's directory."""
    broken = _broken(task, needs)
    if broken is not None:
        return Outcome.FAILED, broken
    while (outcome := run_task(Path(directory), task, cpus)) is Outcome.BUSY:
        time.sleep(BUSY_SECONDS)
    return outcome, None


def _run_away(directory: str, task: Task, cpus: int, *needs: Any) -> tuple[Outcome, Any]:
    """Runs on a node that sees nothing of the driver but what it was given."""
    broken = _broken(task, needs)
    if broken is not None:
        return Outcome.FAILED, broken
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        inputs = []
        for need, (_, payload) in zip(task.needs, needs, strict=True):
            inputs.append(folder / need.path.name)
            inputs[-1].write_bytes(payload)
        out = folder / f"out{task.path.suffix}"
        try:
            task.make(inputs, out, folder / "work", cpus)
        except Exception as error:
            return Outcome.FAILED, (str(error) or type(error).__name__, traceback.format_exc())
        return Outcome.DONE, out.read_bytes()


def _broken(task: Task, needs: tuple[Any, ...]) -> tuple[str, str] | None:
    """Why a task cannot run: one that it needs has failed."""
    for need, result in zip(task.needs, needs, strict=True):
        if result is not None and result[0] != Outcome.DONE:
            return f"It needs {need.path}, which failed.", ""
    return None
