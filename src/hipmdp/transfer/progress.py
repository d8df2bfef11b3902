"""Progress on stderr for everything longer than two seconds: what is done, how good it is, time left."""

import sys
import threading
import time


class Progress:
    """One line that is rewritten on a terminal, or a new line every ten seconds elsewhere."""

    def __init__(self, title: str, total: int, *, quiet: bool = False) -> None:
        self._title, self.total, self._quiet, self._first = title, total, quiet, 0
        self._begin = time.monotonic()
        self._last = self._begin
        self._terminal = sys.stderr.isatty()
        self._lock = threading.Lock()
        self._shown = False

    def skip(self, done: int) -> None:
        """`done` more were there before this call: they do not count for the time that is left."""
        self._first += done

    def show(self, done: int, text: str = "") -> None:
        """Tell that `done` of the total are done; `text` says how well."""
        with self._lock:
            now = time.monotonic()
            wait = 0.5 if self._terminal else 10
            if self._quiet or now - self._begin < 2 or now - self._last < wait:
                return
            self._last, self._shown = now, True
            line = f"{self._title}: {done}/{self.total} {text}"
            fresh = done - self._first
            if fresh > 0:
                line += f", {_time((now - self._begin) / fresh * (self.total - done))} left"
            sys.stderr.write(f"\r{line:<79}" if self._terminal else line + "\n")
            sys.stderr.flush()

    def close(self) -> None:
        """Leave the line."""
        if self._shown and self._terminal:
            sys.stderr.write("\n")


def _time(seconds: float) -> str:
    minutes, rest = divmod(max(0, round(seconds)), 60)
    return f"{minutes}:{rest:02d}"
