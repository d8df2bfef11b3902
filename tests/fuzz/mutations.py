"""What may happen to a file: bits flip, blocks vanish, texts change. Every mutation is a function of a generator."""

import json
import re

import numpy as np

BLOCK = 64
"""Bytes that a lost block has, at most."""
NUMBERS = re.compile(rb"-?\d+(\.\d+)?")
WORDS = (b"NaN", b"Infinity", b"-1", b"null", b"false", b"[]", b"[[]]", b'[""]', b'"x"', b"1e999", b"{}", b"1" * 400)
"""What a lying text may say instead of a number."""


def flip_bit(rng, raw):
    """One bit."""
    place, bit = rng.integers(len(raw)), rng.integers(8)
    return raw[:place] + bytes([raw[place] ^ (1 << int(bit))]) + raw[place + 1 :]


def change_bytes(rng, raw):
    """A few bytes in a row."""
    place, count = rng.integers(len(raw)), rng.integers(1, 9)
    return raw[:place] + rng.bytes(int(count)) + raw[place + count :]


def cut(rng, raw):
    """The end is missing."""
    return raw[: rng.integers(len(raw))]


def grow(rng, raw):
    """More bytes at the end, or in the middle."""
    place = len(raw) if rng.random() < 0.5 else rng.integers(len(raw))
    return raw[:place] + rng.bytes(int(rng.integers(1, BLOCK))) + raw[place:]


def lose_block(rng, raw):
    """A block is missing, or is zeros, as after a crash of the machine."""
    place, count = int(rng.integers(len(raw))), int(rng.integers(1, BLOCK))
    filling = b"" if rng.random() < 0.5 else b"\0" * min(count, len(raw) - place)
    return raw[:place] + filling + raw[place + count :]


def move_block(rng, raw):
    """Two blocks have changed places."""
    first, second = sorted(int(x) for x in rng.integers(len(raw), size=2))
    count = min(BLOCK, second - first, len(raw) - second)
    a, b = raw[first : first + count], raw[second : second + count]
    return raw[:first] + b + raw[first + count : second] + a + raw[second + count :]


def change_number(rng, raw):
    """A number in a text says something else."""
    found = list(NUMBERS.finditer(raw))
    if not found:
        return flip_bit(rng, raw)
    place = found[int(rng.integers(len(found)))]
    word = WORDS[int(rng.integers(len(WORDS)))] if rng.random() < 0.5 else str(int(rng.integers(1000))).encode()
    return raw[: place.start()] + word + raw[place.end() :]


def empty(rng, raw):
    """Nothing is left, or nothing of ours."""
    return b"" if rng.random() < 0.5 else rng.bytes(int(rng.integers(1, 4096)))


MUTATIONS = (flip_bit, flip_bit, flip_bit, change_bytes, cut, grow, lose_block, move_block, change_number, empty)
"""Single bits three times as often: they are what is hardest to notice."""


def lie(rng, value):
    """JSON values of which one says something else: for files whose digest is made anew, as an attacker would."""
    text = json.dumps(value)
    places = [m for m in re.finditer(r'-?\d+(\.\d+)?(e-?\d+)?|true|false|null|"[^"\\]*"', text) if _is_value(text, m)]
    place = places[int(rng.integers(len(places)))]
    word = WORDS[int(rng.integers(len(WORDS) - 1))].decode()
    return json.loads(text[: place.start()] + word + text[place.end() :])


def _is_value(text, match):
    """Whether it is not the name of a field."""
    return not text[match.end() :].lstrip().startswith(":")


def mutated(rng, raw):
    """(name of the mutation, other bytes)."""
    while True:
        chosen = MUTATIONS[int(rng.integers(len(MUTATIONS)))]
        result = chosen(rng, raw)
        if result != raw:
            return chosen.__name__, result


def generator(seed, index):
    """The generator of one mutation: each can be made again alone."""
    return np.random.default_rng([seed, index])
