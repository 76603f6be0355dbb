"""Executors: ways to walk a plan, all with the same results."""
