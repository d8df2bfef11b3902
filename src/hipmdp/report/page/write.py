"""`write_page`: joins the markup, the style, the script and the data into one HTML file."""

import base64
import hashlib
import re
from importlib import resources
from pathlib import Path

from hipmdp._files import atomic_write, output_directory
from hipmdp.report.page.collect import page_data
from hipmdp.report.page.plain import script_json

STYLES = ("page.css", "charts.css")
SCRIPTS = (
    "elements.js", "scales.js", "axes.js", "series.js", "line_chart.js", "learning.js", "summary.js", "timeline.js",
    "stage_grid.js", "stage_acrobot.js", "stage_patient.js", "stage_chart.js", "player.js", "latents.js",
    "cell_map.js", "uncertainty.js", "runs.js", "downloads.js", "main.js",
)  # fmt: skip
"""In the order in which they are joined: each uses only what stands before it."""


def write_page(directories: list[Path], out: Path) -> Path:
    """Write the page of one or several studies to the file `out`; returns its path.

    The file needs nothing else: no network, no server. Its Content-Security-Policy allows the script and the style
    that are inside it, by their hashes, and nothing more.
    """
    text = page(script_json(page_data(directories)))
    output_directory(out.parent)
    with atomic_write(out) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")
    return out


def page(data: str) -> str:
    """The page around `data`, which is JSON for a script element."""
    style, script = "".join(map(asset, STYLES)), '"use strict";\n' + "".join(map(asset, SCRIPTS))
    parts = {
        "policy": content_policy(style=style, script=script),
        "style": style,
        "script": script,
        "data": data,
    }
    # In one pass over the markup alone: what looks like a place to fill inside the data stays as it is.
    return re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], asset("page.html"))


def asset(name: str) -> str:
    """A file of the page as text."""
    return resources.files("hipmdp.report.page").joinpath("assets", name).read_text(encoding="utf-8")


def content_policy(*, style: str, script: str = "", images: str = "") -> str:
    """The Content-Security-Policy of a page with this style and script alone, and images from one kind of source."""
    allowed = ["default-src 'none'", "base-uri 'none'", "form-action 'none'"]
    allowed += [f"script-src '{_hash(script)}'"] if script else []
    allowed += [f"style-src '{_hash(style)}'"]
    return "; ".join(allowed + ([f"img-src {images}"] if images else []))


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
