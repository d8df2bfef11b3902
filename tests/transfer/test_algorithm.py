"""Algorithm 1 end to end on a corridor whose actions may be swapped."""

import signal
from dataclasses import replace

import jax
import numpy as np
import pytest

import hipmdp
from hipmdp.control.config import DDQNConfig
from hipmdp.transfer import algorithm, learn
from hipmdp.transfer.config import TransferConfig
from hipmdp.transfer.config import preset as transfer_preset
from hipmdp.transfer.meeting import Phase
from hipmdp.transfer.methods import METHODS
from tests.dynamics.toys import random_batch
from tests.transfer.corridor import BOTH, CORRIDOR, DYNAMICS, TRANSFER

METHODS_WITH_MODEL = ("embedded", "linear", "average", "scratch")


@pytest.fixture(scope="module")
def batch():
    return random_batch(CORRIDOR, BOTH, episodes=30)


@pytest.fixture(scope="module")
def models(batch):
    return {m: hipmdp.pretrain(batch, m, config=DYNAMICS, quiet=True) for m in METHODS_WITH_MODEL}


def meet(model, instance, **options):
    settings = {"episodes": 2, "seed": 1, "config": TRANSFER, "quiet": True, **options}
    return hipmdp.learn_policy(model, CORRIDOR, instance, **settings)


@pytest.fixture(scope="module")
def runs(models):
    return {sign: meet(models["embedded"], {"direction": sign}) for sign in (1.0, -1.0)}


def test_one_episode_is_enough_to_know_which_way_is_right(runs):
    """From the middle three steps of 0.4 lead past 1: −1 −1 + 10 = 8, the best there is (9 for starts above 0.2)."""
    for sign, run in runs.items():
        assert run.returns.tolist() == [8.0, 8.0]
        assert run.success.tolist() == [1.0, 1.0]
        assert run.policy(np.zeros(1)) == (1 if sign > 0 else 0)
    apart = np.linalg.norm(np.asarray(runs[1.0].latent) - np.asarray(runs[-1.0].latent))
    assert apart > 0.3


def test_the_record(runs):
    run = runs[-1.0]
    assert run.transitions.episode_count == 2
    sums = run.transitions.episode_returns()
    np.testing.assert_allclose(run.learning_returns, [sums[(0, i)] for i in range(2)], rtol=1e-6)
    assert len(run.latents) == 2
    assert run.model_error[1] < run.model_error[0]
    assert (run.seconds > 0).all()


def test_imagined_episodes_may_begin_where_the_batch_was(models):
    """Who learned from the batch knows its states; scratch does not, whatever the settings say."""
    settings = {"episodes": 1, "config": replace(TRANSFER, restart_known=True, imagined_episodes=2)}
    known = {m: meet(models[m], {"direction": 1.0}, **settings).imagination[0].known for m in ("embedded", "scratch")}
    assert known["scratch"] is None
    np.testing.assert_array_equal(known["embedded"], models["embedded"].support.state)


@pytest.mark.parametrize("method", ["linear", "scratch"])
def test_the_other_methods_go_through_the_same_procedure(models, method):
    run = meet(models[method], {"direction": -1.0})
    assert run.method == method
    assert run.returns[1] == 8.0
    assert (run.latents == []) is (method == "scratch")


def test_the_average_model_does_not_know_the_way(models):
    """Half of its data say that right is right: before it is tuned its error is that of not knowing."""
    run = meet(models["average"], {"direction": -1.0}, episodes=1)
    assert run.model_error[0] > 0.8


def test_given_model_and_seed_decide_everything(models, runs):
    before = jax.tree.map(np.array, models["embedded"].dynamics)
    again = meet(models["embedded"], {"direction": -1.0})
    jax.tree.map(np.testing.assert_array_equal, before, models["embedded"].dynamics)
    jax.tree.map(np.testing.assert_array_equal, again.network, runs[-1.0].network)
    other = meet(models["embedded"], {"direction": -1.0}, seed=2, episodes=1)
    assert not np.array_equal(other.transitions.action[:10], again.transitions.action[:10])


def test_true_parts_can_be_swapped_in(batch, models):
    true = hipmdp.pretrain(batch, config=DYNAMICS, latents="true", quiet=True)
    assert true.oracle.names == ("direction",)
    run = meet(true, {"direction": -1.0}, episodes=1)
    assert run.returns[0] == 8.0
    np.testing.assert_allclose(run.latent, [-1.0])
    assert meet(models["average"], {"direction": -1.0}, episodes=1, dynamics="true").returns[0] == 8.0
    assert meet(models["embedded"], {"direction": -1.0}, episodes=1, reward="true").returns[0] == 8.0


def test_a_learned_reward_is_as_good_as_the_given_one(models):
    assert meet(models["embedded"], {"direction": 1.0}, episodes=1, reward="learned").returns[0] == 8.0


def test_with_the_batch_the_family_is_updated(batch, models):
    run = meet(models["embedded"], {"direction": 1.0}, episodes=1, batch=batch)
    assert run.model.dynamics.latents.shape == (3, 2)
    assert run.model.dynamics.config == models["embedded"].dynamics.config
    with pytest.raises(ValueError, match="The model was trained on 2 instances, the batch holds 1"):
        meet(models["embedded"], {"direction": 1.0}, episodes=1, batch=batch.of_instance(0))


def test_without_looks_the_last_policy_is_used(models):
    run = meet(models["embedded"], {"direction": 1.0}, episodes=1, config=replace(TRANSFER, look_episodes=0))
    assert run.returns[0] == 8.0


def test_a_long_run_tunes_again_whenever_there_are_twice_as_many_episodes():
    config = TransferConfig(retunings=2)
    assert [i for i in range(500) if config.is_milestone(i)] == [10, 20, 40, 80, 160, 320]
    assert not any(TransferConfig(retunings=0).is_milestone(i) for i in range(500))


def test_a_student_who_goes_on_needs_room_for_all_tunings():
    few = {"imagined_episodes": 100, "retunings": 2, "learner": DDQNConfig(lanes=10)}
    # After each of the first ten episodes, and after the eleventh, twenty-first and forty-first, ten more.
    assert TransferConfig(**few).most_imagined(41) == 100 + (10 + 3 + 1) * 10
    assert TransferConfig(**few, forget=False).most_imagined(41) == (3 + 3) * 100 + (10 + 3 + 1) * 10
    assert TransferConfig(**few, life_decides=False).most_imagined(41) == 100 + (41 + 1) * 10


def test_after_the_tenth_episode_an_accurate_model_is_tuned_too_and_a_policy_that_fails_is_given_up(
    models, tmp_path, monkeypatch
):
    """From the second tuning on the policies are of one who walks the wrong way: −1 in each of 20 steps."""
    settings = replace(TRANSFER, inaccurate_factor=1e9)
    wrong = meet(models["embedded"], {"direction": -1.0}, episodes=1, config=settings).network
    advance, meetings = algorithm.Algorithm.advance, []

    def spoil(self, meeting):
        meetings.append(meeting)
        if meeting.tunings > 1 and meeting.phase is Phase.EVALUATE:
            meeting.student = meeting.student._replace(best=wrong)
        advance(self, meeting)

    monkeypatch.setattr(algorithm.Algorithm, "advance", spoil)
    run = meet(models["embedded"], {"direction": 1.0}, episodes=14, config=settings, out=tmp_path)
    changes = [i for i in range(1, 14) if not np.array_equal(run.latents[i], run.latents[i - 1])]
    assert changes == [10]
    # Nothing is imagined after the tenth episode but at the new tuning: by the student there is, who cannot do better
    # than the best, and by a new one.
    few, many = TRANSFER.learner.lanes, TRANSFER.imagined_episodes
    assert (meetings[-1].forgotten, meetings[-1].imagined) == (many + 10 * few + many + few, many + few)
    # The eleventh episode is lived by the first policy, the twelfth by the wrong one, and all after it by the first.
    assert meetings[-1].followed == [0, *[1] * 10, 2, 1, 1]
    assert run.returns.tolist() == [*[8.0] * 10, -20.0, 8.0, 8.0, 8.0]
    assert run.policy(np.zeros(1)) == 1
    again = meet(models["embedded"], {"direction": 1.0}, episodes=14, config=settings, out=tmp_path)
    assert again.policy(np.zeros(1)) == 1


@pytest.mark.parametrize(
    ("episodes", "config", "expected"),
    [
        (11, TRANSFER, 1),
        (11, replace(TRANSFER, life_decides=False), 2),
        (10, TRANSFER, 2),
        (11, transfer_preset("paper", hipmdp.make("hiv").specification), 2),
    ],
)
def test_life_decides_after_the_tenth_episode_and_never_with_the_paper_s_settings(models, episodes, config, expected):
    theta = CORRIDOR.sample_instance(jax.random.key(0))
    run = algorithm.Algorithm(models["embedded"], CORRIDOR, theta, 20, 0, config, "given", "learned", lambda _: None)
    meeting = run.begin()
    meeting.tunings, meeting.followed = 2, [0, *[1] * (episodes - 2), 2]
    meeting.records["learning_returns"] = [0.0, *[8.0] * (episodes - 2), -20.0]
    assert run._followed(meeting) == expected


def test_a_rehearsed_first_episode_is_lived_by_a_policy_for_the_known_members(batch, monkeypatch):
    """The one member that T̂ knows has its goal three or four steps to the right: 10 − 2 or 10 − 3."""
    model = hipmdp.pretrain(batch.of_instance(0), "average", config=DYNAMICS, quiet=True)
    wanted, advance = [], algorithm.Algorithm.advance

    def watch(self, meeting):
        wanted.append((meeting.phase, meeting.imagined, int(meeting.student.learner.started)))
        advance(self, meeting)

    monkeypatch.setattr(algorithm.Algorithm, "advance", watch)
    settings = replace(TRANSFER, rehearsal=True)
    run = meet(model, {"direction": 1.0}, episodes=1, config=settings)
    many, few = TRANSFER.imagined_episodes, TRANSFER.learner.lanes
    assert wanted[:3] == [(Phase.REHEARSE, many, 0), (Phase.LIVE, many, many), (Phase.TUNE, many, many)]
    # A new student learns in the tuned model.
    assert wanted[3] == (Phase.IMAGINE, many + few, 0)
    assert run.learning_returns[0] in (7.0, 8.0)
    # Who has nothing to rehearse in begins at random, and the same member met with swapped actions is a surprise.
    assert meet(model, {"direction": -1.0}, episodes=1, config=settings).learning_returns[0] < 0
    theta = CORRIDOR.sample_instance(jax.random.key(0))
    for method in ("scratch", "model_free"):
        other = hipmdp.pretrain(batch, method, config=DYNAMICS, quiet=True)
        run = algorithm.Algorithm(other, CORRIDOR, theta, 1, 0, settings, "given", "learned", lambda _: None)
        assert run.begin().phase is Phase.LIVE


def test_a_student_who_finds_nothing_better_in_a_tuned_model_gives_way_to_a_new_one(models, monkeypatch):
    """The policy of the first tuning is the best there is."""
    begun, seen = [], []
    advance, anew = algorithm.Algorithm.advance, algorithm.begun_anew

    def watch(self, meeting):
        seen.append((self, meeting))
        advance(self, meeting)

    def begin(student, network, config, key):
        begun.append((int(student.learner.started), int(student.learner.replay.size)))
        fresh = anew(student, network, config, key)
        assert int(fresh.learner.started) == int(fresh.learner.replay.size) == 0
        first = models["embedded"].new_network(config, seen[-1][0].key(algorithm.NETWORK))
        weights = [net.layers[0].weight for net in (fresh.learner.online, network, student.learner.online, first)]
        same = [bool(np.array_equal(weights[0], other)) for other in weights[1:]]
        assert same == [True, False, False]
        assert all(not np.any(leaf) for leaf in jax.tree.leaves(fresh.learner.optimizer))
        assert fresh.best is student.best
        return fresh

    monkeypatch.setattr(algorithm.Algorithm, "advance", watch)
    monkeypatch.setattr(algorithm, "begun_anew", begin)
    always = replace(TRANSFER, inaccurate_factor=0.0, retunings=1)
    run = meet(models["embedded"], {"direction": 1.0}, episodes=2, config=always)
    assert run.returns.tolist() == [8.0, 8.0]
    ((started, size),), (_, meeting) = begun, seen[-1]
    each = TRANSFER.imagined_episodes + TRANSFER.learner.lanes
    assert meeting.forgotten == started == 2 * each
    assert 0 < size <= each * CORRIDOR.horizon
    assert int(meeting.student.learner.started) == meeting.imagined == each
    assert meeting.to_beat is None


def test_a_student_who_finds_a_better_policy_goes_on_with_an_empty_replay(models, monkeypatch):
    """The policy of the first tuning is made to look bad in the second model."""
    sizes, simulate = [], algorithm.simulate_episodes

    def watch(config, environment, contexts, student, *rest):
        sizes.append((int(student.learner.started), int(student.learner.replay.size)))
        return simulate(config, environment, contexts, student, *rest)

    monkeypatch.setattr(algorithm, "look", lambda *_: np.full(4, -100.0))
    monkeypatch.setattr(algorithm, "simulate_episodes", watch)
    always = replace(TRANSFER, inaccurate_factor=0.0, retunings=1)
    run = meet(models["embedded"], {"direction": 1.0}, episodes=2, config=always)
    assert sizes == [(0, 0), (TRANSFER.imagined_episodes + TRANSFER.learner.lanes, 0)]
    assert run.returns.tolist() == [8.0, 8.0]


def test_the_policy_is_kept_until_one_looks_better_in_the_tuned_model(models, monkeypatch):
    """After the second tuning nothing is imagined but what the policy of the first is worth now."""
    seen, simulate = [], algorithm.simulate_episodes

    def idle(config, environment, contexts, student, *rest):
        seen.append(float(student.best_return))
        return student if len(seen) > 1 else simulate(config, environment, contexts, student, *rest)

    monkeypatch.setattr(algorithm, "simulate_episodes", idle)
    always = replace(TRANSFER, inaccurate_factor=0.0, retunings=1)
    run = meet(models["embedded"], {"direction": 1.0}, episodes=2, config=always)
    # Once more by a new student.
    assert seen[0] == -np.inf
    assert 7 <= seen[1] == seen[2] <= 9
    assert len(seen) == 3
    assert run.returns.tolist() == [8.0, 8.0]


def test_retuning_happens_when_the_model_is_wrong_and_not_too_often(models):
    never = replace(TRANSFER, inaccurate_factor=1e9, imagined_episodes=8)
    always = replace(TRANSFER, inaccurate_factor=0.0, retunings=1, imagined_episodes=8)
    latents = {}
    for name, config in (("never", never), ("always", always)):
        run = meet(models["embedded"], {"direction": 1.0}, episodes=4, config=config)
        latents[name] = [np.asarray(latent) for latent in run.latents]
    assert all(np.array_equal(latent, latents["never"][0]) for latent in latents["never"])
    assert not np.array_equal(latents["always"][0], latents["always"][1])
    assert np.array_equal(latents["always"][1], latents["always"][3])


@pytest.mark.parametrize(("method", "every"), [("embedded", 5), ("model_free", 2)])
def test_ctrl_c_at_any_chunk_edge_and_the_same_bits_after(models, batch, method, every, tmp_path, monkeypatch):
    """Ctrl-C is pressed at every `every`-th chunk edge, in the middle of imagination too, until the run is done.

    T̂ is tuned after both episodes, the first of which is rehearsed where there is a T̂ to rehearse in.
    """
    model = models.get(method) or hipmdp.pretrain(batch, method)
    always = replace(TRANSFER, inaccurate_factor=0.0, rehearsal=True)
    whole = meet(model, {"direction": 1.0}, config=always)
    show, edges = learn._Report.show, 0

    def edge(self, meeting):
        nonlocal edges
        edges += 1
        if edges % every == 0:
            signal.raise_signal(signal.SIGINT)
        show(self, meeting)

    monkeypatch.setattr(learn._Report, "show", edge)
    monkeypatch.setattr(learn, "SAVE_SECONDS", 0)
    stops = 0
    while True:
        try:
            run = meet(model, {"direction": 1.0}, config=always, out=tmp_path)
            break
        except KeyboardInterrupt:
            stops += 1
            assert stops < 100
    assert stops >= 2
    jax.tree.map(np.testing.assert_array_equal, run.network, whole.network)
    for name in ("returns", "learning_returns", "model_error", "success"):
        np.testing.assert_array_equal(getattr(run, name), getattr(whole, name))
    np.testing.assert_array_equal(run.transitions.state, whole.transitions.state)
    # A finished run is read, not run again; another one is refused.
    monkeypatch.setattr(algorithm.Algorithm, "advance", None)
    again = meet(model, {"direction": 1.0}, config=always, out=tmp_path)
    np.testing.assert_array_equal(again.returns, whole.returns)
    with pytest.raises(ValueError, match="holds another run"):
        meet(model, {"direction": -1.0}, config=always, out=tmp_path)


def test_bad_calls_get_one_clear_sentence(batch, models):
    model = models["embedded"]
    grid = random_batch(hipmdp.make("grid"), [0], episodes=1)
    for call, message in (
        (lambda: meet(model, {"direction": 1.0}, reward="gven"), "Did you mean 'given'"),
        (lambda: meet(model, {"direction": 1.0}, dynamics="real"), "Unknown dynamics 'real'"),
        (lambda: meet(model, {"direction": 1.0}, batch=grid), "The batch is of 'grid', not of 'corridor'"),
        (lambda: meet(model, {"direction": 1.0}, out=__file__), "Cannot write to"),
        (lambda: meet(replace(model, reward_head=None), {"direction": 1.0}, reward="learned"), "reward head"),
        (lambda: hipmdp.pretrain(batch, "average", latents="true"), "needs a method with latents"),
        (lambda: hipmdp.pretrain(batch, "blind"), "use train_blind"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_methods_are_values_of_one_type():
    names = {"embedded", "linear", "average", "scratch", "model_free", "blind", "amortised", "refined"}
    assert set(METHODS) == names
    assert all(METHODS[name].name == name for name in METHODS)
