"""Passes, each of which looks at the whole graph."""
