"""Does this tree compute the same bits as commit BASE? `python benchmarks/golden.py BASE [--stages corridor grid hiv]`

BASE is checked out beside the present tree. Both run, on this machine, collect → pretrain → learn_policy (each method)
→ one cell of a study on tiny configurations, and every array is compared. Exit code 1: something differs. What BASE
computed is kept in `benchmarks/golden/` (not in the repository), so that the next comparison with it is faster.
"""

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
STAGES = ("corridor", "grid", "hiv")
PROBE = ROOT / "benchmarks" / "golden_probe.py"


def compute(tree: Path, stage: str, out: Path) -> "subprocess.Popen[bytes]":
    """Start the probe with the sources of `tree`."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_multi_thread_eigen=false".strip()
    environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "XLA_FLAGS": flags}
    return subprocess.Popen([sys.executable, str(PROBE), stage, str(out)], env=environment, cwd=out.parent)


def checked_out(commit: str, folder: Path) -> Path:
    """The files of a commit, without touching this checkout."""
    archive = subprocess.run(["git", "-C", str(ROOT), "archive", commit, "src"], capture_output=True, check=True).stdout
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive, check=True)
    return folder


def compare(before: dict[str, np.ndarray], after: dict[str, np.ndarray]) -> list[str]:
    """A line for everything that is not the same to the bit."""
    lines = [f"{name}: only in {'BASE' if name in before else 'this tree'}" for name in sorted(before.keys() ^ after)]
    for name in sorted(before.keys() & after.keys()):
        a, b = before[name], after[name]
        if a.shape != b.shape or a.dtype != b.dtype:
            lines.append(f"{name}: {a.dtype}{a.shape} became {b.dtype}{b.shape}")
        elif a.tobytes() != b.tobytes():
            gap = np.nanmax(np.abs(a.astype(np.float64) - b.astype(np.float64))) if a.dtype.kind in "fiub" else "other"
            lines.append(f"{name}: differs, at most by {gap}")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base")
    parser.add_argument("--stages", nargs="*", default=list(STAGES), choices=STAGES)
    given = parser.parse_args()
    git = ["git", "-C", str(ROOT), "rev-parse", "--short=12", f"{given.base}^{{commit}}"]
    commit = subprocess.run(git, capture_output=True, check=True, text=True).stdout.strip()
    probe = hashlib.sha256(PROBE.read_bytes()).hexdigest()[:8]
    kept = ROOT / "benchmarks" / "golden"
    kept.mkdir(exist_ok=True)
    differences = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        base = checked_out(commit, folder)
        for stage in given.stages:
            old, new = kept / f"{commit}-{probe}-{stage}.npz", folder / f"new-{stage}.npz"
            running = [compute(ROOT, stage, new)]
            if not old.exists():
                running.append(compute(base, stage, folder / f"old-{stage}.npz"))
            if any(process.wait() for process in running):
                sys.exit(f"{stage}: a probe failed")
            if not old.exists():
                (folder / f"old-{stage}.npz").rename(old)
            arrays: list[dict[str, Any]] = [dict(np.load(path)) for path in (old, new)]
            lines = compare(*arrays)
            print(f"{stage}: {len(arrays[0]) - len(lines)} of {len(arrays[0])} arrays are the same to the bit")
            print("".join(f"  {line}\n" for line in lines), end="", flush=True)
            differences += len(lines)
    sys.exit(1 if differences else 0)


if __name__ == "__main__":
    main()
