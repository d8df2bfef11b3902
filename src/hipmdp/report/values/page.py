"""One page with the picture and the tables of value estimates: no script, no network."""

import base64
import re
from collections.abc import Sequence
from html import escape
from importlib import resources
from pathlib import Path

from hipmdp._files import atomic_write
from hipmdp._tables import plain
from hipmdp.from_logs.evaluation.evaluate import Evaluation
from hipmdp.report.page.write import asset, content_policy
from hipmdp.report.values.table import COLUMNS, SINGLE_COLUMNS, main_rows, reasons, single_rows, verdict_counts

STYLE = "img { max-width: 100%; background: #ffffff; border-radius: 6px; }\n"
"""Pictures are drawn on white."""


def write_values_page(found: Sequence[Evaluation], title: str, discount: float, picture: Path, out: Path) -> None:
    """Write the page to `out`, with the PNG `picture` inside it."""
    style = asset("page.css") + STYLE
    parts = {
        "policy": content_policy(style=style, images="data:"),
        "style": style,
        "title": escape(plain(title)),
        "summary": escape(verdict_counts(found)),
        "picture": "data:image/png;base64," + base64.b64encode(picture.read_bytes()).decode(),
        "table": _table(COLUMNS, main_rows(found)),
        "reasons": "".join(f"<p>{escape(plain(text))}</p>" for text in reasons(found)),
        "single": _table(SINGLE_COLUMNS, single_rows(found)),
        "discount": f", a reward one step later counting {discount:g} times" if discount < 1 else "",
    }
    markup = resources.files("hipmdp.report.values").joinpath("page.html").read_text(encoding="utf-8")
    # In one pass over the markup alone: what looks like a place to fill inside a name stays as it is.
    text = re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], markup)
    with atomic_write(out) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join("<tr>" + "".join(f"<td>{escape(plain(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
