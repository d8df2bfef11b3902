"""Every setting: one dataclass per stage, its fields with their sources.

`recipe` holds the values and rules for every family, `presets` those of the paper's three.
"""

SETTINGS_VERSION = 3
"""Raised when a default changes what a method does: a study holds cells of one version."""
