"""Run tasks, here or in several processes. A task begins when what it needs is done."""

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

from hipmdp.study.store import Outcome, Task, record_failure, run_task

Report = Callable[[Task, Outcome], None]
"""Called when a task is done or has failed."""
BUSY_SECONDS = 0.5
"""Between two attempts at a task that another process works on."""


def one_thread() -> str:
    """XLA's flags for a process of one thread: this process's own and one more, as numbers depend on them all."""
    return f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_multi_thread_eigen=false".strip()


def dependencies(directory: Path, goals: Iterable[Task]) -> dict[Task, tuple[Task, ...]]:
    """Every task after those that it needs; one whose file is there needs nothing any more."""
    graph: dict[Task, tuple[Task, ...]] = {}

    def add(task: Task) -> None:
        if task in graph:
            return
        needs = () if (directory / task.path).exists() else task.needs
        for need in needs:
            add(need)
        graph[task] = needs

    for goal in goals:
        add(goal)
    return graph


class Scheduler:
    """Which tasks can begin, in the order of the plan; a failure fails all that need it."""

    def __init__(self, directory: Path, goals: Iterable[Task], report: Report) -> None:
        self.directory, self._report = directory, report
        graph = dependencies(directory, goals)
        self._order = {task: i for i, task in enumerate(graph)}
        self._sorter = TopologicalSorter(graph)
        self._sorter.prepare()
        self._ready: list[Task] = []
        self._failed: set[Task] = set()

    def next(self) -> Task | None:
        """The first task that can begin."""
        self._refill()
        return self._ready.pop(0) if self._ready else None

    def finish(self, task: Task, outcome: Outcome) -> None:
        """Take what came of a task; a busy one comes again, after the others."""
        if outcome is Outcome.BUSY:
            self._ready.append(task)
            return
        if outcome is Outcome.FAILED:
            self._failed.add(task)
        self._sorter.done(task)
        self._report(task, outcome)

    def _refill(self) -> None:
        fresh = list(self._sorter.get_ready())
        while fresh:
            for task in fresh:
                broken = next((need for need in task.needs if need in self._failed), None)
                if broken is None:
                    self._ready.append(task)
                else:
                    record_failure(self.directory, task, f"It needs {broken.path}, which failed.")
                    self.finish(task, Outcome.FAILED)
            self._ready.sort(key=self._order.__getitem__)
            fresh = list(self._sorter.get_ready())


def run_here(scheduler: Scheduler) -> None:
    """One task after the other in this process, with all its cores."""
    while (task := scheduler.next()) is not None:
        outcome = run_task(scheduler.directory, task, os.cpu_count() or 1)
        scheduler.finish(task, outcome)
        if outcome is Outcome.BUSY:
            time.sleep(BUSY_SECONDS)


def run_in_processes(scheduler: Scheduler, jobs: int) -> None:
    """`jobs` processes of one thread each. When one dies, the tasks under way run again, one at a time."""
    with _single_threaded():
        while suspects := _work(scheduler, jobs):
            for task in suspects:
                scheduler.finish(task, _alone(scheduler.directory, task))


def _work(scheduler: Scheduler, jobs: int) -> list[Task]:
    """Work until all is done, or until a process has died: returns the tasks that were under way then."""
    running: dict[Future[Outcome], Task] = {}
    pool = _pool(jobs)
    try:
        while True:
            while len(running) < jobs and (task := scheduler.next()) is not None:
                running[_submit(pool, scheduler.directory, task)] = task
            if not running:
                return []
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            if any(isinstance(future.exception(), BrokenProcessPool) for future in done):
                return list(running.values())
            outcomes = [future.result() for future in done]
            for future, outcome in zip(done, outcomes, strict=True):
                scheduler.finish(running.pop(future), outcome)
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


def _alone(directory: Path, task: Task) -> Outcome:
    """A task in a process of its own: if that dies too, the task is the cause."""
    with _pool(1) as pool:
        try:
            return pool.submit(run_task, directory, task, 1).result()
        except BrokenProcessPool:
            record_failure(directory, task, "The process that worked on it died (out of memory?).")
            return Outcome.FAILED


def _submit(pool: ProcessPoolExecutor, directory: Path, task: Task) -> "Future[Outcome]":
    try:
        return pool.submit(run_task, directory, task, 1)
    except BrokenProcessPool as error:
        broken: Future[Outcome] = Future()
        broken.set_exception(error)
        return broken


def _pool(jobs: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_end_with_parent)


def _end_with_parent() -> None:
    """A worker must not outlive a parent that was killed: it would compete with the next one."""
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
