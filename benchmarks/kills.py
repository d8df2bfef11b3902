"""Kill everything that can be resumed, at random moments: does it end with the same bits, and is nothing left behind?

    python benchmarks/kills.py [--kills 200] [--seed 0] [--verbs collect pretrain amortise adapt online compare]

Every verb first runs undisturbed. Then it is started, killed (SIGKILL) after a random time and started again, until it
ends by itself: its result must be the undisturbed one, to the bit. Of `compare` (two worker processes) the parent or a
worker is killed. After every kill no process may be left after 5 s, and after the end no temporary file or lock.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from common import save

ROOT = Path(__file__).parents[1]
VERBS = ("collect", "pretrain", "amortise", "adapt", "online", "compare")
MARK = "HIPMDP_KILLS"
"""Environment variable by which the processes of one run are found."""
ORPHAN_SECONDS = 5.0
STUDY = [
    "grid",
    "--methods",
    "model_free",
    "--episodes",
    "2",
    "--training-episodes",
    "2",
    "--seeds",
    "3",
    "--jobs",
    "2",
]


def start(verb: str, folder: Path, mark: str, cache: Path) -> "subprocess.Popen[bytes]":
    """One attempt."""
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    environment = {**os.environ, MARK: mark, "PYTHONPATH": paths, "JAX_COMPILATION_CACHE_DIR": str(cache),
                   "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
                   "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1"}  # fmt: skip
    words = ["-m", "tests.fuzz.work", verb, str(folder)]
    if verb == "compare":
        words = ["-m", "hipmdp", "compare", *STUDY, "--out", str(folder / "study")]
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, *words], env=environment, cwd=ROOT, **quiet)


def marked(mark: str) -> list[int]:
    """Processes of a run that are alive, zombies aside."""
    found = []
    for process in Path("/proc").iterdir():
        if not process.name.isdigit() or int(process.name) == os.getpid():
            continue
        try:
            state = (process / "stat").read_text().rpartition(")")[2].split()[0]
            if state != "Z" and f"{MARK}={mark}".encode() in (process / "environ").read_bytes().split(b"\0"):
                found.append(int(process.name))
        except OSError:
            continue
    return found


def result(verb: str, folder: Path) -> Any:
    """What must not depend on kills."""
    if verb != "compare":
        return json.loads((folder / "result.json").read_text())
    sys.path.insert(0, str(ROOT))
    from hipmdp.study.results import read_results
    from tests.study.tiny import numbers

    return repr(sorted(numbers(read_results(folder / "study")).items()))


def left_over(folder: Path) -> list[str]:
    """Temporary files, locks and work that a finished run should not leave."""
    names = [path for path in folder.rglob("*") if path.name.startswith(".") or ".tmp" in path.name]
    work = folder / "study" / "work"
    names += list(work.rglob("*")) if work.exists() else []
    return [str(path.relative_to(folder)) for path in names]


def finish(process: "subprocess.Popen[bytes]") -> str:
    """Wait for the end; what it said if that was a failure."""
    _, said = process.communicate()
    return "" if process.returncode == 0 else said.decode(errors="replace")[-500:]


def killed(
    verb: str, process: "subprocess.Popen[bytes]", mark: str, seconds: float, rng: random.Random
) -> tuple[bool, str]:
    """Kill after some time: (whether there was something to kill, what was wrong)."""
    try:
        process.wait(seconds)
        return False, ""
    except subprocess.TimeoutExpired:
        pass
    workers = [pid for pid in marked(mark) if pid != process.pid] if verb == "compare" else []
    if workers and rng.random() < 0.5:
        os.kill(rng.choice(workers), signal.SIGKILL)
        return True, ""
    process.kill()
    process.communicate()
    end = time.monotonic() + ORPHAN_SECONDS
    while marked(mark) and time.monotonic() < end:
        time.sleep(0.1)
    orphans = marked(mark)
    for pid in orphans:
        os.kill(pid, signal.SIGKILL)
    return True, f"{len(orphans)} orphans" if orphans else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=1e6, help="stop after this time")
    parser.add_argument("--dry", action="store_true", help="do not keep the result")
    parser.add_argument("--verbs", nargs="*", default=list(VERBS))
    given = parser.parse_args()
    rng, until = random.Random(given.seed), time.monotonic() + 60 * given.minutes
    kills: Counter[str] = Counter()
    ends: Counter[str] = Counter()
    problems: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        root, cache = Path(name), Path(name) / "cache"
        finish(start("prepare", root, "prepare", cache))
        references, lengths = {}, {}
        for verb in given.verbs:
            # The first run compiles; the second one, with all programs at hand, says how long the work takes.
            for attempt in ("first", "second"):
                begin, folder = time.monotonic(), root / f"{verb}-{attempt}"
                said = finish(start(verb, folder, f"{verb}-{attempt}", cache))
                if said:
                    raise SystemExit(f"{verb} fails undisturbed: {said}")
                lengths[verb] = time.monotonic() - begin
                references[verb, attempt] = result(verb, folder)
            if references[verb, "first"] != references[verb, "second"]:
                raise SystemExit(f"{verb} does not give the same bits twice, undisturbed.")
            print(f"{verb}: {lengths[verb]:.1f} s undisturbed", flush=True)
        number = 0
        while sum(kills.values()) < given.kills and time.monotonic() < until:
            verb = min(given.verbs, key=lambda verb: kills[verb])
            number += 1
            folder, mark = root / f"{verb}-{number}", f"{verb}-{number}-{given.seed}"
            for _ in range(20):
                process = start(verb, folder, mark, cache)
                hit, wrong = killed(verb, process, mark, rng.uniform(0.05, 1.0) * lengths[verb], rng)
                kills[verb] += hit
                if wrong:
                    problems.append(f"{mark}: {wrong}")
                if process.poll() is None or not hit:
                    break
            else:
                process = start(verb, folder, mark, cache)
            said = finish(process)
            while process.returncode != 0 and "died" in said:
                # A worker that is killed twice fails its task; the same command tries it again.
                process = start(verb, folder, mark, cache)
                said = finish(process)
            if said:
                problems.append(f"{mark}: {said}")
                continue
            ends[verb] += 1
            if result(verb, folder) != references[verb, "first"]:
                problems.append(f"{mark}: other bits")
            if left := left_over(folder):
                problems.append(f"{mark}: left over {left[:5]}")
            print(f"{mark}: {sum(kills.values())} kills, {len(problems)} problems", flush=True)
    rows: list[dict[str, Any]] = [
        {"verb": verb, "kills": kills[verb], "ends": ends[verb], "seconds": lengths[verb]} for verb in given.verbs
    ]
    rows.append({"verb": "all", "kills": sum(kills.values()), "ends": sum(ends.values()), "problems": problems})
    if not given.dry:
        save("kills", f"python benchmarks/kills.py --kills {given.kills} --seed {given.seed}", rows)
    print(f"{sum(kills.values())} kills, {sum(ends.values())} ends, {len(problems)} problems")
    for problem in problems:
        print(problem)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
