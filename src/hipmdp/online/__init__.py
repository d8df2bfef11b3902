"""Instances one after the other, without a batch."""
