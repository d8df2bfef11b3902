"""`hipmdp pack STUDY`: one file per family instead of one per cell."""

from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from hipmdp.cli.output import say
from hipmdp.study.pack import pack as run_pack


def pack(study: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="STUDY")]) -> None:
    """Put all cells of a study into one Parquet file per family, and remove the files of these cells.

    The numbers stay the same to the bit. `report` and `compare` read packed cells and others alike: cells that are
    added later are files beside the packed ones until the study is packed again. Nothing is lost when it is killed.

    Example: hipmdp pack study

    Args:
        study: A directory that `hipmdp compare` wrote.
    """
    console = Console()
    for packed in run_pack(study):
        say(console, f"{packed.path}: {packed.cells} cells, {packed.added} of them new")
