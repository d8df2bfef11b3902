"""Mutate files and see what their readers say: accepted with other content, an unexpected exception and a hang fail."""

import contextlib
import dataclasses
import hashlib
import json
import signal
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from hipmdp.study.cells.files import write_records
from tests.fuzz.kinds import KINDS, read_cells, read_model, record
from tests.fuzz.mutations import generator, lie, mutated

SLOWEST = 10.0
"""Seconds after which a reader hangs."""


class Failure(NamedTuple):
    """A mutation that was not answered as it should be."""

    kind: str
    index: int
    mutation: str
    reason: str


class Hang(BaseException):
    """A reader took too long."""


@contextlib.contextmanager
def deadline(seconds):
    """Raise `Hang` in the block after so many seconds."""

    def ring(*_):
        raise Hang

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def answer(read, path, original):
    """(what came of reading, why it is a failure or None)."""
    try:
        with deadline(SLOWEST), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            content = read(path)
    except ValueError as error:
        text = str(error)
        fine = text and "\n" not in text and len(text) < 1000
        return "refused", None if fine else f"not one sentence: {text!r}"
    except Hang:
        return "hung", f"no answer after {SLOWEST:g} s"
    except BaseException:
        return "crashed", traceback.format_exc(limit=-3)
    return ("accepted, same content", None) if content == original else ("accepted, other content", "other content")


def mutate_files(indices, seed=0, kinds=KINDS, until=None):
    """Mutation `index` of kind `index` mod n, for every index: (counts by kind and answer, failures)."""
    counts, failures = Counter(), []
    with tempfile.TemporaryDirectory() as name:
        originals = {}
        for kind in kinds:
            path = Path(name) / kind.file
            kind.write(path)
            originals[kind.name] = (path.read_bytes(), kind.read(path))
        for index in indices:
            if until is not None and time.monotonic() > until:
                break
            kind = kinds[index % len(kinds)]
            raw, content = originals[kind.name]
            mutation, changed = mutated(generator(seed, index), raw)
            path = Path(name) / kind.file
            path.write_bytes(changed)
            came, reason = answer(kind.read, path, content)
            counts[kind.name, came] += 1
            if reason is not None:
                failures.append(Failure(kind.name, index, mutation, reason))
    return counts, failures


def lying_files(indices, seed=0, until=None):
    """Models and cells of which one value lies and the digest fits: counts, and readers that crashed or hung."""
    counts, failures = Counter(), []
    with tempfile.TemporaryDirectory() as name:
        model, cell = Path(name) / "model.hipmdp", Path(name) / "cell.parquet"
        next(kind for kind in KINDS if kind.name == "model").write(model)
        _, _, content = model.read_bytes().partition(b"\n")
        length, _, rest = content.partition(b"\n")
        header, leaves = json.loads(rest[: int(length)]), rest[int(length) :]
        for index in indices:
            if until is not None and time.monotonic() > until:
                break
            rng = generator(seed, index)
            if index % 2:
                _write_model(model, lie(rng, header), leaves)
                kind, (came, reason) = "model", answer(read_model, model, None)
            else:
                told = record(0)
                write_records(cell, [dataclasses.replace(told, metadata=lie(rng, told.metadata))])
                kind, (came, reason) = "cell", answer(read_cells, cell, None)
            counts[kind, came] += 1
            # A lie that can be true is believed: nobody can know.
            if came in ("crashed", "hung") or (came == "refused" and reason is not None):
                failures.append(Failure(kind, index, "lie", str(reason)))
    return counts, failures


def _write_model(path, header, leaves):
    text = json.dumps(header).encode()
    content = b"%d\n" % len(text) + text + leaves
    path.write_bytes(f"hipmdp model 2 {hashlib.sha256(content).hexdigest()}\n".encode() + content)
