"""`hipmdp report DIR`: the figures of the paper from the stored results of a study."""

from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from hipmdp._outputs import try_outputs
from hipmdp.cli.output import say
from hipmdp.report.page import write_page
from hipmdp.report.report import report as draw
from hipmdp.report.tensorboard import need_tensorboard, write_results
from hipmdp.study.results import read_results
from hipmdp.study.summary import summary_table, write_summary


def report(
    studies: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="DIR")],
    out: Path | None = None,
    html: bool = False,
    tensorboard: bool = False,
) -> None:
    """Draw every figure that the finished cells allow, as PNG and SVG, and write the numbers behind them.

    Example: hipmdp report study

    Example: hipmdp report study long-runs --out figures

    Example: hipmdp report study --html

    Args:
        studies: Directories that `hipmdp compare` wrote; long runs (figures 2a and 8) may have their own.
        out: Directory for the figures, results.parquet, results.csv and summary.csv; by default DIR/figures.
        html: Also write report.html there: one page with all of it, which needs no network and no server.
        tensorboard: Also write event files there, for TensorBoard (needs hipmdp[tensorboard]).
    """
    if not studies:
        raise ValueError("Name at least one directory that `hipmdp compare` wrote.")
    target = out or studies[0] / "figures"
    if tensorboard:
        need_tensorboard()
    for study in studies:
        if not study.is_dir():
            raise ValueError(f"There is no directory {str(study)!r}: name one that `hipmdp compare` wrote.")
    try_outputs([target])
    results = read_results(*studies)
    figures = draw(list(studies), target)
    results.write(target)
    first = results.of_length(long=False)
    write_summary(first, target)
    console = Console()
    for name in first.names("family"):
        console.print(summary_table(first, name))
    say(console, f"In {target}: {', '.join(p.stem for p in figures)} (PNG and SVG)")
    say(console, "and results.parquet, results.csv, summary.csv")
    if html:
        page = write_page(list(studies), target / "report.html")
        say(console, f"Open in a browser: {page}")
    if tensorboard:
        events = write_results(results, target / "tensorboard")
        say(console, f"tensorboard --logdir {events}")
