"""`pack`: put the cells of a study into one file per family, and remove the files of the cells that it holds."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hipmdp._files import atomic_write, file_name, output_directory
from hipmdp.study.cells.files import PACKED, cell_paths, packed_paths, read_records, write_records
from hipmdp.study.cells.record import CellRecord, identical
from hipmdp.study.results import read_study
from hipmdp.study.store import study_lock


@dataclass(frozen=True)
class Packed:
    """A packed file."""

    path: Path
    cells: int
    """Cells that it holds."""
    added: int
    """Those that were files of their own before."""


def pack(directory: Path) -> list[Packed]:
    """Pack a study; returns its packed files.

    A cell's file is removed once the packed file has been written, read back and found to hold the same bits. A kill
    before that leaves cells in two places, of which readers take one; the next call removes the other.
    """
    with study_lock(directory, exclusive=True) as alone:
        if not alone:
            raise ValueError(f"Another process works on {str(directory)!r}: pack it when that has ended.")
        records = read_study(directory)
        if not records:
            raise ValueError(f"There are no finished cells in {str(directory)!r}: run `hipmdp compare`.")
        held: dict[str, list[CellRecord]] = {}
        for record in records:
            held.setdefault(record.key["family"], []).append(record)
        loose: dict[str, list[Path]] = {family: [] for family in held}
        for path in cell_paths(directory):
            (record,) = read_records(path)
            loose[record.key["family"]].append(path)
        return [_pack_family(directory, family, mine, loose[family]) for family, mine in held.items()]


def _pack_family(directory: Path, family: str, records: list[CellRecord], paths: list[Path]) -> Packed:
    target = output_directory(directory / PACKED) / f"{file_name(family)}.parquet"
    if paths:
        with atomic_write(target) as temporary:
            write_records(temporary, records)
            again = read_records(temporary)
            if len(again) != len(records) or not all(map(identical, again, records)):
                raise ValueError(f"{str(target)!r} could not be written as it should be: no cell was removed.")
        for path in paths:
            path.unlink()
        _remove_empty(directory / "cells", {path.parent for path in paths})
    return Packed(target, len(records), len(paths))


def _remove_empty(root: Path, folders: set[Path]) -> None:
    """Folders of cells that are packed, and the descriptions of their settings, which stand in every cell."""
    for folder in folders:
        for parent in (folder, *folder.parents):
            if not parent.is_relative_to(root) or not parent.is_dir():
                break
            children = list(parent.iterdir())
            if all(child.suffix == ".json" and not child.name.endswith(".error.json") for child in children):
                for child in children:
                    child.unlink()
                parent.rmdir()


def packed_setups(directory: Path) -> dict[tuple[Any, ...], dict[str, Any]]:
    """The cells that are packed, by their names, each with the description of its setup."""
    records = [record for path in packed_paths(directory) for record in read_records(path)]
    return {record.name: record.metadata["settings"]["setup"] for record in records}
