"""A fitted family and the log of a new instance: which one is it, and what is different about it?"""

from jaxtyping import Array, Float

from hipmdp._random import root_key, stream
from hipmdp.data.transitions import Transitions
from hipmdp.dynamics import infer
from hipmdp.dynamics.infer import Latent
from hipmdp.pretraining.model import Model


def infer_latent(model: Model, transitions: Transitions, seed: int = 0) -> Latent:
    """w_b of the instance that `transitions` came from, with W fixed: see `hipmdp.dynamics.infer`."""
    key = stream(root_key(seed), "logs/infer")
    return infer.infer_latent(model.need_dynamics("infer_latent"), transitions, key=key)


def tune_model(
    model: Model, transitions: Transitions, seed: int = 0, latent: Float[Array, " latent"] | None = None
) -> tuple[Model, Float[Array, " latent"]]:
    """The model tuned to a new instance, and that instance's w_b; the given model is not changed."""
    key = stream(root_key(seed), "logs/tune")
    tuned = infer.tune_model(model.need_dynamics("tune_model"), transitions, key=key, latent=latent)
    return model.with_dynamics(tuned.dynamics), tuned.latent
