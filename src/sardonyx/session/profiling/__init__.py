"""Profiles: recording runs with their steps, and reading what was recorded."""
