"""`evaluate`: what a policy would be worth on a system of which there is only a log, and how sure that is."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from hipmdp._random import numpy_generator, root_key, stream
from hipmdp.control.policy import Policy
from hipmdp.data.support import Support
from hipmdp.data.transitions import Transitions
from hipmdp.from_logs.evaluation.estimate import (
    NO_ESTIMATE,
    Estimate,
    LoggedEpisodes,
    estimate_of,
    logged_episodes,
)
from hipmdp.from_logs.evaluation.fitted_q import fitted_q
from hipmdp.from_logs.evaluation.importance import importance_estimates
from hipmdp.from_logs.evaluation.named_policy import LOGGED, named_policy
from hipmdp.from_logs.evaluation.rollouts import (
    FUTURES,
    Futures,
    Values,
    Visited,
    policy_values,
    repeated_values,
)
from hipmdp.from_logs.evaluation.verdict import Verdict, verdict
from hipmdp.from_logs.system import System, known_system
from hipmdp.imagination.build import Surroundings, imagine_instance
from hipmdp.imagination.environment import Imagination
from hipmdp.imagination.reward import AbstractReward, log_reward
from hipmdp.pretraining.model import Model
from hipmdp.settings.presets import adaptation_preset

LEAST = 10
"""Transitions below which nothing can be said."""
LOOKED_AT = 500
"""Imagined steps whose support is asked for."""


@dataclass(frozen=True)
class Evaluation:
    """What a policy is worth on one system, with 90 % intervals."""

    system: str
    value: Estimate
    """The recommended one, discounted: by rollouts, as far as they can be believed."""
    undiscounted: Estimate
    """The same without discounting."""
    logged: Estimate
    """What was done, discounted: the mean of the complete logged episodes."""
    logged_undiscounted: Estimate
    estimates: dict[str, Estimate]
    """Each estimator's: `rollouts`, `fitted_q`, `weighted` and `doubly_robust` importance sampling; NaN: none."""
    repeated: Estimate
    """What the rollouts say that the logged actions earn: beside `logged`, how far they can be believed."""
    verdict: str
    """better, worse, or cannot tell."""
    reasons: tuple[str, ...]
    """Why it cannot be told."""
    unsupported: float
    """Share of what the policy would do that nobody has tried near such states."""
    effective_episodes: float
    """How many logged episodes the policy would have lived alike."""


def evaluate(
    model: Model,
    transitions: Transitions,
    policy: Any,
    reward: Callable[..., Any] | None = None,
    seed: int = 0,
) -> Evaluation:
    """The value of `policy` on the one system of `transitions`, from where its logged episodes begin to their end.

    `policy` is a `Policy` (of a run or an advice), a function of the state that returns an action, or a text: amortised
    (the model's own), logged (what was done), constant:ACTION, module:function, or the directory or model file of
    `hipmdp adapt --out`. `reward` as in `advise`.
    """
    key, specification = root_key(seed), model.specification
    if len(transitions.instances) != 1:
        names = ", ".join(transitions.name(i) for i in transitions.instances[:8])
        raise ValueError(f"One system is evaluated at a time, but the log has {len(transitions.instances)}: {names}.")
    if len(transitions) < LEAST:
        raise ValueError(f"A policy needs at least {LEAST} transitions to be evaluated, got {len(transitions)}.")
    rewards = log_reward(reward, model.reward_head, specification)
    config = adaptation_preset("default", specification)
    known = known_system(model, transitions, config, key=key)
    episodes = logged_episodes(transitions)
    if reward is not None or not transitions.specification.rewarded:
        episodes = _rewarded(episodes, transitions, rewards, known, key=stream(key, "logs/reward"))
    is_logged = isinstance(policy, str) and policy == LOGGED
    chosen = None if is_logged else named_policy(policy, model, known.belief)
    futures = _futures(model, transitions, known, rewards, key=key)
    name, discount = transitions.name(transitions.instances[0]), specification.discount
    asked = chosen or Policy(specification, lambda key, state, time: jnp.zeros((), jnp.int32))
    repeat_key = stream(key, "logs/futures", 2)
    repeated = repeated_values(futures, episodes, asked, discount, key=repeat_key)
    logged = [_bootstrapped(episodes, factor, key=stream(key, "logs/bootstrap")) for factor in (discount, 1.0)]
    facts: dict[str, Any] = {
        "system": name,
        "logged": _or_none(logged[0], episodes.returns(discount)[episodes.complete]),
        "logged_undiscounted": _or_none(logged[1], episodes.returns(1.0)[episodes.complete]),
        "repeated": estimate_of(repeated.discounted),
    }
    if chosen is None:
        estimates = {"rollouts": facts["repeated"]}
        return Evaluation(
            **facts, value=facts["logged"], undiscounted=facts["logged_undiscounted"], estimates=estimates,
            verdict="what was done", reasons=(), unsupported=0.0, effective_episodes=float(episodes.complete.sum()),
        )  # fmt: skip
    values, visited = policy_values(futures, chosen, episodes, discount, key=stream(key, "logs/futures", 3))
    value, undiscounted, disagreement = _believed(values, repeated, episodes, discount)
    fitted = fitted_q(episodes, chosen, discount, key=stream(key, "logs/fitted_q"))
    weighted = importance_estimates(
        episodes, chosen, fitted.values, discount, key=stream(key, "logs/importance")
    )  # fmt: skip
    unsupported = _unsupported(model, transitions, visited, key=stream(key, "logs/support"))
    told = _verdict(
        values, value, logged[0], disagreement, episodes, weighted.weighted, weighted.effective_episodes, unsupported
    )
    return Evaluation(
        **facts,
        value=value,
        undiscounted=undiscounted,
        estimates={
            "rollouts": estimate_of(values.discounted),
            "fitted_q": fitted.value,
            "weighted": weighted.weighted,
            "doubly_robust": weighted.doubly_robust,
        },
        verdict=told.word,
        reasons=told.reasons,
        unsupported=unsupported,
        effective_episodes=weighted.effective_episodes,
    )


def _futures(model: Model, log: Transitions, known: System, rewards: AbstractReward, *, key: PRNGKeyArray) -> Futures:
    """Draws of W and w_b, and the noise of this system."""
    starts = jnp.zeros((1, model.specification.state_size), jnp.float32)
    around = Surroundings(rewards, starts, np.asarray(model.low), np.asarray(model.high))
    config = replace(
        adaptation_preset("default", model.specification), weight_draws=FUTURES, mean_weights=False, pqn=None
    )
    imagined = imagine_instance(
        known.dynamics, known.latent, log, around, config=config, deviations=known.deviations,
        key=stream(key, "logs/futures"),
    )  # fmt: skip
    assert isinstance(imagined.environment, Imagination)
    misfit = 1.0 if known.belief is None else known.belief.misfit
    noise = jnp.sqrt(misfit * known.dynamics.noise_variance())
    return Futures(imagined.environment, imagined.contexts, noise)


def _rewarded(
    episodes: LoggedEpisodes, log: Transitions, rewards: AbstractReward, known: System, *, key: PRNGKeyArray
) -> LoggedEpisodes:
    """With the rewards of a function, or those that were learned."""
    from_origin = log.specification.from_origin
    columns = (
        jnp.asarray(from_origin(episodes.state[episodes.valid])), jnp.asarray(episodes.action[episodes.valid]),
        jnp.asarray(from_origin(episodes.next_state[episodes.valid])),
    )  # fmt: skip
    values, _ = jax.vmap(lambda s, a, n: rewards(key, s, a, n, known.latent))(*columns)
    found = np.asarray(values, np.float64)
    if not np.isfinite(found).all():
        raise ValueError("The reward is not finite in some logged transition.")
    reward = np.zeros(episodes.valid.shape)
    reward[episodes.valid] = found
    return episodes._replace(reward=reward)


def _bootstrapped(episodes: LoggedEpisodes, discount: float, *, key: PRNGKeyArray) -> np.ndarray:
    """Draws of the mean return of the complete episodes, as many as there are futures."""
    returns = episodes.returns(discount)[episodes.complete]
    if len(returns) == 0:
        return np.full(FUTURES, np.nan)
    rows = numpy_generator(key).integers(len(returns), size=(FUTURES, len(returns)))
    return returns[rows].mean(axis=1)


def _or_none(draws: np.ndarray, returns: np.ndarray) -> Estimate:
    return NO_ESTIMATE if len(returns) == 0 else estimate_of(draws)._replace(value=float(returns.mean()))


def _believed(
    values: Values, repeated: Values, episodes: LoggedEpisodes, discount: float
) -> tuple[Estimate, Estimate, str]:
    """The rollouts' value with an interval that is as much wider as they miss what was earned; and whether they do."""
    found, disagreement = [], ""
    for draws, again, factor in (
        (values.discounted, repeated.discounted, discount),
        (values.undiscounted, repeated.undiscounted, 1.0),
    ):
        own, logged = estimate_of(draws), estimate_of(again)
        earned = float(episodes.returns(factor).mean())
        # Beyond what the futures differ by; in proportion, as values of good and bad policies can be decades apart.
        missed = max(0.0, logged.low - earned, earned - logged.high)
        size = np.mean(np.abs(again))
        share = missed * (np.mean(np.abs(draws)) / size if size > 0 else 1.0)
        found.append(Estimate(own.value, own.low - share, own.high + share))
        if factor == discount and missed > max(abs(earned), logged.high - logged.low):
            disagreement = f"the model is wrong about what was done: {logged.value:.4g} instead of {earned:.4g}"
    return found[0], found[1], disagreement


def _unsupported(model: Model, log: Transitions, visited: Visited, *, key: PRNGKeyArray) -> float:
    """Share of imagined steps further from what was tried than `Support.reach`."""
    support = Support.sample(log, key=key)
    if model.support is not None:
        support = model.support.joined(support)
    spread = np.asarray(model.scale)
    chosen = np.linspace(0, len(visited.action) - 1, min(LOOKED_AT, len(visited.action))).astype(np.int64)
    count, reach = model.specification.action_count, support.reach(spread)
    gaps = [support.distances(visited.state[i], spread, count)[visited.action[i]] for i in chosen]
    return float(np.mean(np.asarray(gaps) > reach))


def _verdict(
    values: Values,
    value: Estimate,
    logged: np.ndarray,
    disagreement: str,
    episodes: LoggedEpisodes,
    weighted: Estimate,
    effective: float,
    unsupported: float,
) -> Verdict:
    raw = estimate_of(values.discounted)
    # As much wider as the recommended interval is.
    wider = (value.high - value.low) / max(raw.high - raw.low, 1e-300)
    draws = value.value + (values.discounted - raw.value) * max(1.0, min(wider, 1e9))
    return verdict(
        draws - logged,
        complete=int(episodes.complete.sum()),
        unsupported=unsupported,
        disagreement=disagreement,
        value=value,
        weighted=weighted,
        effective=effective,
    )
