"""How commands speak: plain lines on stdout, and the same facts as a JSON file."""

import json
from pathlib import Path
from typing import Any

from rich.console import Console

from hipmdp._files import atomic_write
from hipmdp._tables import plain


def say(console: Console, text: str) -> None:
    """A line as it is: no colours guessed from its words, no breaks in the middle of a path."""
    console.print(plain(text), highlight=False, soft_wrap=True, markup=False)


def write_json(path: Path | None, facts: dict[str, Any]) -> None:
    """The facts in a file, whole or not at all, where one was asked for."""
    if path is not None:
        with atomic_write(path) as temporary:
            temporary.write_text(json.dumps(facts, indent=1) + "\n")
