"""Enumerations of session options, with the names and numbers of onnxruntime's."""

from __future__ import annotations

from sardonyx.values.named import NamedEnum

__all__ = ["ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel"]


class GraphOptimizationLevel(NamedEnum):
    """How much the optimizer does; the numbers are onnxruntime's."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(NamedEnum):
    """Which executor walks the plan."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(NamedEnum):
    """In which of the topological orders nodes run."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2
