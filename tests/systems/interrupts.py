"""Ctrl-C at a chosen chunk edge."""

from hipmdp._progress import Interrupt


class PressedAfter(Interrupt):
    """Pressed the n-th time that somebody asks."""

    def __init__(self, times: int) -> None:
        self._left = times

    @property
    def pressed(self) -> bool:  # type: ignore[override]
        self._left -= 1
        return self._left < 0
