"""Families of control problems that differ in hidden parameters: learn the family, recognise a new member."""

from hipmdp.data.log_columns import LogColumns
from hipmdp.data.logs import LeftOutWarning, read_logs
from hipmdp.data.parquet import load_transitions, save_transitions
from hipmdp.data.transitions import Transitions
from hipmdp.dynamics.belief import Belief
from hipmdp.dynamics.config import DynamicsConfig
from hipmdp.dynamics.infer import Latent
from hipmdp.families import make
from hipmdp.families.environments import register as _register
from hipmdp.families.family import AbstractFamily, Step
from hipmdp.families.gymnasium_family import gymnasium_family
from hipmdp.families.instance_sets import Instance
from hipmdp.families.specification import Specification
from hipmdp.transfer.adapt import infer_latent, tune_model
from hipmdp.transfer.advise import advise
from hipmdp.transfer.amortise import amortise
from hipmdp.transfer.blind import train_blind
from hipmdp.transfer.collect import collect
from hipmdp.transfer.learn import learn_policy
from hipmdp.transfer.model import Model
from hipmdp.transfer.online import OnlineRun, online
from hipmdp.transfer.outlook import outlook
from hipmdp.transfer.pretrain import LatentIgnoredWarning, pretrain
from hipmdp.transfer.recognise import recognise
from hipmdp.transfer.run import Run
from hipmdp.transfer.storage import load

__version__ = "0.1.0"
__all__ = [
    "AbstractFamily",
    "Belief",
    "DynamicsConfig",
    "Instance",
    "Latent",
    "LatentIgnoredWarning",
    "LeftOutWarning",
    "LogColumns",
    "Model",
    "OnlineRun",
    "Run",
    "Specification",
    "Step",
    "Transitions",
    "advise",
    "amortise",
    "collect",
    "gymnasium_family",
    "infer_latent",
    "learn_policy",
    "load",
    "load_transitions",
    "make",
    "online",
    "outlook",
    "pretrain",
    "read_logs",
    "recognise",
    "save_transitions",
    "train_blind",
    "tune_model",
]

_register()
