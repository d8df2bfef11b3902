"""The methods that are compared, as values of one type: what each knows beforehand, and how it learns."""

from dataclasses import dataclass

from hipmdp.dynamics.config import LatentRole
from hipmdp.families.checks import known_name


@dataclass(frozen=True)
class Method:
    """One way to meet a new instance. All that have a T̂ go through the same procedure (Algorithm 1)."""

    name: str
    role: LatentRole | None
    """How the latent enters T̂; None: there is no T̂, the policy is learned from real episodes, or not at all."""
    pretrained: bool
    """Whether it learns from the batch 𝒟 before it meets the instance."""
    learns: bool = True
    """Whether it learns from the instance itself."""
    amortised: bool = False
    """Whether it brings a Q(s, w) along, and so lives its first episode with a policy."""
    imagines: bool = True
    """Whether it imagines episodes of the instance, once there is a T̂."""


EMBEDDED = Method("embedded", LatentRole.EMBEDDED, pretrained=True)
"""The paper's: T̂(s, a, w_b)."""
LINEAR = Method("linear", LatentRole.LINEAR, pretrained=True)
"""w_bᵀ T̂(s, a): the earlier HiP-MDP's way to combine, with the same network."""
AVERAGE = Method("average", LatentRole.NONE, pretrained=True)
"""One T̂(s, a) for all instances."""
SCRATCH = Method("scratch", LatentRole.NONE, pretrained=False)
"""T̂(s, a) learned on this instance alone."""
MODEL_FREE = Method("model_free", None, pretrained=False)
"""Double DQN on the real instance."""
BLIND = Method("blind", None, pretrained=True, learns=False)
"""One policy for all instances, from `train_blind`: what transfer has to beat."""
AMORTISED = Method("amortised", LatentRole.EMBEDDED, pretrained=True, amortised=True, imagines=False)
"""Q(s, w), learned once for the family: infer w, act, infer again, from the first step on. Nothing is trained."""
REFINED = Method("refined", LatentRole.EMBEDDED, pretrained=True, amortised=True)
"""The same in the first episode; then Algorithm 1, which goes on from Q(·, w)."""

METHODS = {
    method.name: method for method in (EMBEDDED, LINEAR, AVERAGE, SCRATCH, MODEL_FREE, BLIND, AMORTISED, REFINED)
}


def find_method(name: str, purpose: str) -> Method:
    """The method of that name, or one clear sentence."""
    return METHODS[known_name(f"method of {purpose}", name, METHODS)]
