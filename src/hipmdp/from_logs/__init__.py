"""Answers about a system of which there is only a log."""
