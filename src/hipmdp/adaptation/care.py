"""Caution and limits of a run: where they come from, and for which methods they mean something."""

from typing import Any

from hipmdp.adaptation.method import RunnableMethod, Setting
from hipmdp.pretraining.model import Model
from hipmdp.settings.adaptation import AdaptationConfig
from hipmdp.settings.limits import check_caution


def caution_of(asked: float | None, model: Any, config: AdaptationConfig | None) -> float | None:
    """What is asked for; otherwise what the settings say, and without any what the model was made with."""
    if asked is not None:
        return check_caution(asked)
    return model.caution if config is None and isinstance(model, Model) else None


def check_care(method: RunnableMethod, model: Any, setting: Setting, *, asked: bool) -> None:
    """One clear sentence where limits would not be kept, or the caution that was asked for would mean nothing."""
    used = method.used_config
    limits = setting.limits or (None if used is None else used.limits)
    if limits is not None and not (method.keeps_limits and used is not None and used.limits == limits):
        raise ValueError(f"Limits are kept by method 'amortised', and not by {method.name!r}.")
    acts = method.acts_under_belief(model) and used is not None and used.caution == setting.caution
    if asked and setting.caution and not acts:
        raise ValueError(
            f"caution is for methods whose Q(s, w) acts under a belief about w_b: {method.name!r} has none here."
        )
