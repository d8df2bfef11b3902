"""The pages that people read, taken apart: code blocks, commands, links and paths."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
USER_PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
NOTES = sorted((ROOT / "lab-notes").glob("*.md"))
"""For developers: their links are checked, their commands are those of their time."""
PAGES = [*USER_PAGES, ROOT / "CONTRIBUTING.md"]
FENCE = re.compile(r"^(```+)([a-z]*)[^\n`]*\n(.*?)^\1\s*$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
NOT_RUN = re.compile(r"<!-- not run: (.+?) -->\s*\Z")
SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)")
LINK = re.compile(r"\]\(([^)\s]+)\)")
FOLDERS = ("src", "docs", "tests", "benchmarks", "examples", "lab-notes", "hipmdp")
"""A word in code style that starts with one of these and a slash is the path of a file or folder of this project."""
SHELLS = ("sh", "console")


@dataclass(frozen=True)
class Block:
    """A fenced block of code."""

    language: str
    text: str
    line: int
    """Of its first line in the page, from 1."""
    not_run: str | None
    """The reason that stands above a block that no test can run."""


def blocks(page: Path) -> list[Block]:
    """All fenced blocks, in their order."""
    text = page.read_text()
    found = []
    for match in FENCE.finditer(text):
        reason = NOT_RUN.search(text[: match.start()])
        line = text.count("\n", 0, match.start(3)) + 1
        found.append(Block(match[2], match[3], line, reason[1] if reason else None))
    return found


def commands(page: Path) -> list[str]:
    """Every command: lines of shell blocks and of indented blocks, and whole ones with options within the text."""
    prose = FENCE.sub("", page.read_text())
    lines = [line.removeprefix("$ ") for block in blocks(page) if block.language in SHELLS
             for line in block.text.replace("\\\n", " ").splitlines()]  # fmt: skip
    lines += [line.strip() for line in prose.splitlines() if line.startswith("    ")]
    lines += [" ".join(span.split()) for span in SPAN.findall(prose) if " --" in span]
    return [line for line in lines if re.match(r"(hipmdp|make|pip install|python benchmarks)\b", line)]


def prose_lines(page: Path) -> list[tuple[int, str]]:
    """Number and text of every line outside fenced blocks."""
    text = FENCE.sub(lambda match: "\n" * match[0].count("\n"), page.read_text())
    return list(enumerate(text.splitlines(), 1))


def links(page: Path) -> list[str]:
    """Where links and pictures point, but for other sites."""
    prose = COMMENT.sub("", FENCE.sub("", page.read_text()))
    return [link for link in LINK.findall(prose) if "://" not in link]


def paths(page: Path) -> list[str]:
    """Files and folders of this project that are named in code style or in a command."""
    words = [
        word for span in [*SPAN.findall(FENCE.sub("", page.read_text())), *commands(page)] for word in span.split()
    ]
    return [word.rstrip(".,;:") for word in words if re.match(rf"({'|'.join(FOLDERS)})/[\w./-]+$", word)]
