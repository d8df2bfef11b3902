"""Every setting: one dataclass per stage, its fields with their sources.

`recipe` holds the values and rules for every family, `paper` the values of the paper for its three.
"""

SETTINGS_VERSION = 8
"""Raised when a default changes what a method does: a study holds cells of one version."""
