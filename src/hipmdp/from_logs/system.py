"""What a log says about one system: its belief about w_b, and T̂ as it is for this system."""

from typing import NamedTuple

from jaxtyping import Array, Float, PRNGKeyArray

from hipmdp._random import stream
from hipmdp.data.transitions import Transitions
from hipmdp.dynamics.belief import Belief, new_filter
from hipmdp.dynamics.infer import infer_latent, tune_model
from hipmdp.dynamics.model import Dynamics
from hipmdp.dynamics.quality import quality
from hipmdp.dynamics.smooth import smoothed
from hipmdp.imagination.build import doubt
from hipmdp.imagination.contexts import Deviations
from hipmdp.pretraining.model import Model
from hipmdp.settings.adaptation import AdaptationConfig


class System(NamedTuple):
    """One system as far as it is known."""

    dynamics: Dynamics
    """T̂: the family's where that is accurate here, otherwise tuned to the log."""
    latent: Float[Array, " latent"]
    """The most probable w_b."""
    deviations: Deviations | None
    """Draws of how far w_b may be from it; None for a model without latents."""
    belief: Belief | None
    """p(w_b | log), likewise."""


def known_system(model: Model, log: Transitions, config: AdaptationConfig, *, key: PRNGKeyArray) -> System:
    """What `log`, which is of one system, says about it; as in `learn_policy` after its episodes."""
    family = model.need_dynamics("A log")
    family.check(log)
    filter_key = stream(key, "logs/filter")
    belief = smoothed(new_filter(family, filter_key), log) if model.has_latent else None
    latent = infer_latent(family, log, key=stream(key, "logs/infer")).value if belief is None else belief.best
    error = quality(family, log, latent, key=stream(key, "logs/metrics")).error
    tuned = family
    if error > config.inaccurate_factor * model.expected_error or not config.keep_accurate_weights:
        tuned, latent = tune_model(family, log, key=stream(key, "logs/tune"), latent=latent)
    if belief is None:
        return System(tuned, latent, None, None)
    deviations = doubt(family, tuned, latent, log, temperature=None, key=filter_key, belief=belief)
    return System(tuned, latent, deviations, belief)
