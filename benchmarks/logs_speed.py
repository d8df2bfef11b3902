"""Logs of a fleet: a million transitions of 200 machines read, checked and learned; then one new machine's 200 rows.

    python benchmarks/logs_speed.py

Machines are masses on springs, x'' = −k x − c x' + 2 u, whose stiffness k and damping c nobody measures; pushes u are
random. The command line is timed from outside, start-up included. Run it on a quiet machine.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
from common import save

COLUMNS = ["--instance-column", "machine", "--episode", "run", "--time", "t", "--state", "x,v", "--action", "push"]
AGAIN = """
import sys, time
import hipmdp
model = hipmdp.load(sys.argv[1])
log = hipmdp.read_logs(
    sys.argv[2], hipmdp.LogColumns(state=("x", "v"), action="push", instance="machine", episode="run", time="t"),
    like=model.specification,
)
for _ in range(2):
    begin = time.perf_counter()
    found = hipmdp.identify(model, log)
    hipmdp.forecast(model, found, log.next_state[-1])
    spent = time.perf_counter() - begin
print(spent)
"""


def fleet(machines: int, runs: int, moments: int, seed: int) -> pa.Table:
    """Random pushes on machines of random stiffness and damping."""
    generator = np.random.default_rng(seed)
    stiffness, damping = generator.uniform(0.5, 3, machines), generator.uniform(0.05, 0.6, machines)
    episodes = machines * runs
    k, c = np.repeat(stiffness, runs), np.repeat(damping, runs)
    x, v = generator.normal(size=(2, episodes))
    push = generator.integers(0, 3, (episodes, moments))
    path = np.zeros((2, episodes, moments))
    for t in range(moments):
        path[:, :, t] = x, v
        for _ in range(5):
            v = v + 0.02 * (-k * x - c * v + 2 * (push[:, t] - 1))
            x = x + 0.02 * v
    names = np.asarray([f"m{i:03d}" for i in range(machines)])
    return pa.table(
        {
            "machine": np.repeat(names, runs * moments),
            "run": np.tile(np.repeat(np.arange(runs), moments), machines),
            "t": np.tile(0.1 * np.arange(moments), episodes),
            "x": path[0].ravel(),
            "v": path[1].ravel(),
            "push": np.asarray(["left", "none", "right"])[push.ravel()],
        }
    )


def timed(*arguments: str) -> float:
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-m", "hipmdp", *arguments], check=True, capture_output=True)
    return time.perf_counter() - begin


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        logs, new = str(directory / "fleet.parquet"), str(directory / "new.parquet")
        table = fleet(200, 50, 101, 0)
        pq.write_table(table, logs)
        pc.write_csv(table, directory / "fleet.csv")
        pq.write_table(fleet(1, 1, 201, 7), new)
        model, facts = str(directory / "fleet.hipmdp"), directory / "facts.json"
        whole = timed("pretrain", "--logs", logs, *COLUMNS, "--out", model, "--json", str(facts))
        told = json.loads(facts.read_text())
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
        adapt = min(timed("adapt", model, "--logs", new) for _ in range(3))
        again = subprocess.run([sys.executable, "-c", AGAIN, model, new], check=True, capture_output=True, text=True)
        row = {
            "transitions": told["transitions"],
            "instances": told["instances"],
            "read_seconds": told["read_seconds"],
            "csv_seconds": _csv_seconds(directory / "fleet.csv"),
            "pretrain_seconds": whole,
            "peak_gb": peak,
            "error_on_held_out_episodes": told["error_on_held_out_episodes"],
            "error_with_mean_latent": told["error_with_mean_latent"],
            "adapt_seconds": adapt,
            "adapt_computation_seconds": float(again.stdout),
        }
    for name, value in row.items():
        print(f"{name.replace('_', ' ')}: {value:.4g}")
    save("logs_speed", "python benchmarks/logs_speed.py", [row])


def _csv_seconds(path: Path) -> float:
    import hipmdp

    begin = time.perf_counter()
    columns = hipmdp.LogColumns(state=("x", "v"), action="push", instance="machine", episode="run", time="t")
    hipmdp.read_logs(path, columns)
    return time.perf_counter() - begin


if __name__ == "__main__":
    main()
