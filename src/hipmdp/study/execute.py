"""Executors: make all pieces of a study, here or in several processes. A piece begins when what it needs is done."""

import os
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from graphlib import TopologicalSorter
from multiprocessing import active_children, connection, get_context, parent_process
from pathlib import Path
from typing import Any

from hipmdp.study.pieces import Piece
from hipmdp.study.store import Outcome, perform, record_failure

Report = Callable[[Piece, Outcome], None]
"""Called when a piece is done or has failed."""
BUSY_SECONDS = 0.5
"""Between two looks at a piece that another process works on."""


def one_thread() -> str:
    """XLA's flags for a process of one thread: this process's own and one more, as numbers depend on them all."""
    return f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_multi_thread_eigen=false".strip()


def dependencies(directory: Path, goals: Iterable[Piece]) -> dict[Piece, tuple[Piece, ...]]:
    """Every piece after those that it needs; one that is there needs nothing any more."""
    graph: dict[Piece, tuple[Piece, ...]] = {}

    def add(piece: Piece) -> None:
        if piece in graph:
            return
        needs = () if (directory / piece.path).exists() else piece.needs
        for need in needs:
            add(need)
        graph[piece] = needs

    for goal in goals:
        add(goal)
    return graph


class Agenda:
    """Which pieces can be begun, in the order of the plan; a failure fails all that need it."""

    def __init__(self, directory: Path, goals: Iterable[Piece], report: Report) -> None:
        self.directory, self._report = directory, report
        graph = dependencies(directory, goals)
        self._order = {piece: i for i, piece in enumerate(graph)}
        self._sorter = TopologicalSorter(graph)
        self._sorter.prepare()
        self._ready: list[Piece] = []
        self._failed: set[Piece] = set()

    def next(self) -> Piece | None:
        """The first piece that can be begun."""
        self._refill()
        return self._ready.pop(0) if self._ready else None

    def finish(self, piece: Piece, outcome: Outcome) -> None:
        """Say what came of a piece; a busy one comes again, after the others."""
        if outcome is Outcome.BUSY:
            self._ready.append(piece)
            return
        if outcome is Outcome.FAILED:
            self._failed.add(piece)
        self._sorter.done(piece)
        self._report(piece, outcome)

    def _refill(self) -> None:
        fresh = list(self._sorter.get_ready())
        while fresh:
            for piece in fresh:
                broken = next((need for need in piece.needs if need in self._failed), None)
                if broken is None:
                    self._ready.append(piece)
                else:
                    record_failure(self.directory, piece, f"It needs {broken.path}, which failed.")
                    self.finish(piece, Outcome.FAILED)
            self._ready.sort(key=self._order.__getitem__)
            fresh = list(self._sorter.get_ready())


def run_here(agenda: Agenda) -> None:
    """One piece after the other in this process, with all its cores."""
    while (piece := agenda.next()) is not None:
        outcome = perform(agenda.directory, piece, os.cpu_count() or 1)
        agenda.finish(piece, outcome)
        if outcome is Outcome.BUSY:
            time.sleep(BUSY_SECONDS)


def run_in_processes(agenda: Agenda, jobs: int) -> None:
    """`jobs` processes of one thread each. When one dies, the pieces under way are made again, one at a time."""
    with _single_threaded():
        while suspects := _work(agenda, jobs):
            for piece in suspects:
                agenda.finish(piece, _alone(agenda.directory, piece))


def _work(agenda: Agenda, jobs: int) -> list[Piece]:
    """Work until all is done, or until a process has died: returns the pieces that were under way then."""
    running: dict[Future[Outcome], Piece] = {}
    pool = _pool(jobs)
    try:
        while True:
            while len(running) < jobs and (piece := agenda.next()) is not None:
                running[_submit(pool, agenda.directory, piece)] = piece
            if not running:
                return []
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            if any(isinstance(future.exception(), BrokenProcessPool) for future in done):
                return list(running.values())
            outcomes = [future.result() for future in done]
            for future, outcome in zip(done, outcomes, strict=True):
                agenda.finish(running.pop(future), outcome)
            if all(outcome is Outcome.BUSY for outcome in outcomes):
                time.sleep(BUSY_SECONDS)
    except BaseException:
        # On a terminal Ctrl-C reaches the workers as well, and they write their checkpoints.
        wait(running, timeout=2)
        for child in active_children():
            child.terminate()
        raise
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _alone(directory: Path, piece: Piece) -> Outcome:
    """A piece in a process of its own: if that dies too, it is the piece's fault."""
    with _pool(1) as pool:
        try:
            return pool.submit(perform, directory, piece, 1).result()
        except BrokenProcessPool:
            record_failure(directory, piece, "The process that worked on it died (out of memory?).")
            return Outcome.FAILED


def _submit(pool: ProcessPoolExecutor, directory: Path, piece: Piece) -> "Future[Outcome]":
    try:
        return pool.submit(perform, directory, piece, 1)
    except BrokenProcessPool as error:
        broken: Future[Outcome] = Future()
        broken.set_exception(error)
        return broken


def _pool(jobs: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_end_with_parent)


def _end_with_parent() -> None:
    """A worker must not outlive a study that was killed: it would compete with the one that goes on."""
    parent = parent_process()
    assert parent is not None

    def watch() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _single_threaded() -> Any:
    """Processes that are started in this block compute with one thread: side by side that is faster."""
    before = os.environ.get("XLA_FLAGS")
    os.environ["XLA_FLAGS"] = one_thread()
    try:
        yield
    finally:
        if before is None:
            del os.environ["XLA_FLAGS"]
        else:
            os.environ["XLA_FLAGS"] = before
