"""Every setting: one dataclass per stage, its fields with their sources; `presets` holds the values per family."""

SETTINGS_VERSION = 2
"""Raised when a default changes what a method does: a study holds cells of one version."""
