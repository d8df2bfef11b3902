"""Small resumable pieces of work, to be killed: `python -m tests.fuzz.work VERB DIRECTORY`.

Each ends by writing result.json: a digest of every bit that must not depend on kills.
"""

import hashlib
import json
import sys
from dataclasses import replace
from pathlib import Path

import hipmdp
from tests.fuzz.kinds import leaves, read_batch, read_model
from tests.systems.corridor import AMORTISE, BOTH, CORRIDOR, DQN, DYNAMICS, TRANSFER
from tests.systems.corridor_runs import batch, model

FIT = replace(DYNAMICS, rounds=20_000)
IMAGINED = replace(AMORTISE, steps=200_000, pools=15)
ONLINE = hipmdp.OnlineConfig(
    hipmdp.GrowthConfig(((16, 16),), 300, replace(DYNAMICS, rounds=800)), replace(AMORTISE, steps=20_000, pools=4)
)


def collect(folder):
    """The batch."""
    config = replace(DQN, lanes=1)
    found = hipmdp.collect(CORRIDOR, list(BOTH), 400, out=folder / "collect", jobs=2, quiet=True, config=config)
    path = folder / "result.parquet"
    hipmdp.save_transitions(found, path)
    return repr(read_batch(path))


def pretrain(folder):
    """The model."""
    found = hipmdp.pretrain(batch(), config=FIT, quiet=True, policy=False, out=folder / "work")
    found.save(folder / "model.hipmdp")
    return repr(read_model(folder / "model.hipmdp"))


def amortise(folder):
    """The model with Q(s, w)."""
    given = hipmdp.load(folder.parent / "embedded.hipmdp")
    found = hipmdp.amortise(given, batch(), config=IMAGINED, family=CORRIDOR, quiet=True, out=folder / "work")
    found.save(folder / "model.hipmdp")
    return repr(read_model(folder / "model.hipmdp"))


def adapt(folder):
    """The run."""
    given = hipmdp.load(folder.parent / "embedded.hipmdp")
    config = replace(TRANSFER, inaccurate_factor=0.0, first_policy=True)
    run = hipmdp.learn_policy(
        given, CORRIDOR, {"direction": 1.0}, 3, 1, config=config, out=folder / "run", quiet=True, method="embedded"
    )
    return repr((leaves(run.network), run.returns, run.learning_returns, run.model_error, run.latents))


def online(folder):
    """The run over two instances."""
    run = hipmdp.online(CORRIDOR, list(BOTH), 2, config=ONLINE, out=folder / "online", quiet=True)
    records = [record._replace(seconds=0) for record in run.records]
    return repr((records, leaves(run.model.latent_policy), leaves(run.model.dynamics)))


VERBS = {verb.__name__: verb for verb in (collect, pretrain, amortise, adapt, online)}


def main():
    verb, folder = sys.argv[1], Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    if verb == "prepare":
        model("embedded").save(folder / "embedded.hipmdp")
        return
    digest = hashlib.sha256(VERBS[verb](folder).encode()).hexdigest()
    (folder / "result.json").write_text(json.dumps(digest))


if __name__ == "__main__":
    main()
