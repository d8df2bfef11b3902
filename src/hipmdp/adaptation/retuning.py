"""When T̂ is tuned again, and how many episodes are imagined: the one place that decides."""

from hipmdp.adaptation.state import AdaptationState, Phase
from hipmdp.settings.adaptation import FIRST_EPISODES, AdaptationConfig


def is_due(
    config: AdaptationConfig,
    *,
    episode: int,
    tunings: int,
    error: float,
    expected_error: float,
    surprised: bool = False,
) -> bool:
    """Whether T̂ is tuned after this episode, counted from 0.

    After the first one always; up to the tenth where the error on the episode just seen is more than
    `inaccurate_factor` times the held-out error of pre-training (scratch: always), or its return was far below what was
    imagined, `retunings` times at most; later at the milestones.
    """
    if episode == 0:
        return True
    if episode >= FIRST_EPISODES:
        return is_milestone(config, episode)
    return (surprised or error > config.inaccurate_factor * expected_error) and tunings <= config.retunings


def is_milestone(config: AdaptationConfig, episode: int) -> bool:
    """Whether T̂ is tuned though it may be accurate: after the eleventh, twenty-first, forty-first, … episode."""
    tens, rest = divmod(episode, FIRST_EPISODES)
    return config.retunings > 0 and tens > 0 and rest == 0 and tens.bit_count() == 1


def keeps_imagining(config: AdaptationConfig, episode: int) -> bool:
    """Whether some more episodes are imagined after this one, counted from 0, though T̂ was not tuned.

    After the tenth a policy stays as it is until the next tuning, so that real returns can judge it: in a model that
    has nothing more to teach, the search for what looks better finds the model's errors.
    """
    return episode < FIRST_EPISODES or not config.revert_to_better_policy


def additional_episodes(config: AdaptationConfig, episodes: int, first: int = 0) -> int:
    """Imagined episodes beside the N_f of every tuning, from real episode `first` on."""
    keeps = (keeps_imagining(config, i) or is_milestone(config, i) for i in range(first, episodes))
    return config.dqn.lanes * sum(keeps)


def most_imagined(config: AdaptationConfig, episodes: int) -> int:
    """Imagined episodes that one DQN sees on one instance, at most: what its replay must hold."""
    tunings = 1 + config.retunings + sum(is_milestone(config, i) for i in range(episodes))
    many = config.imagined_episodes * (1 if config.clear_replay_on_retune else tunings)
    return many + additional_episodes(config, episodes) + config.dqn.lanes


def imagined_so_far(config: AdaptationConfig, state: AdaptationState, episodes: int) -> tuple[int, int]:
    """Imagined episodes that are done, and how many there will be if T̂ stays accurate."""
    done = state.imagined_before + int(state.policy_learner.dqn.started)
    begun = state.episode + (state.phase is Phase.IMAGINE)
    first = 0 if state.tunings else config.imagined_episodes
    return done, state.imagined_before + state.imagined_target + first + additional_episodes(config, episodes, begun)
