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

    family: Dynamics
    """T̂ of the family."""
    dynamics: Dynamics
    """T̂ tuned to the log; the family's where that is accurate here and the settings keep it."""
    latent: Float[Array, " latent"]
    """The most probable w_b."""
    belief: Belief | None
    """p(w_b | log); None for a model without latents."""

    def deviations(self, log: Transitions, *, key: PRNGKeyArray) -> Deviations | None:
        """Draws of how far w_b may be from the most probable one, by the belief."""
        if self.belief is None:
            return None
        return doubt(
            self.family, self.dynamics, self.latent, log, temperature=None, key=stream(key, "logs/filter"),
            belief=self.belief,
        )  # fmt: skip


def known_system(model: Model, log: Transitions, config: AdaptationConfig, *, key: PRNGKeyArray) -> System:
    """What `log`, which is of one system, says about it; as in `learn_policy` after its episodes."""
    family = model.need_dynamics("A log")
    family.check(log)
    belief = smoothed(new_filter(family, stream(key, "logs/filter")), log) if model.has_latent else None
    latent = infer_latent(family, log, key=stream(key, "logs/infer")).value if belief is None else belief.best
    if config.keep_accurate_weights:
        error = quality(family, log, latent, key=stream(key, "logs/metrics")).error
        if error <= config.inaccurate_factor * model.expected_error:
            return System(family, family, latent, belief)
    tuned = tune_model(family, log, key=stream(key, "logs/tune"), latent=latent)
    return System(family, tuned.dynamics, tuned.latent, belief)
