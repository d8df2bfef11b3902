"""Families of control problems that differ in hidden parameters: learn the family, identify a new member."""

from hipmdp.adaptation.learn_policy import learn_policy
from hipmdp.adaptation.method import AbstractMethod
from hipmdp.adaptation.run import Run
from hipmdp.control.policy import Policy
from hipmdp.data.logs.columns import LogColumns
from hipmdp.data.logs.parquet import load_transitions, save_transitions
from hipmdp.data.logs.read import LeftOutWarning, read_logs
from hipmdp.data.transitions import Transitions
from hipmdp.dynamics.belief import Belief
from hipmdp.dynamics.infer import Latent
from hipmdp.dynamics.model import Dynamics, Prediction
from hipmdp.dynamics.quality import Quality
from hipmdp.families import make
from hipmdp.families.gymnasium.build import gymnasium_family
from hipmdp.families.gymnasium.environments import register as _register
from hipmdp.families.instance import Instance
from hipmdp.families.protocol import AbstractFamily
from hipmdp.families.rollout import Episode, Step, Transition
from hipmdp.families.specification import Specification
from hipmdp.from_logs.advice import Advice
from hipmdp.from_logs.advise import advise
from hipmdp.from_logs.evaluation.estimate import Estimate
from hipmdp.from_logs.evaluation.evaluate import Evaluation, evaluate, evaluate_each
from hipmdp.from_logs.forecast import Forecast, forecast
from hipmdp.from_logs.identify import Identification, Neighbour, identify
from hipmdp.from_logs.tune import infer_latent, tune_model
from hipmdp.imagination.build import Imagined
from hipmdp.online.loop import OnlineRun, online
from hipmdp.online.model_size import Choice
from hipmdp.online.state import OnlineRecord
from hipmdp.pretraining.amortise import amortise
from hipmdp.pretraining.blind import train_blind
from hipmdp.pretraining.collect import collect
from hipmdp.pretraining.model import Model, load
from hipmdp.pretraining.pretrain import LatentIgnoredWarning, NothingToLearnWarning, pretrain
from hipmdp.settings.adaptation import AdaptationConfig
from hipmdp.settings.amortise import AmortiseConfig
from hipmdp.settings.dqn import DDQNConfig
from hipmdp.settings.dynamics import DynamicsConfig, LatentRole
from hipmdp.settings.limits import Limits
from hipmdp.settings.online import GrowthConfig, OnlineConfig
from hipmdp.settings.pqn import PQNConfig

__version__ = "0.1.0"
__all__ = [
    "AbstractFamily",
    "AbstractMethod",
    "AdaptationConfig",
    "Advice",
    "AmortiseConfig",
    "Belief",
    "Choice",
    "DDQNConfig",
    "Dynamics",
    "DynamicsConfig",
    "Episode",
    "Estimate",
    "Evaluation",
    "Forecast",
    "GrowthConfig",
    "Identification",
    "Imagined",
    "Instance",
    "Latent",
    "LatentIgnoredWarning",
    "LatentRole",
    "LeftOutWarning",
    "Limits",
    "LogColumns",
    "Model",
    "Neighbour",
    "NothingToLearnWarning",
    "OnlineConfig",
    "OnlineRecord",
    "OnlineRun",
    "PQNConfig",
    "Policy",
    "Prediction",
    "Quality",
    "Run",
    "Specification",
    "Step",
    "Transition",
    "Transitions",
    "advise",
    "amortise",
    "collect",
    "evaluate",
    "evaluate_each",
    "forecast",
    "gymnasium_family",
    "identify",
    "infer_latent",
    "learn_policy",
    "load",
    "load_transitions",
    "make",
    "online",
    "pretrain",
    "read_logs",
    "save_transitions",
    "train_blind",
    "tune_model",
]

_register()
