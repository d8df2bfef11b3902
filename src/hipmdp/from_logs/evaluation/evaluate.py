"""`evaluate`: what a policy would be worth on a system of which there is only a log, and how sure that is."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from hipmdp._random import root_key, stream
from hipmdp.data.transitions import Transitions
from hipmdp.from_logs.evaluation.estimate import Both, Estimate, estimate_of, in_order, logged_episodes, logged_value
from hipmdp.from_logs.evaluation.fitted_q import fitted_q
from hipmdp.from_logs.evaluation.futures import draw_futures
from hipmdp.from_logs.evaluation.importance import importance_estimates
from hipmdp.from_logs.evaluation.named_policy import LOGGED, named_policy
from hipmdp.from_logs.evaluation.recommended import recommended
from hipmdp.from_logs.evaluation.rollouts import policy_values, repeated_values, some_episodes
from hipmdp.from_logs.evaluation.verdict import DONE, Evidence, verdict
from hipmdp.from_logs.rewards import rewards_of
from hipmdp.from_logs.support import log_support, unsupported_share
from hipmdp.from_logs.system import known_system
from hipmdp.imagination.reward import log_reward
from hipmdp.pretraining.model import Model
from hipmdp.settings.presets import adaptation_preset

LEAST = 10
"""Transitions below which nothing can be said."""


@dataclass(frozen=True)
class Evaluation:
    """What a policy is worth on one system, from where its logged episodes begin; with 90 % intervals."""

    system: str
    value: Estimate
    """The recommended one, discounted: by rollouts in the posterior, as far as they can be believed."""
    undiscounted: Estimate
    """The same without discounting."""
    logged: Estimate
    """What was done, discounted: the mean of the episodes that went on to their end, or to the time limit."""
    logged_undiscounted: Estimate
    estimates: dict[str, Estimate]
    """Each estimator's, discounted: rollouts, fitted_q, weighted, doubly_robust. NaN where there is none."""
    estimates_undiscounted: dict[str, Estimate]
    repeated: Estimate
    """What the rollouts say that the logged actions earn: beside `earned`, how far they can be believed."""
    earned: float
    """What these actions did earn, discounted, the mean over the same episodes."""
    verdict: str
    """Beside what was done: better, worse, or cannot tell; what was done, where that was asked about."""
    reasons: tuple[str, ...]
    """Why it cannot be known."""
    unsupported: float
    """Share of what the policy would do that nobody has tried near such states."""
    effective_episodes: float
    """How many logged episodes are as the policy would have made them."""
    episodes: int
    """Logged episodes that went on to their end, or to the time limit."""


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
    `hipmdp adapt --out`. `reward` as in `advise`; by default the one that `pretrain` learned, put right by this log.
    """
    _check_one(transitions)
    check_evaluation(model, transitions, policy, reward)
    key, specification = root_key(seed), model.specification
    discount, log = specification.discount, in_order(transitions)
    rewards = log_reward(reward, model.reward_head, specification)
    known = known_system(model, transitions, adaptation_preset("default", specification), key=key)
    episodes = logged_episodes(log)
    # A log without a reward column has zeros there.
    earned = reward is None and bool(np.any(log.reward != 0))
    if not earned:
        episodes = episodes.with_rewards(rewards_of(log, rewards, known.latent, key=stream(key, "logs/reward")))
    chosen = None if _is(policy, LOGGED) else named_policy(policy, model, known.belief)
    if chosen is not None:
        # A user's function that fails does so here, and not inside of what is compiled.
        chosen(log.state)
    futures = draw_futures(model, known, log, episodes, rewards, put_right=earned, key=key)
    repeatable = some_episodes(episodes)
    again = repeated_values(futures, specification, repeatable, discount, key=stream(key, "logs/futures", 2))
    spreads = float(again.discounted.std()), float(again.undiscounted.std())
    logged, logged_draws = logged_value(episodes, discount, spreads, key=stream(key, "logs/bootstrap"))
    facts: dict[str, Any] = {
        "system": transitions.name(transitions.instances[0]),
        "logged": logged.discounted,
        "logged_undiscounted": logged.undiscounted,
        "repeated": estimate_of(again.means.discounted),
        "earned": float(repeatable.returns(discount).mean()),
        "episodes": int(episodes.complete.sum()),
    }
    if chosen is None:
        return _what_was_done(facts, logged)
    values, visited = policy_values(futures, chosen, episodes, discount, key=stream(key, "logs/futures", 3))
    best = recommended(values, again, repeatable, discount)
    fitted = fitted_q(episodes, chosen, discount, key=stream(key, "logs/fitted_q"))
    sampled = importance_estimates(episodes, chosen, fitted, discount, key=stream(key, "logs/importance"))
    tried = log_support(model, log, key=stream(key, "logs/support"))
    unsupported = unsupported_share(tried, model, visited.state, visited.action)
    found = verdict(
        Evidence(
            best.draws, logged_draws, logged.discounted, facts["episodes"], unsupported, best.disagreement,
            best.value.discounted, sampled.weighted.discounted, sampled.effective_episodes,
        )
    )  # fmt: skip
    every = {
        "rollouts": Both(*map(estimate_of, values.means)),
        "fitted_q": fitted.value,
        "weighted": sampled.weighted,
        "doubly_robust": sampled.doubly_robust,
    }
    return Evaluation(
        **facts,
        value=best.value.discounted,
        undiscounted=best.value.undiscounted,
        estimates={name: both.discounted for name, both in every.items()},
        estimates_undiscounted={name: both.undiscounted for name, both in every.items()},
        verdict=found.word,
        reasons=found.reasons,
        unsupported=unsupported,
        effective_episodes=sampled.effective_episodes,
    )


def _what_was_done(facts: dict[str, Any], logged: Both) -> Evaluation:
    """It is what it was."""
    return Evaluation(
        **facts, value=logged.discounted, undiscounted=logged.undiscounted, estimates={}, estimates_undiscounted={},
        verdict=DONE, reasons=(), unsupported=0.0, effective_episodes=float(facts["episodes"]),
    )  # fmt: skip


def evaluate_each(
    model: Model,
    transitions: Transitions,
    policy: Any,
    reward: Callable[..., Any] | None = None,
    seed: int = 0,
) -> Iterator[Evaluation]:
    """`evaluate` on each system of a log, one after the other as they are asked for."""
    for instance in transitions.instances:
        yield evaluate(model, transitions.of_instance(instance), policy, reward, seed)


def check_evaluation(model: Model, transitions: Transitions, policy: Any, reward: Callable[..., Any] | None) -> None:
    """One clear sentence where what is asked cannot be answered for every system of a log."""
    model.need_dynamics("evaluate").check(transitions)
    log_reward(reward, model.reward_head, model.specification)
    if not _is(policy, LOGGED):
        named_policy(policy, model, None)
    for instance in transitions.instances:
        count = int(np.sum(transitions.instance == instance))
        if count < LEAST:
            raise ValueError(
                f"A policy needs at least {LEAST} transitions of a system to be evaluated, but "
                f"{transitions.name(instance)!r} has {count}."
            )


def _check_one(transitions: Transitions) -> None:
    if len(transitions.instances) != 1:
        names = ", ".join(transitions.name(i) for i in transitions.instances[:8])
        raise ValueError(
            f"One system is evaluated at a time, but the log has {len(transitions.instances)} ({names}): use "
            "evaluate_each."
        )


def _is(policy: Any, name: str) -> bool:
    return isinstance(policy, str) and policy == name
