"""The intermediate representation: pure data, no behaviour of any operator."""

from sardonyx.ir.attribute import ArrayAttribute, Attribute, AttributeKind, SparseTensor
from sardonyx.ir.graph import Graph, Node, Use, Value
from sardonyx.ir.model import Function, FunctionId, Model
from sardonyx.ir.operator import Operator
from sardonyx.ir.shape import Dim, Expr, Shape, symbol
from sardonyx.ir.tensor import KeptSource, Tensor
from sardonyx.ir.types import MapType, OptionalType, SequenceType, SparseTensorType, TensorType, ValueType

__all__ = [
    "ArrayAttribute",
    "Attribute",
    "AttributeKind",
    "Dim",
    "Expr",
    "Function",
    "FunctionId",
    "Graph",
    "KeptSource",
    "MapType",
    "Model",
    "Node",
    "Operator",
    "OptionalType",
    "SequenceType",
    "Shape",
    "SparseTensor",
    "SparseTensorType",
    "Tensor",
    "TensorType",
    "Use",
    "Value",
    "ValueType",
    "symbol",
]
