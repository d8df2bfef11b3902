"""Odd command lines over every verb: each has at least one thing that cannot be right.

The answer must be exit code 2 (or 0 where the line turned out to be right), in words, without a traceback.
"""

import contextlib
import io
import itertools
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hipmdp.cli import main
from tests.fuzz.kinds import KINDS
from tests.fuzz.run import Hang, deadline

SECONDS = 30.0
"""A wrong line is answered before any work."""
WHOLE = ("-1", "0", "1.5", "x", "", "NaN", "99999999999999999999", "9223372036854775808", "1e3", "--")
FRACTION = ("nan", "inf", "-1", "x", "", "1e999", "--")
NAME = ("nope", "", "[red]x[/red]", "../..", "no_module:family", "sys:exit", "a" * 300, "\udce9", "é💥", ":", "test:-1")
FOLDER = ("/proc/nowhere", "{file}/below", "{long}", "/dev/full/x", "{folder}/" + "b" * 300)
PLACE = ("{folder}/missing/file", *FOLDER)
"""Directories are made where they are missing, the folder of a file is not."""
INPUT = ("nofile", "{folder}", "{file}", "{binary}", "/dev/null", "", "{long}", "[red]", "\udce9")
FLAGS = {
    "demo": (("demo",), {"--seeds": WHOLE, "--jobs": WHOLE, "--out": FOLDER}),
    "instances": (
        ("instances", "grid"),
        {"--draws": WHOLE, "--seeds": WHOLE, "--jobs": WHOLE, "--sd": FRACTION, "--out": FOLDER, "--work": FOLDER},
    ),
    "check-env": (("check-env", "grid"), {"--seed": WHOLE, "--steps": WHOLE}),
    "collect": (
        ("collect", "grid"),
        {
            "--instances": (*NAME, "99", "0", "-3"), "--episodes": WHOLE, "--seed": WHOLE, "--preset": NAME,
            "--out": FOLDER, "--sd": FRACTION, "--jobs": WHOLE,
        },
    ),
    "pretrain": (
        ("pretrain", "{batch}"),
        {
            "--method": NAME, "--family": NAME, "--seed": WHOLE, "--preset": NAME, "--out": FOLDER, "--json": PLACE,
            "--horizon": WHOLE, "--discount": FRACTION, "--least": WHOLE, "--actions": NAME, "--logs": INPUT,
        },
    ),
    "adapt": (
        ("adapt", "grid", "--method", "amortised"),
        {
            "--instance": (*NAME, "test:99", "theta=x", "theta=3", "theta"), "--family": NAME, "--episodes": WHOLE,
            "--seed": WHOLE, "--reward": NAME, "--imagine-in": NAME, "--preset": NAME, "--sd": FRACTION,
            "--out": FOLDER, "--json": PLACE, "--tensorboard": FOLDER, "--logs": INPUT, "--method": NAME,
        },
    ),
    "online": (
        ("online", "grid"),
        {"--instances": (*NAME, "0", "-3"), "--episodes": WHOLE, "--seed": WHOLE, "--out": FOLDER, "--json": PLACE},
    ),
    "compare": (
        ("compare", "grid", "--methods", "model_free"),
        {
            "--methods": (*NAME, None), "--instances": (*NAME, "99", "0"), "--seeds": WHOLE, "--first-seed": WHOLE,
            "--episodes": WHOLE, "--training": NAME, "--training-episodes": WHOLE, "--preset": NAME, "--reward": NAME,
            "--ablations": NAME, "--extras": NAME, "--out": FOLDER, "--jobs": WHOLE, "--executor": NAME,
            "--cpus": WHOLE,
        },
    ),
    "pack": (("pack",), {None: INPUT}),
    "report": (("report",), {None: INPUT, "--out": FOLDER}),
    "info": (("info", "{model}"), {"--json": PLACE, None: INPUT}),
}  # fmt: skip
"""For every verb: words that are right so far, and the odd values of its flags (None: of its argument)."""
RIGHT = {("--seed", "0"), ("--first-seed", "0"), ("--preset", "default"), ("--jobs", "--"), ("--sd", "--")}
"""Values of the lists that are not odd for these flags."""


class Answer(NamedTuple):
    """What came of a command line."""

    words: tuple[str, ...]
    code: int | str
    text: str

    @property
    def fine(self) -> bool:
        """One sentence and exit code 2; or 0."""
        said = self.text.strip()
        wrong = "Traceback" in said or "please report" in said
        return self.code in (0, 2) and not wrong and (self.code == 0 or bool(said)) and len(said) < 6000


def command_lines():
    """All of them, in a fixed order; strings in braces stand for files that `places` makes."""
    lines = []
    for base, flags in FLAGS.values():
        lines.append((*base, "--nonsense"))
        lines.append((*base, "--out"))
        for flag, values in flags.items():
            for value in values:
                if (flag, value) in RIGHT:
                    continue
                words = base if flag not in base else base[: base.index(flag)]
                given = () if value is None else (value,)
                lines.append((*words[:1], *given) if flag is None else (*words, flag, *given))
    verbs = list(FLAGS)
    lines += [(verb,) for verb in ("nonsense", "", "--", "-x", "\udce9", "Collect", "--version=3")]
    lines += [(first, second) for first, second in itertools.permutations(verbs, 2)]
    return list(dict.fromkeys(lines))


def places(folder: Path) -> dict[str, str]:
    """Files that the lines name."""
    (folder / "file.txt").write_text("plain text\n")
    (folder / "noise.bin").write_bytes(np.random.default_rng(0).bytes(2048))
    made = {"file": folder / "file.txt", "binary": folder / "noise.bin", "folder": folder, "long": "a" * 300}
    for kind in KINDS:
        if kind.name in ("batch", "model"):
            kind.write(folder / kind.file)
            made[kind.name] = folder / kind.file
    return {name: str(value) for name, value in made.items()}


def answer(words, where: dict[str, str]) -> Answer:
    """Run one line in this process, inside the folder of the files."""
    filled = tuple(_filled(word, where) for word in words)
    out, err = io.StringIO(), io.StringIO()
    before = Path.cwd()
    os.chdir(where["folder"])
    code: int | str = 0
    try:
        with deadline(SECONDS), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main(list(filled))
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else str(end.code)
    except Hang:
        code = "worked for too long"
    except BaseException as error:
        code = f"raised {type(error).__name__}: {error}"
    finally:
        os.chdir(before)
    return Answer(filled, code, err.getvalue() or (out.getvalue() if code == 2 else ""))


def _filled(word: str, where: dict[str, str]) -> str:
    for name, value in where.items():
        word = word.replace("{" + name + "}", value)
    return word
