"""Running an operator through the standard's function body, where no provider has a kernel for it."""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.formats.function import load_function
from sardonyx.ir import Attribute, Model, Node
from sardonyx.ops.function_bodies import function_body
from sardonyx.ops.schemas import find_schema
from sardonyx.optimize.contract import Context
from sardonyx.optimize.passes.infer_shapes import INFER_SHAPES
from sardonyx.optimize.passes.inline_functions import INLINE_FUNCTIONS

__all__ = ["expand"]


def expand(model: Model, nodes: Sequence[Node]) -> bool:
    """Replace those of `nodes` that have a function body by it; whether any had one.

    Attributes that a node leaves out take the schema's defaults. Types and shapes inside the bodies are inferred.
    """
    for number, node in enumerate(nodes):
        body = function_body(node)
        if body is None:
            continue
        function = load_function(body.proto, body.opset_imports)
        schema = find_schema(node.domain, node.op_type, node.version)
        for name in function.attributes:
            default = None if schema is None else schema.attributes[name].default
            if function.attributes[name] is None and default is not None:
                function.attributes[name] = Attribute.of(default)
        function.domain, function.name, function.overload = node.domain, node.op_type, f"body {number}"
        node.overload = function.overload
        model.functions[function.id] = function
    if not model.functions:
        return False
    context = Context()
    INLINE_FUNCTIONS.run(model, context)
    INFER_SHAPES.run(model, context)
    return True
