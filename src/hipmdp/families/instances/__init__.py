"""Instances in the forms in which users name them; beside this file, the frozen sets that ship with the package.

One file per family, `<family>.json`; the wide acrobot (sd 0.25) has its own. Each instance holds θ by name, the mean
returns of the random policy and of the best constant action, the best known one, and its source. A user's own family
has the sets it gives; others are drawn, always alike, without returns.
"""

from typing import Any

import jax
from jaxtyping import PRNGKeyArray

from hipmdp.families.base_family import BaseFamily
from hipmdp.families.instance import Instance, Theta, stack_thetas, unscored

__all__ = ["Instance", "frozen_instance", "resolve_instance", "resolve_instances", "stack_thetas", "unscored"]


def frozen_instance(family: BaseFamily, label: str) -> Instance:
    """The instance called "test:3"."""
    name, _, position = label.partition(":")
    members = family.instances(name)
    if not position.isdecimal() or len(position) > 9 or int(position) >= len(members):
        raise ValueError(f"Instance {label!r} of {family.name} must be written {name}:0 to {name}:{len(members) - 1}.")
    return members[int(position)]


def resolve_instance(family: BaseFamily, instance: Any, key: PRNGKeyArray) -> Theta:
    """θ_b from any of the forms users may give: θ, a dict by name, "test:3", or None (drawn with `key`)."""
    if instance is None:
        return jax.tree.map(lambda leaf: leaf[0], family.draw_instances(key, 1))
    if isinstance(instance, Instance):
        return instance.theta
    if isinstance(instance, str):
        return frozen_instance(family, instance).theta
    return family.theta(instance)


def resolve_instances(family: BaseFamily, instances: Any, key: PRNGKeyArray) -> list[Theta]:
    """θ_b's from a count n (the first n of the family's training pool), a set's name, or a list of any form."""
    if isinstance(instances, bool) or instances is None:
        raise ValueError(f"instances must be a number, the name of a set or a list, got {instances!r}.")
    if isinstance(instances, int):
        members = family.instances(family.training_pool)
        if not 1 <= instances <= len(members):
            given = str(instances) if abs(instances) < 10**20 else "a number of many digits"
            raise ValueError(f"instances of {family.name} must be between 1 and {len(members)}, got {given}.")
        return [member.theta for member in members[:instances]]
    if isinstance(instances, str):
        if ":" in instances:
            return [resolve_instance(family, instances, key)]
        return [member.theta for member in family.instances(instances)]
    if isinstance(instances, (list, tuple)) and not isinstance(instances, type(family.baseline)):
        if not instances:
            raise ValueError("instances must name at least one instance, got an empty list.")
        keys = jax.random.split(key, len(instances))
        return [resolve_instance(family, instance, keys[i]) for i, instance in enumerate(instances)]
    return [family.theta(instances)]
