"""Tables and lines on a terminal whose texts are shown as they are: names come from data, and may hold anything."""

from collections.abc import Iterable, Sequence
from typing import Any

from rich.markup import escape
from rich.table import Table


def plain(text: str) -> str:
    """`text` without what a terminal would obey: control characters are written out."""
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)


def plain_table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    caption: str = "",
    left: Sequence[str] = (),
    no_wrap: Sequence[str] = (),
    **options: Any,
) -> Table:
    """A table of texts in which square brackets are no markup. Columns stand right, except those in `left`."""
    table = Table(title=_cell(title), caption=_cell(caption) or None, **options)
    for name in columns:
        justify: Any = "left" if name in left else "right"
        table.add_column(_cell(name), justify=justify, no_wrap=name in no_wrap)
    for row in rows:
        table.add_row(*map(_cell, row))
    return table


def _cell(text: str) -> str:
    return escape(plain(str(text)))
