"""The pieces of a study as tasks of a Ray cluster: Ray decides where they run, and runs them again when a node dies.

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

from hipmdp.data.files import output_directory, whole_file
from hipmdp.study.execute import BUSY_SECONDS, Report, dependencies, one_thread
from hipmdp.study.pieces import Piece
from hipmdp.study.store import Outcome, error_path, perform, record_failure

RETRIES = 5
"""How often Ray begins a task again whose node or process has died."""


def run_on_ray(
    directory: Path, goals: Iterable[Piece], report: Report, address: str | None, cpus: int, shared: bool
) -> None:
    """Submit everything at once, each piece with those that it needs; write what comes."""
    ray = _ray()
    own = not ray.is_initialized()
    if own:
        _connect(ray, address)
    # As here: numbers depend on them.
    flags = {"XLA_FLAGS": one_thread() if cpus == 1 else os.environ.get("XLA_FLAGS", "")}
    function = _perform_shared if shared else _perform_away
    task = ray.remote(num_cpus=cpus, max_retries=RETRIES, runtime_env={"env_vars": flags})(function)
    try:
        results: dict[Any, Piece] = {}
        handles: dict[Piece, Any] = {}
        for piece in dependencies(directory, goals):
            path = directory / piece.path
            if path.exists():
                report(piece, Outcome.DONE)
                handles[piece] = None if shared else path
                continue
            needs = [_handle(ray, handles, need) for need in piece.needs]
            handles[piece] = task.remote(str(directory.resolve()), piece, cpus, *needs)
            results[handles[piece]] = piece
        while results:
            (done,), _ = ray.wait(list(results), num_returns=1)
            piece = results.pop(done)
            report(piece, _receive(ray, directory, piece, done))
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
        # A cluster of this machine alone, that nobody else can reach.
        ray.init(address="local", include_dashboard=False, log_to_driver=False, _node_ip_address="127.0.0.1")
        return
    try:
        ray.init(address=address, log_to_driver=False)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise ValueError(f"There is no Ray cluster at {address!r}: {str(error).splitlines()[0]}") from None


def _handle(ray: Any, handles: dict[Piece, Any], piece: Piece) -> Any:
    """A reference to a piece's bytes; a file of an earlier run is given to Ray when it is first needed."""
    if isinstance(handles[piece], Path):
        handles[piece] = ray.put((Outcome.DONE, handles[piece].read_bytes()))
    return handles[piece]


def _receive(ray: Any, directory: Path, piece: Piece, reference: Any) -> Outcome:
    try:
        outcome, payload = ray.get(reference)
    except ray.exceptions.RayError as error:
        record_failure(directory, piece, f"Ray gave it up: {str(error).strip().splitlines()[0]}", str(error))
        return Outcome.FAILED
    if isinstance(payload, bytes):
        target = directory / piece.path
        output_directory(target.parent)
        with whole_file(target) as temporary:
            temporary.write_bytes(payload)
        error_path(directory, piece).unlink(missing_ok=True)
    elif payload is not None:
        record_failure(directory, piece, *payload)
    return Outcome(outcome)


def _perform_shared(directory: str, piece: Piece, cpus: int, *needs: Any) -> tuple[Outcome, Any]:
    """Runs on a node that sees the study's directory."""
    broken = _broken(piece, needs)
    if broken is not None:
        return Outcome.FAILED, broken
    while (outcome := perform(Path(directory), piece, cpus)) is Outcome.BUSY:
        time.sleep(BUSY_SECONDS)
    return outcome, None


def _perform_away(directory: str, piece: Piece, cpus: int, *needs: Any) -> tuple[Outcome, Any]:
    """Runs on a node that sees nothing of the driver but what it was given."""
    broken = _broken(piece, needs)
    if broken is not None:
        return Outcome.FAILED, broken
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        inputs = []
        for need, (_, payload) in zip(piece.needs, needs, strict=True):
            inputs.append(folder / need.path.name)
            inputs[-1].write_bytes(payload)
        out = folder / f"out{piece.path.suffix}"
        try:
            piece.make(inputs, out, folder / "work", cpus)
        except Exception as error:
            return Outcome.FAILED, (str(error) or type(error).__name__, traceback.format_exc())
        return Outcome.DONE, out.read_bytes()


def _broken(piece: Piece, needs: tuple[Any, ...]) -> tuple[str, str] | None:
    """Why a piece cannot be made: one that it needs has failed."""
    for need, told in zip(piece.needs, needs, strict=True):
        if told is not None and told[0] != Outcome.DONE:
            return f"It needs {need.path}, which failed.", ""
    return None
