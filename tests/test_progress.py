"""Progress with a clock of its own: what is shown when, and how much time is said to be left."""

import io

import pytest

from hipmdp._progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


def progress_of(total, stream=None, **options):
    clock, stream = Clock(), stream or io.StringIO()
    return Progress("fit, round", total, clock=clock, stream=stream, **options), clock, stream


def test_compilation_is_not_extrapolated():
    """60 s of compilation within the first chunk, then 10 steps a second: 90 remaining take 9 s."""
    progress, clock, stream = progress_of(1010)
    clock.now += 60
    progress.show(10)
    assert stream.getvalue() == "fit, round: 10/1010\n"
    for done in range(20, 930, 10):
        clock.now += 1
        progress.show(done)
    *_, last = stream.getvalue().splitlines()
    assert last == "fit, round: 910/1010, 0:10 left"
    assert all(int(line.split(", ")[-1].split(":")[0]) <= 1 for line in stream.getvalue().splitlines()[1:])


def test_a_show_before_anything_is_done_starts_no_clock():
    progress, clock, stream = progress_of(100)
    progress.show(0)
    clock.now += 60
    progress.show(10)
    clock.now += 10
    progress.show(20)
    assert stream.getvalue().splitlines()[-1] == "fit, round: 20/100, 1:20 left"


def test_what_was_there_before_does_not_count_for_the_speed():
    progress, clock, stream = progress_of(1000)
    progress.skip(900)
    clock.now += 10
    progress.show(901)
    clock.now += 10
    progress.show(902)
    assert stream.getvalue().splitlines()[-1] == "fit, round: 902/1000, 16:20 left"


def test_the_speed_is_that_of_the_last_chunks():
    """A slow beginning no longer counts half a minute later."""
    progress, clock, stream = progress_of(10_000)
    done = 0
    for step in [1] * 1000 + [100] * 40:
        clock.now += 1
        done += step
        progress.show(done)
    assert stream.getvalue().splitlines()[-1] == "fit, round: 5000/10000, 0:50 left"


def test_a_long_episode_does_not_take_the_estimate_away():
    """Two episodes of 100 s, then 40 s of the next with a hundred shows in between: 7 × 100 − 40 s are left."""
    progress, clock, stream = progress_of(10)
    for done in (1, 2, 3):
        for _ in range(100):
            clock.now += 1
            progress.show(done - 1)
        progress.show(done)
    for _ in range(40):
        clock.now += 1
        progress.show(3)
    assert stream.getvalue().splitlines()[-1] == "fit, round: 3/10, 11:00 left"


def test_many_shows_in_a_moment_are_one_sample():
    """Threads that show often do not shorten the time over which the speed is measured."""
    progress, clock, stream = progress_of(2000)
    for done in range(1, 1201):
        clock.now += 0.01
        progress.show(done)
    assert stream.getvalue() == "fit, round: 1001/2000, 0:10 left\n"


def test_short_jobs_and_quiet_ones_show_nothing():
    for quiet, seconds in ((False, 0.3), (True, 20.0)):
        for stream in (io.StringIO(), Terminal()):
            with progress_of(5, stream, quiet=quiet)[0] as progress:
                for done in range(1, 6):
                    progress._clock.now += seconds
                    progress.show(done)
            assert stream.getvalue() == ""


def test_a_terminal_has_a_bar_with_the_last_state():
    progress, clock, stream = progress_of(100, Terminal())
    with progress:
        clock.now += 60
        progress.show(10, "noise sd 0.75 of a standardised change")
        clock.now += 1
        progress.show(20)
        clock.now += 0.01
        progress.show(100, "[done]")
    shown = stream.getvalue()
    assert "noise sd 0.75" in shown
    assert "0:08 left" in shown
    assert "100/100" in shown
    assert "[done]" in shown


def test_the_total_may_become_known_later():
    progress, clock, stream = progress_of(1)
    progress.total = 50
    clock.now += 30
    progress.show(7)
    assert stream.getvalue() == "fit, round: 7/50\n"


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_closing_twice_is_no_error(stream):
    progress, clock, _ = progress_of(2, stream)
    clock.now += 20
    progress.show(1)
    progress.close()
    progress.close()
    progress.show(2)
