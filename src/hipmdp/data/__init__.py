"""Logs by instance: transitions with instance and episode ids, files, and prioritized replay."""
