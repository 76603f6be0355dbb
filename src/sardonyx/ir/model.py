"""Models and functions: what a file holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sardonyx.ir.attribute import Attribute
from sardonyx.ir.graph import Graph
from sardonyx.ir.tensor import Tensor

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Function", "FunctionId", "Model"]

FunctionId = tuple[str, str, str]
"""Domain, name and overload of a model-local function."""


class Function:
    """A model-local function: a graph that is called like an operator."""

    __slots__ = ("attributes", "doc", "domain", "graph", "metadata", "name", "opset_imports", "overload")

    def __init__(
        self,
        domain: str,
        name: str,
        graph: Graph,
        opset_imports: dict[str, int],
        *,
        overload: str = "",
        attributes: dict[str, Attribute | None] | None = None,
    ) -> None:
        """Make a function.

        Args:
            domain: its domain.
            name: the operator name that calls it.
            graph: the body; its attributes may refer to the function's by `Attribute.reference`.
            opset_imports: domain -> version under which the body is read.
            overload: distinguishes functions of one domain and name.
            attributes: name -> default, None where the caller must give a value.
        """
        self.domain, self.name, self.overload, self.graph = domain, name, overload, graph
        self.opset_imports = opset_imports
        self.attributes = attributes or {}
        self.doc = ""
        self.metadata: dict[str, str] | None = None

    @property
    def id(self) -> FunctionId:
        """What a node's domain, op_type and overload must be to call it."""
        return self.domain, self.name, self.overload


class Model:
    """A graph with the functions and opset versions that it is read under."""

    __slots__ = (
        "configurations",
        "doc",
        "domain",
        "functions",
        "graph",
        "ir_version",
        "metadata",
        "opset_imports",
        "path",
        "placed",
        "producer_name",
        "producer_version",
        "stamps",
        "training",
        "version",
    )

    def __init__(self, graph: Graph, opset_imports: dict[str, int], *, ir_version: int = 10, path: Path | None = None) -> None:
        """Make a model.

        Args:
            graph: the main graph.
            opset_imports: domain -> version; "" is ai.onnx.
            ir_version: the version of the file format; informative.
            path: the file it came from, for messages and to find external data; None if from memory.

        `stamps` are the files that it was read from, with size, time of change, inode and device then; `placed` has the number of
        each tensor whose data was left in the file, in the order of the file, and location, offset and length of those whose data
        is in other files; `training` and `configurations` hold what a file says of training and devices, as the file format
        writes it.
        """
        self.graph, self.opset_imports, self.ir_version, self.path = graph, opset_imports, ir_version, path
        self.functions: dict[FunctionId, Function] = {}
        self.producer_name = self.producer_version = self.domain = self.doc = ""
        self.version = 0
        self.metadata: dict[str, str] = {}
        self.stamps: dict[Path, tuple[int, int, int, int]] = {}
        self.placed: dict[Tensor, int | tuple[str, int, int]] = {}
        self.training: tuple[bytes, ...] = ()
        self.configurations: tuple[bytes, ...] = ()

    def dismantle(self) -> None:
        """Free the graphs of a model that is no longer needed, as `Graph.dismantle` does; `label` and what texts say stay."""
        for function in self.functions.values():
            function.graph.dismantle()
        self.graph.dismantle()

    @property
    def label(self) -> str:
        """What messages call the model: its file name, else its graph's name."""
        return self.path.name if self.path is not None else self.graph.name or "model"
