"""Every change, by what it is in."""

from __future__ import annotations

from mutants.compiler import COMPILER
from mutants.graphs import GRAPHS
from mutants.mutation import Mutation
from mutants.runs import RUNS

__all__ = ["MUTATIONS"]

MUTATIONS: tuple[Mutation, ...] = (*COMPILER, *GRAPHS, *RUNS)
"""The changes, in the order in which they are tried out."""
