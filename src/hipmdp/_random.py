"""Named random streams: every random number comes from a key with a name.

On JAX `fold_in(k, i)` equals `split(k, n)[i]`: streams that are small numbers coincide with the parts of a split. Here
the CRC-32 of a name makes the stream, and the names are registered: a new place that needs random numbers gets a new
name below. Inside a function that is given a key, an unpacked `jax.random.split` is enough.
"""

import zlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PRNGKeyArray

from hipmdp._errors import check_seed

STREAMS_VERSION = 2
"""Raised when a change of the streams changes the numbers that a seed gives: a study holds cells of one version."""

STREAMS: dict[str, str] = {
    "families/drawn_set": "instances of sets that a family neither ships nor is given",
    "families/prior": "the i-th draw of `draw_instances`",
    "families/check": "instances, actions and episodes of `check_family`",
    "families/nominal": "the nominal member of a Gymnasium family that is given a sampler",
    "families/typical_states": "random episode i, by which the states of a Gymnasium family are scaled",
    "families/frozen_draws": "numbered draws behind the frozen instance sets",
    "environment/instance": "the instance that a Gymnasium environment draws",
    "environment/reset": "first states of a Gymnasium environment",
    "environment/step": "steps of a Gymnasium environment",
    "collect/instances": "instances of `collect` that are drawn (None)",
    "collect/run": "the model-free run on training instance i",
    "blind/instances": "instances of `train_blind` that are drawn",
    "blind/dqn": "the blind DQN",
    "blind/validation": "greedy episodes by which blind policies are compared",
    "pretrain/dynamics": "T̂: its initial weights and latents, and its fit",
    "pretrain/reward_head": "the reward head",
    "pretrain/support": "the sample of states and actions that a model keeps",
    "pretrain/metrics": "weight draws by which the error of T̂ is measured",
    "amortise/network": "Q(s, w) before it has learned",
    "amortise/pqn": "the learner of Q(s, w)",
    "amortise/contexts": "pool i of imagined members",
    "amortise/starts": "first states of the batch that are kept",
    "amortise/validation_contexts": "members on which policies are compared",
    "amortise/validation": "imagined episodes by which policies are compared",
    "adaptation/instance": "the instance of `learn_policy` that is drawn (None)",
    "adaptation/start": "what a method draws before the first episode",
    "adaptation/episode": "learning episode i: first state, actions, steps",
    "adaptation/after_episode": "what a method draws after episode i",
    "adaptation/evaluation": "greedy evaluation episodes",
    "adaptation/latent": "w_b ~ P_W before the first episode",
    "adaptation/network": "the i-th Q-network of a run",
    "adaptation/dqn": "the i-th learner of a run, in imagination",
    "adaptation/filter": "weight draws of the belief filter",
    "adaptation/guard": "functions by which chances of breaking a limit are predicted",
    "adaptation/starts": "first states of imagined episodes",
    "adaptation/contexts": "weight draws and latents of imagination after tuning i",
    "adaptation/validation": "imagined episodes by which policies are compared after tuning i",
    "adaptation/tune": "tuning of T̂ after episode i",
    "adaptation/infer": "inference of w_b after episode i, before W is tuned",
    "adaptation/model_error": "weight draws by which the error on episode i is measured",
    "adaptation/reward_head": "a reward head fitted to the instance alone",
    "adaptation/update": "the update of the family's model from the batch",
    "online/instances": "instances of `online` that are drawn",
    "online/episode": "episode j of instance i",
    "online/filter": "weight draws of the belief filter for instance i",
    "online/judge": "imagined episodes that episode j of instance i is compared with",
    "online/size": "fits by which the size of the model is chosen",
    "online/fit": "T̂ of the chosen size",
    "online/amortise": "Q(s, w) inside it",
    "logs/infer": "inference of w_b from a log",
    "logs/metrics": "weight draws by which a log is judged",
    "logs/forecast": "futures of `forecast`",
    "logs/tune": "tuning of T̂ to a log",
    "logs/starts": "logged states from which imagined episodes start",
    "logs/reward": "steps of a stochastic reward on logged transitions",
    "logs/filter": "weight draws of the belief filter that follows a log",
    "logs/network": "the Q-network of `advise`",
    "logs/dqn": "the learner of `advise`",
    "logs/contexts": "weight draws and latents of imagination",
    "logs/validation": "imagined episodes by which policies are compared",
    "logs/futures": "imagined futures behind the values of actions",
    "logs/misfit": "what T̂ misses on a system, in every future",
    "logs/system_reward": "what is not known of the rewards of a system",
    "logs/bootstrap": "draws of what a system's logged episodes are worth",
    "logs/fitted_q": "functions and weights of fitted Q evaluation",
    "logs/importance": "logged episodes drawn anew for importance sampling",
    "logs/limits": "weight draws and latents by which chances of breaking a limit are predicted",
    "logs/limits_steps": "steps of the futures behind these chances",
    "logs/support": "rows of a log that are kept",
    "study/search": "the long DQN runs behind best known returns",
    "study/search_validation": "starts on which policies of a search are chosen",
    "study/measured": "starts on which returns of frozen sets are measured",
    "study/prepare": "`prepare` of a user's method",
    "study/scaling": "the models of Figure 5",
    "study/uncertainty": "weight draws of Figure 1",
}
"""Every stream, and what it is for."""
_INDEX = zlib.crc32(b"index")
"""Folded in before an index, so that stream i is not part i of a split of the stream."""


def root_key(seed: int) -> PRNGKeyArray:
    """The key that a seed from 0 to 2⁶³ − 1 stands for; everything else is derived from it by name."""
    seed = check_seed(seed)
    if seed < 2**32:
        return jax.random.key(seed)
    # In 32 bits `jax.random.key` drops the upper half of a seed: 2³² would be 0 again.
    words: Any = np.asarray([seed >> 32, seed % 2**32], np.uint32)
    return jax.random.wrap_key_data(words)


def stream(key: PRNGKeyArray, name: str, *indices: int | Int[Array, ""]) -> PRNGKeyArray:
    """The key of the registered stream `name`, or of its member `indices`."""
    if name not in STREAMS:
        raise ValueError(f"{name!r} is not a registered random stream: add it to STREAMS in hipmdp/_random.py.")
    key = jax.random.fold_in(key, zlib.crc32(name.encode()))
    for index in indices:
        key = jax.random.fold_in(jax.random.fold_in(key, _INDEX), index)
    return key


def host_seed(key: PRNGKeyArray) -> int:
    """A seed that every Gymnasium environment takes: positive, 31 bits."""
    return int(jax.random.bits(key, (), jnp.uint32) >> 1)


def numpy_generator(key: PRNGKeyArray) -> np.random.Generator:
    """A NumPy generator that the key decides."""
    data: Any = np.asarray(jax.random.key_data(key))
    return np.random.default_rng(data)
