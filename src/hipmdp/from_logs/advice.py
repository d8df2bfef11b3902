"""`Advice`: what to do now, and why."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Array, Float

from hipmdp.control.policy import Policy
from hipmdp.control.q_network import QNetwork
from hipmdp.dynamics.model import Dynamics
from hipmdp.settings.limits import Limits


@dataclass(frozen=True)
class Advice:
    """What to do now, and why."""

    action: int
    """The recommended one."""
    values: np.ndarray
    """[a]: mean discounted return of a now and the policy afterwards, in imagination."""
    low: np.ndarray
    """[a]: 2.5 % of the imagined futures are worse."""
    high: np.ndarray
    """[a]: 2.5 % are better."""
    cautious: np.ndarray
    """[a]: the mean over the worst share 1 − caution of the futures, by which actions are chosen; without caution the
    same as `values`."""
    chances: np.ndarray
    """[a]: chance of breaking a limit in any of the next `Limits.within` states, after a now; 0 without limits."""
    allowed: np.ndarray
    """[a]: whether that chance is at most the risk."""
    distances: np.ndarray
    """[a]: from the state to the nearest logged one in which a was taken, in spreads of the states."""
    reach: float
    """Where a distance is larger than this, nobody has tried that action near that state."""
    policy: Policy
    """argmax_a Q(s, a), within the limits where there are any: called with a state it gives the action, with rows of
    states an array of actions."""
    network: QNetwork
    """Q(s, a), with s as `Specification.from_origin` gives it; `policy` takes states as they are."""
    dynamics: Dynamics
    """T̂, tuned to the system."""
    latent: Float[Array, " latent"]
    caution: float = 0.0
    limits: Limits | None = None

    @property
    def supported(self) -> np.ndarray:
        """[a]: whether a was taken near the state."""
        return self.distances <= self.reach

    @property
    def remarks(self) -> list[str]:
        """What caution and limits have changed: a sentence each."""
        found, names = [], self.policy.specification.action_names
        chosen, wanted = names[self.action], int(self.cautious.argmax())
        if self.limits is not None and not self.allowed.any():
            found.append(
                f"Every action is predicted to break {self.limits} within {self.limits.within} steps with a chance "
                f"above {self.limits.risk:.3g}: {chosen}, the safest, does with {self.chances[self.action]:.2g}."
            )
        elif self.limits is not None and not self.allowed[wanted]:
            found.append(
                f"{names[wanted]} has the highest value, but breaks {self.limits} within {self.limits.within} steps "
                f"with a chance of {self.chances[wanted]:.2g}."
            )
        best = int(self.values.argmax())
        if best != wanted:
            found.append(f"{names[best]} has the highest mean, {names[wanted]} the highest in the worst futures.")
        return found
