"""`make fuzz`: mutated files, lying files and odd command lines, for as long as asked.

python -m tests.fuzz [--minutes 5] [--files 10000] [--lies 2000] [--seed 0] [--keep FILE]
"""

import argparse
import json
import resource
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.fuzz.command_lines import answer, command_lines, places
from tests.fuzz.run import lying_files, mutate_files


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0, help="stop after this time")
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--lies", type=int, default=2000)
    parser.add_argument("--lines", type=int, default=10_000, help="command lines, at most all that there are")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="JSON file for the result")
    given = parser.parse_args()
    until = time.monotonic() + 60 * given.minutes
    begin = time.monotonic()
    half = begin + 30 * given.minutes
    counts, failures = mutate_files(range(given.files), given.seed, until=half)
    print(f"mutated files: {dict(_by_answer(counts))}, {time.monotonic() - begin:.0f} s", flush=True)
    lies, more = lying_files(range(given.lies), given.seed, until=until)
    print(f"lying files: {dict(_by_answer(lies))}", flush=True)
    answers = []
    with tempfile.TemporaryDirectory() as name:
        where = places(Path(name))
        for words in command_lines()[: given.lines]:
            if time.monotonic() > until:
                break
            answers.append(answer(words, where))
    codes = Counter(str(found.code) for found in answers)
    print(f"command lines: {dict(codes)}", flush=True)
    wrong = [found for found in answers if not found.fine]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    for failure in [*failures, *more]:
        print(failure)
    for found in wrong:
        print(found.words, found.code, found.text[-300:])
    if given.keep is not None:
        facts = {
            "command": f"python -m tests.fuzz --files {given.files} --lies {given.lies} --seed {given.seed}",
            "files": {" ".join(key): count for key, count in sorted(counts.items())},
            "lies": {" ".join(key): count for key, count in sorted(lies.items())},
            "command_lines": dict(codes), "failures": len(failures) + len(more), "wrong_answers": len(wrong),
            "peak_gb": round(peak, 2), "seconds": round(time.monotonic() - begin),
        }  # fmt: skip
        given.keep.write_text(json.dumps(facts, indent=1) + "\n")
    sys.exit(1 if failures or more or wrong else 0)


def _by_answer(counts):
    total = Counter()
    for (_, came), count in counts.items():
        total[came] += count
    return total


if __name__ == "__main__":
    main()
