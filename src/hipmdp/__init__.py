"""Families of control problems that differ in hidden parameters: learn the family, recognise a new member."""

from hipmdp.data.parquet import load_transitions, save_transitions
from hipmdp.data.transitions import Transitions
from hipmdp.dynamics.config import DynamicsConfig
from hipmdp.dynamics.infer import Latent
from hipmdp.families import make
from hipmdp.families.environments import register as _register
from hipmdp.families.family import AbstractFamily, Step
from hipmdp.families.instance_sets import Instance
from hipmdp.families.specification import Specification
from hipmdp.transfer.adapt import infer_latent, tune_model
from hipmdp.transfer.blind import train_blind
from hipmdp.transfer.collect import collect
from hipmdp.transfer.learn import learn_policy
from hipmdp.transfer.model import Model
from hipmdp.transfer.pretrain import LatentIgnoredWarning, pretrain
from hipmdp.transfer.run import Run
from hipmdp.transfer.storage import load

__version__ = "0.1.0"
__all__ = [
    "AbstractFamily",
    "DynamicsConfig",
    "Instance",
    "Latent",
    "LatentIgnoredWarning",
    "Model",
    "Run",
    "Specification",
    "Step",
    "Transitions",
    "collect",
    "infer_latent",
    "learn_policy",
    "load",
    "load_transitions",
    "make",
    "pretrain",
    "save_transitions",
    "train_blind",
    "tune_model",
]

_register()
