"""Gymnasium environments as a family, and our families as Gymnasium environments."""
