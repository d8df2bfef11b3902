"""A disk that takes no more."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def full_disk(most: int = 0) -> Iterator[None]:
    """No file may have more than `most` bytes inside the block."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
