"""A fixed small share of `make fuzz`: mutated files of every kind."""

import json

import numpy as np
import pytest

from tests.fuzz.kinds import KINDS
from tests.fuzz.mutations import MUTATIONS, flip_bit, lie
from tests.fuzz.run import lying_files, mutate_files

SHARE = 300


def test_no_mutated_file_is_believed_and_none_crashes_its_reader():
    counts, failures = mutate_files(range(SHARE))
    assert failures == []
    refused = {kind for (kind, came), count in counts.items() if came == "refused" and count > 20}
    assert refused == {kind.name for kind in KINDS}


def test_a_file_that_lies_is_refused_in_words_or_believed():
    """An attacker can make a digest: every value is checked for type and range."""
    counts, failures = lying_files(range(SHARE))
    assert failures == []
    assert counts["model", "refused"] > SHARE / 5
    assert counts["cell", "refused"] > SHARE / 20


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_file_is_read_as_it_was_written(kind, tmp_path):
    path = tmp_path / kind.file
    kind.write(path)
    assert kind.read(path) == kind.read(path)


@pytest.mark.parametrize("mutation", sorted(set(MUTATIONS), key=lambda m: m.__name__), ids=lambda m: m.__name__)
def test_mutations_are_what_they_say(mutation):
    raw = json.dumps({"a": 1, "b": [2.5, "x"] * 60}).encode()
    results = {mutation(np.random.default_rng(seed), raw) for seed in range(20)}
    assert len(results) > 1
    assert results != {raw}
    if mutation is flip_bit:
        assert all(len(r) == len(raw) for r in results)
        assert all(sum((a ^ b).bit_count() for a, b in zip(r, raw, strict=True)) == 1 for r in results)


def test_a_lie_changes_one_value_and_no_name():
    told = {"rounds": 3, "names": ["a", "b"], "deep": {"scale": 0.5}}
    lies = [lie(np.random.default_rng(seed), told) for seed in range(30)]
    assert all(set(found) == set(told) for found in lies)
    assert sum(json.dumps(found) != json.dumps(told) for found in lies) >= 28
