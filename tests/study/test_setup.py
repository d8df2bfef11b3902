"""What users type, and which tasks it becomes."""

import pytest

from hipmdp.families import make
from hipmdp.study.ablations import ABLATIONS, ablated
from hipmdp.study.setup import Variant, parse_instances, parse_setup
from hipmdp.study.tasks import BatchTask, plan


def test_the_wide_acrobot_is_a_family_of_its_own():
    setup = parse_setup("acrobot:sd=0.25")
    assert setup.family_label == "acrobot-sd0.25"
    assert (setup.training, setup.training_episodes) == ("train32", 150)
    assert setup.make() == make("acrobot", sd=0.25)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("2", ["test:0", "test:1"]),
        ("test:3, test:1", ["test:3", "test:1"]),
        ("train", [f"train:{i}" for i in range(8)]),
    ],
)
def test_instances_by_number_label_or_set(text, found):
    assert parse_instances(make("acrobot"), text) == found


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: parse_setup("moon"), "Unknown family 'moon'"),
        (lambda: parse_setup("acrobot:sd=wide"), "must be a number"),
        (lambda: parse_setup("grid", training="9"), "between 1 and 2"),
        (lambda: parse_setup("grid", episodes=0), "episodes must be at least 1"),
        (lambda: parse_setup("grid", training_episodes=0), "training episodes must be at least 1"),
        (lambda: plan([parse_setup("grid", preset="papr")], [], {}, [0]), "Unknown preset 'papr'"),
        (lambda: parse_instances(make("hiv"), "test:99"), "test:0 to test:19"),
        (lambda: plan([], ["magic"], {}, [0]), "Unknown method of compare 'magic'"),
        (lambda: Variant("x", dynamics=(("latent", 2),)), "Did you mean 'latent_size'"),
        (lambda: Variant("x", dqn=(("epsilon", 2),)), "Unknown setting of DDQNConfig 'epsilon'"),
        (lambda: ablated(parse_setup("grid"), ["lr"]), "Unknown ablation"),
    ],
)
def test_bad_input_is_one_sentence(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_tasks_are_shared_where_they_are_the_same():
    setups = ablated(parse_setup("hiv"), ["latent_size", "imagination", "training"])
    cells = plan(setups, ["embedded"], {"hiv": ["test:0"]}, [0])
    models = {cell.setup.variant.name: cell.needs[0] for cell in cells}
    batches = {name: model.needs[0] for name, model in models.items()}
    # What is imagined has no part in pre-training; the number of latents has, but not in the batch.
    assert models["imagination=mean"] == models["plain"]
    assert models["latent_size=2"] != models["plain"]
    assert batches["latent_size=2"] == batches["plain"]
    assert batches["training=8"].setup.training == 8
    assert batches["training=32"] == batches["plain"]
    paths = [task.path for task in {*cells, *models.values(), *batches.values()}]
    assert len(set(paths)) == len(paths)


def test_another_collection_has_its_own_batch():
    variant = Variant("small", collection=(("hidden", (8, 8)),))
    setups = [parse_setup("grid"), parse_setup("grid", variant=variant)]
    plain, small = plan(setups, ["embedded"], {"grid": ["test:0"]}, [0])
    assert str(plain.needs[0].path) == "models/grid-train-500-embedded-seed0.hipmdp"
    assert str(small.needs[0].path) == "models/grid-train-500-embedded-small-seed0.hipmdp"
    assert str(plain.needs[0].needs[0].path) == "batches/grid-train-500-seed0.parquet"
    assert str(small.needs[0].needs[0].path) == "batches/grid-train-500-small-seed0.parquet"


def test_grid_has_no_more_than_two_training_instances():
    names = [setup.variant.name for setup in ablated(parse_setup("grid"), list(ABLATIONS))]
    assert "training=2" in names
    assert "training=4" not in names


def test_blind_is_trained_on_the_instances_of_the_batch():
    (cell,) = plan([parse_setup("grid")], ["blind"], {"grid": ["test:0"]}, [3])
    (batch,) = cell.needs[0].needs
    assert isinstance(batch, BatchTask)
