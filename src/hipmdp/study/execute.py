"""Executors: make all pieces of a study, here or in several processes. A piece begins when what it needs is done."""

import os
import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from graphlib import TopologicalSorter
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from hipmdp.study.pieces import Piece
from hipmdp.study.store import Outcome, perform, record_failure

Report = Callable[[Piece, Outcome], None]
"""Called when a piece is done or has failed."""
BUSY_SECONDS = 0.5
"""Between two looks at a piece that another process works on."""
ATTEMPTS = 2
"""How often a piece is begun whose process dies."""
ONE_THREAD = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"


class Agenda:
    """Which pieces can be begun, in the order of the plan; a failure fails all that need it."""

    def __init__(self, directory: Path, goals: Iterable[Piece], report: Report) -> None:
        self.directory, self._report = directory, report
        graph: dict[Piece, tuple[Piece, ...]] = {}
        for goal in goals:
            _add(graph, goal)
        self._order = {piece: i for i, piece in enumerate(graph)}
        self._sorter = TopologicalSorter({piece: piece.needs for piece in graph})
        self._sorter.prepare()
        self._ready: list[Piece] = []
        self._failed: set[Piece] = set()
        self.pieces = list(graph)
        """All of them, each after those that it needs."""

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


def _add(graph: dict[Piece, tuple[Piece, ...]], piece: Piece) -> None:
    if piece not in graph:
        for need in piece.needs:
            _add(graph, need)
        graph[piece] = piece.needs


def run_here(agenda: Agenda) -> None:
    """One piece after the other in this process, with all its cores."""
    while (piece := agenda.next()) is not None:
        outcome = perform(agenda.directory, piece, os.cpu_count() or 1)
        agenda.finish(piece, outcome)
        if outcome is Outcome.BUSY:
            time.sleep(BUSY_SECONDS)


def run_in_processes(agenda: Agenda, jobs: int) -> None:
    """`jobs` processes of one thread each. A process that dies costs the pieces under way one of their attempts."""
    attempts: dict[Piece, int] = {}
    while not _pool_is_done(agenda, jobs, attempts):
        pass


def _pool_is_done(agenda: Agenda, jobs: int, attempts: dict[Piece, int]) -> bool:
    """Work until all is done (True) or a process has died (False)."""
    running: dict[Future[Outcome], Piece] = {}
    with _single_threaded(), ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        try:
            while True:
                while len(running) < jobs and (piece := agenda.next()) is not None:
                    running[pool.submit(perform, agenda.directory, piece, 1)] = piece
                if not running:
                    return True
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                outcomes = [(running[future], future.result()) for future in done]
                for future, (piece, outcome) in zip(done, outcomes, strict=True):
                    del running[future]
                    agenda.finish(piece, outcome)
                if all(outcome is Outcome.BUSY for _, outcome in outcomes):
                    time.sleep(BUSY_SECONDS)
        except BrokenProcessPool:
            for piece in running.values():
                attempts[piece] = attempts.get(piece, 0) + 1
                if attempts[piece] < ATTEMPTS:
                    agenda.finish(piece, Outcome.BUSY)
                elif not (agenda.directory / piece.path).exists():
                    record_failure(agenda.directory, piece, "The process that worked on it died (out of memory?).")
                    agenda.finish(piece, Outcome.FAILED)
            return False
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


@contextmanager
def _single_threaded() -> Any:
    """Processes that are started in this block compute with one thread: side by side that is faster."""
    before = os.environ.get("XLA_FLAGS")
    os.environ["XLA_FLAGS"] = f"{before or ''} {ONE_THREAD}".strip()
    try:
        yield
    finally:
        if before is None:
            del os.environ["XLA_FLAGS"]
        else:
            os.environ["XLA_FLAGS"] = before
