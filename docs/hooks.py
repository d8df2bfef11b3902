"""Pages link to files outside docs/, so that they also work where the repository is read. On the site pictures and
examples are copied along, and the links follow them; lab notes are not part of the site and are named by their path."""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
OUTSIDE = re.compile(r"\]\(\.\./([^)#\s]+)\)")
NOTE = re.compile(r"\[([^\]]+)\]\(\.\./(lab-notes/[^)#\s]+)(?:#[^)]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    """Add every file outside docs/ that a page links to."""
    pages = [page for page in files.documentation_pages() if page.content_string]
    names = {name for page in pages for name in OUTSIDE.findall(NOTE.sub("", page.content_string))}
    for name in sorted(names):
        if (ROOT / name).is_file():
            files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Let links to those files point to where they are on the site."""
    markdown = NOTE.sub(r"\1 (`\2`)", markdown)
    return OUTSIDE.sub(lambda match: f"]({match[1]})" if (ROOT / match[1]).is_file() else match[0], markdown)
