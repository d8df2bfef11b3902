"""Stored searches of one family: files while they are made, then one packed file.

`WORK/<family>/draw0003-seed0.json` is one search, `…-baselines.json` holds the returns of simple policies on that
draw, `…-other-<method>.json` a better return that another method found. `WORK/<family>.json.gz` is the packed file: all
of these by name, and θ of every numbered draw. Random streams decide only draws that are not stored yet.
"""

import gzip
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hipmdp._files import (
    REMOVE,
    atomic_write,
    check_claim,
    checked_json,
    claim_directory,
    json_with_digest,
    output_directory,
    read_json,
)

DESCRIPTION = "searches.json"
"""The file of a directory that says whose searches it holds."""


@dataclass(frozen=True)
class Searches:
    """All that is stored of a family's searches."""

    thetas: dict[int, dict[str, float]]
    """θ by name, by the number of the draw."""
    found: dict[str, dict[str, Any]]
    """Results by name, such as `draw0003-seed0`."""

    def of_draw(self, draw: int, kind: str) -> list[dict[str, Any]]:
        """The results on one draw whose kind (`baselines`, `seed…`, `other-…`) begins so."""
        prefix = f"draw{draw:04d}-{kind}"
        return [self.found[name] for name in sorted(self.found) if name.startswith(prefix)]


def search_name(draw: int, seed: int) -> str:
    """What the result of a search is called; seed −1: the simple policies."""
    return f"draw{draw:04d}-baselines" if seed < 0 else f"draw{draw:04d}-seed{seed}"


def packed_path(work: Path) -> Path:
    """The packed file of the searches in the directory `work`."""
    return work.with_name(f"{work.name}.json.gz")


def claim_searches(work: Path, description: dict[str, Any]) -> None:
    """Refuse to mix the searches of another family, or of other options, into `work`."""
    packed = packed_path(work)
    if packed.exists():
        check_claim(work / DESCRIPTION, _read_packed(packed)["description"], description, "family's searches")
    claim_directory(output_directory(work) / DESCRIPTION, description, "family's searches")


def read_searches(work: Path) -> Searches:
    """The packed searches, and those that are still files in `work`. Two different ones of a name are an error."""
    packed = packed_path(work)
    content = _read_packed(packed) if packed.exists() else {"draws": {}, "found": {}}
    thetas = {int(number): theta for number, theta in content["draws"].items()}
    found = dict(content["found"])
    for path in _files(work):
        result = read_json(path, REMOVE)
        stored = found.setdefault(path.stem, result)
        if "-other-" in path.stem:
            found[path.stem] = max(stored, result, key=lambda other: other["return"])
        elif stored != result:
            raise ValueError(f"{str(path)!r} and {str(packed)!r} hold different searches: remove one of them.")
        if "theta" in result and thetas.setdefault(result["draw"], result["theta"]) != result["theta"]:
            raise ValueError(f"{str(path)!r} is a search of another instance: give another --work.")
    return Searches(thetas, found)


def pack_searches(work: Path, thetas: list[dict[str, float]]) -> Path:
    """Write the packed file, read it back, and only then remove the files that it holds."""
    files, searches, target = _files(work), read_searches(work), packed_path(work)
    draws = dict(enumerate(thetas)) | searches.thetas
    content = {
        "description": read_json(work / DESCRIPTION),
        "draws": {str(number): draws[number] for number in sorted(draws)},
        "found": {name: searches.found[name] for name in sorted(searches.found)},
    }
    with atomic_write(target) as temporary:
        # Without a time: the same searches are the same file.
        temporary.write_bytes(gzip.compress(json_with_digest(content).encode(), mtime=0))
        if _read_packed(temporary) != content:
            raise ValueError(f"{str(target)!r} could not be written as it should be: no search was removed.")
    for path in [*files, work / DESCRIPTION]:
        path.unlink()
    if not list(work.iterdir()):
        work.rmdir()
    return target


def _files(work: Path) -> list[Path]:
    return [path for path in sorted(work.glob("draw*.json")) if not path.name.endswith(".error.json")]


def _read_packed(path: Path) -> dict[str, Any]:
    try:
        content = checked_json(gzip.decompress(path.read_bytes()).decode(), str(path))
        if not all(isinstance(content[part], dict) for part in ("description", "draws", "found")):
            raise ValueError
    except (OSError, ValueError, EOFError, KeyError, TypeError, zlib.error):
        raise ValueError(f"{str(path)!r} is damaged, or no file of searches that this hipmdp can read.") from None
    return content
