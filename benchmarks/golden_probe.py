"""What `golden.py` runs in each tree: `golden_probe.py STAGE OUT`. It speaks to trees before and after the renames."""

import importlib
import sys
import tempfile
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import hipmdp

NAMES = {
    "dqn": "learner",
    "validation_episodes": "look_episodes",
    "adaptation": "transfer",
}
"""Names of settings, as they are now → as they were."""


def find(*places: str) -> Any:
    """The first of `module:name` that this tree has."""
    for place in places:
        module, name = place.split(":")
        try:
            return getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):
            continue
    raise ImportError(f"none of {places}")


DynamicsConfig = find("hipmdp:DynamicsConfig")
DDQNConfig = find("hipmdp:DDQNConfig", "hipmdp.control.config:DDQNConfig")
AdaptationConfig = find("hipmdp:AdaptationConfig", "hipmdp.transfer.config:TransferConfig")
AmortiseConfig = find("hipmdp:AmortiseConfig", "hipmdp.transfer.config:AmortiseConfig")
PQNConfig = find("hipmdp:PQNConfig")


def spelled(config: Any, **values: Any) -> dict[str, Any]:
    """The fields by the names that this tree has for them."""
    known = {field.name for field in fields(config)}
    return {name if name in known else NAMES[name]: value for name, value in values.items()}


class CorridorTheta(NamedTuple):
    direction: Any


class Corridor(hipmdp.AbstractFamily):
    """Walk 0.4 per step from the middle to x > 1, for 10; every step costs 1; the two actions may be swapped."""

    baseline: ClassVar[CorridorTheta] = CorridorTheta(1.0)
    fixed_start: ClassVar[bool] = False

    @property
    def specification(self) -> Any:
        return hipmdp.Specification(
            "corridor", ("x",), (-2.0,), (2.0,), (0.0,), (1.0,), (False,), ("left", "right"), horizon=20, discount=0.9
        )

    def sample_instance(self, key: Any) -> Any:
        return CorridorTheta(jnp.where(jax.random.bernoulli(key), 1.0, -1.0))

    def well_behaved_parts(self, theta: Any) -> Any:
        return {"known": jnp.abs(jnp.asarray(theta.direction)) == 1}

    def check_parameter(self, name: str, value: float) -> None:
        return None

    def initial_state(self, key: Any, theta: Any) -> Any:
        return jax.random.uniform(key, (1,), jnp.float32, -0.2, 0.2)

    def dynamics(self, key: Any, state: Any, action: Any, theta: Any) -> Any:
        step = 0.4 * (2 * action.astype(jnp.float32) - 1) * theta.direction
        return jnp.clip(state + step, -1.9, 2.0)

    def reward(self, state: Any, action: Any, next_state: Any, theta: Any = None) -> Any:
        return jnp.where(next_state[0] > 1, 10.0, -1.0)

    def terminated(self, next_state: Any, theta: Any = None) -> Any:
        return next_state[0] > 1


DQN = DDQNConfig(hidden=(16, 16), lanes=2, minibatches=1, epsilon_decay=0.9, batch_size=16)
DYNAMICS = DynamicsConfig(
    hidden=(16, 16), latent_size=2, rounds=150, weight_draws=2, batch_size=32, tune_rounds=20, scratch_rounds=30,
    infer_steps=15, infer_draws=2,
)  # fmt: skip
ADAPTATION = AdaptationConfig(
    **spelled(
        AdaptationConfig, dqn=DQN, imagined_episodes=6, weight_draws=2, validation_episodes=3, inaccurate_factor=0.0,
        retunings=1,
    )
)  # fmt: skip
PQN = PQNConfig(hidden=DQN.hidden, groups=2, members=2, steps_per_phase=4, minibatches=2, epochs=1)
AMORTISE = AmortiseConfig(PQN, steps=64, pools=2)
FAMILIES: dict[str, tuple[Any, list[dict[str, float]], Any]] = {
    "corridor": (Corridor(), [{"direction": 1.0}, {"direction": -1.0}], {"direction": -1.0}),
    "grid": (hipmdp.make("grid"), [{"theta": 0}, {"theta": 1}], "test:1"),
    "hiv": (hipmdp.make("hiv"), [{}, {"k1": 9e-7}], "test:1"),
}
RECORDS = ("returns", "success", "learning_returns", "model_error")


def leaves(name: str, tree: Any) -> dict[str, np.ndarray]:
    return {f"{name}/{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(tree))}


def column(log: Any, name: str) -> Any:
    """A column of a log; numbers in float64, whether the tree keeps them so or in float32."""
    values = np.asarray(getattr(log, name))
    return values.astype(np.float64) if values.dtype.kind == "f" else values


def run_arrays(name: str, run: Any) -> dict[str, np.ndarray]:
    found = {f"{name}/{record}": np.asarray(getattr(run, record)) for record in RECORDS}
    found |= {f"{name}/{c}": column(run.transitions, c) for c in ("state", "action", "reward")}
    return found | leaves(f"{name}/network", run.network) | leaves(f"{name}/latents", run.latents)


def adapted(stage: str, batch: Any) -> dict[str, np.ndarray]:
    """pretrain and learn_policy with every method."""
    family, thetas, instance = FAMILIES[stage]
    found: dict[str, np.ndarray] = {}
    models = {m: hipmdp.pretrain(batch, m, config=DYNAMICS, quiet=True, policy=False)
              for m in ("embedded", "linear", "average", "scratch", "model_free")}  # fmt: skip
    models["amortised"] = hipmdp.amortise(models["embedded"], batch, config=AMORTISE, family=family, quiet=True)
    models["blind"] = hipmdp.train_blind(family, thetas, episodes=20, config=replace(DQN, lanes=1), quiet=True)
    for method, model in models.items():
        found |= leaves(f"{method}/model", (model.dynamics, model.policy, model.reward_head))
    for method, model in (*models.items(), ("refined", models["amortised"])):
        run = hipmdp.learn_policy(
            model, family, instance, episodes=2, seed=3, config=ADAPTATION, method=method, quiet=True
        )
        found |= run_arrays(f"{method}/run", run)
    first = replace(ADAPTATION, first_policy=True, steps_ahead=1)
    run = hipmdp.learn_policy(
        models["amortised"], family, instance, episodes=1, config=first, method="embedded", quiet=True
    )
    found |= run_arrays("embedded/first_policy", run)
    run = hipmdp.learn_policy(
        models["embedded"], family, instance, episodes=1, config=ADAPTATION, reward="learned", batch=batch, quiet=True
    )
    return found | run_arrays("embedded/updated", run) | leaves("embedded/updated/model", run.model.dynamics)


def cell(stage: str) -> dict[str, np.ndarray]:
    """One cell of a study, from the batch on."""
    if stage == "corridor":
        return {}
    setups = "hipmdp.study.setup"
    plan = find("hipmdp.study.tasks:plan", "hipmdp.study.pieces:plan")
    compare, read = find("hipmdp.study.compare:compare"), find("hipmdp.study.results:read_results")
    Variant, parse_setup = find(f"{setups}:Variant"), find(f"{setups}:parse_setup")
    tiny = spelled(
        Variant, adaptation=(("imagined_episodes", 4), ("retunings", 0), ("pqn", None)), dqn=(("hidden", (16, 16)),)
    )
    variant = Variant(
        "tiny", dynamics=(("rounds", 100), ("tune_rounds", 10)), collection=(("hidden", (16, 16)),), **tiny
    )
    setup = parse_setup(stage, 2, 2, 1, variant=variant)
    with tempfile.TemporaryDirectory() as out:
        cells = plan([setup], ["embedded"], {stage: ["test:0"]}, [0])
        failed = compare(cells, Path(out), quiet=True)
        assert not failed, failed
        (record,) = read(Path(out)).records
        numbers = getattr(record, "metrics", None) or record.numbers
        found = {f"cell/{n}": np.asarray(v) for n, v in zip("abcd", list(numbers.values())[:4], strict=True)}
        return found | {"cell/states": record.states, "cell/actions": record.actions}


def main() -> None:
    stage, out = sys.argv[1:]
    family, thetas, _ = FAMILIES[stage]
    batch = hipmdp.collect(family, thetas, episodes=3, seed=0, config=replace(DQN, lanes=1), quiet=True)
    found: dict[str, Any] = {
        f"collect/{name}": column(batch, name) for name in ("state", "action", "reward", "next_state")
    }
    found |= adapted(stage, batch)
    found |= cell(stage)
    np.savez(out, **found)


if __name__ == "__main__":
    main()
