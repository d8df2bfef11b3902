"""Ctrl-C that waits for the next chunk edge, so that what was done can be written down first."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Interrupt:
    """Whether Ctrl-C was pressed."""

    def __init__(self) -> None:
        self.pressed = False


@contextmanager
def interruptible() -> Iterator[Interrupt]:
    """The first Ctrl-C only sets `pressed`; the second one interrupts at once. Other threads are left alone."""
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return

    def handle(number: int, frame: Any) -> None:
        if interrupt.pressed:
            raise KeyboardInterrupt
        interrupt.pressed = True

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, before)
