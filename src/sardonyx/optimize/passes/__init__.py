"""Passes, each of which takes the whole graph."""
