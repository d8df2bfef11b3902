"""Progress on stderr for everything longer than two seconds: what is done, how good it is, time left; and Ctrl-C."""

import io
import math
import signal
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as RichProgress

SILENT_SECONDS = 2.0
"""A job that is done by then shows nothing."""
LINE_SECONDS, REFRESH_SECONDS = 10.0, 0.25
"""Between two lines where stderr is no terminal, and between two drawings of the bar where it is."""
WINDOW, SAMPLE_SECONDS = 30, 1.0
"""The speed is measured over the last samples, which are at least this far apart: half a minute, or 30 slow chunks."""


class Progress:
    """A bar on a terminal, or a line every ten seconds elsewhere; `with Progress(…) as progress:` closes it.

    The time left comes from the work after the first `show`: what comes before is mostly compilation, which is not
    repeated, so that before the second `show` there is no estimate.
    """

    def __init__(
        self,
        title: str,
        total: int,
        *,
        quiet: bool = False,
        clock: Callable[[], float] = time.monotonic,
        stream: io.TextIOBase | None = None,
    ) -> None:
        self.total = total
        self._title, self._quiet, self._clock, self._skipped = title, quiet, clock, 0
        self._stream: Any = sys.stderr if stream is None else stream
        self._begin = clock()
        self._shown = self._begin
        self._samples: deque[tuple[float, int]] = deque(maxlen=WINDOW)
        self._bar = _Bar(title, total, self._stream) if self._stream.isatty() and not quiet else None
        self._lock = threading.Lock()

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def skip(self, done: int) -> None:
        """`done` more were there before this call: they do not count for the speed."""
        with self._lock:
            self._skipped += done

    def show(self, done: int, text: str = "") -> None:
        """Show that `done` of the total are done; `text` says how well."""
        with self._lock:
            now = self._clock()
            self._sample(now, done)
            wait = LINE_SECONDS if self._bar is None else 0.0 if done >= self.total else REFRESH_SECONDS
            if self._quiet or now - self._begin < SILENT_SECONDS or now - self._shown < wait:
                return
            self._shown = now
            left = self._seconds_left(now, done)
            time_left = "" if left is None else f", {_time(left)} left"
            if self._bar is None:
                self._stream.write(f"{self._title}: {done}/{self.total} {text}".rstrip() + f"{time_left}\n")
                self._stream.flush()
            else:
                self._bar.draw(done, self.total, (text + time_left).removeprefix(", "))

    def close(self) -> None:
        """Leave the bar as it is and give the terminal back."""
        if self._bar is not None:
            self._bar.close()

    def _sample(self, now: float, done: int) -> None:
        """Keep when how much was done, where that is news."""
        fresh = done - self._skipped
        # While nothing is done the first chunk is still to come, and with it the compilation.
        last, before = self._samples[-1] if self._samples else (-math.inf, 0)
        if fresh > before and now - last >= SAMPLE_SECONDS:
            self._samples.append((now, fresh))

    def _seconds_left(self, now: float, done: int) -> float | None:
        """At the pace of the last chunks; None while there is no pace to go by."""
        if len(self._samples) < 2:
            return None
        (first, before), (last, after) = self._samples[0], self._samples[-1]
        pace = (last - first) / (after - before)
        # What is under way has had some of its time already.
        return (self.total - done) * pace - min(pace, now - last)


def tell(remarks: Iterable[str]) -> None:
    """Sentences for the user, on stderr as all progress is."""
    for remark in remarks:
        sys.stderr.write(f"Note: {remark}\n")


class _Bar:
    """rich's progress bar, which appears with the first `draw`."""

    def __init__(self, title: str, total: int, stream: Any) -> None:
        self._rich = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TextColumn("{task.fields[text]}"),
            console=Console(file=stream),
            # Drawn when there is something new, by the thread that has it; what others print is left alone.
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self._rich.add_task(escape(title), total=total, text="")
        self._stop: weakref.finalize[[], _Bar] | None = None

    def draw(self, done: int, total: int, text: str) -> None:
        if self._stop is None:
            self._rich.start()
            # Also where a job fails and does not close its bar: the cursor has to come back.
            self._stop = weakref.finalize(self, self._rich.stop)
        if self._stop.alive:
            self._rich.update(self._task, completed=done, total=total, text=escape(text), refresh=True)

    def close(self) -> None:
        if self._stop is not None:
            self._stop()


def _time(seconds: float) -> str:
    minutes, rest = divmod(max(0, round(seconds)), 60)
    return f"{minutes}:{rest:02d}"


class Interrupt:
    """Whether Ctrl-C was pressed."""

    def __init__(self) -> None:
        self.pressed = False


class AbandonedError(KeyboardInterrupt):
    """Ctrl-C was pressed twice: nothing more is written, and threads may still be computing."""


@contextmanager
def interruptible() -> Iterator[Interrupt]:
    """The first Ctrl-C only sets `pressed`; the second one raises `AbandonedError` at once. Only in the main thread."""
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return

    def handle(number: int, frame: Any) -> None:
        if interrupt.pressed:
            raise AbandonedError
        interrupt.pressed = True

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, before)
