"""Write operators that are newer than the operator set of a model under the names that onnxruntime has for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sardonyx.dtypes import DataType
from sardonyx.ir import Attribute, Model, Node
from sardonyx.ir.walk import all_nodes
from sardonyx.optimize.contract import Context
from sardonyx.optimize.edit import Names, inherit_metadata, remove_dead, take_over
from sardonyx.optimize.helpers.older_attention import AttentionWriter, can_write_attention
from sardonyx.optimize.helpers.older_rotary import RotaryWriter, can_write_rotary
from sardonyx.optimize.rule import Builder

__all__ = ["WRITE_OLDER", "WriteOlder", "has_older_name"]

_MICROSOFT = "com.microsoft"
_TYPES = (DataType.FLOAT, DataType.FLOAT16)


def has_older_name(node: Node, opset: int) -> bool:
    """Return whether a node of ai.onnx that is newer can be written in a file that imports version `opset`."""
    if node.domain:
        return False
    if node.op_type in _CAN_WRITE:
        return _CAN_WRITE[node.op_type](node, opset)
    return node.op_type in _WRITERS and all(value is None or value.dtype in _TYPES for value in (*node.inputs, *node.outputs[:1]))


class WriteOlder:
    """Give nodes that the model's operator set does not have a name and a domain that it may have.

        Gelu:20(x)                    ->      com.microsoft.Gelu(x), FastGelu(x) where it approximates
        Swish:24(x) {alpha}           ->      com.microsoft.QuickGelu(x) {alpha}
        LayerNormalization:17         ->      LayerNormalization, which onnxruntime has in every set of ai.onnx
        RMSNormalization:23           ->      SimplifiedLayerNormalization, likewise
        Attention:23                  ->      com.microsoft.MultiHeadAttention (older_attention.py)
        RotaryEmbedding:23            ->      com.microsoft.RotaryEmbedding (older_rotary.py)

    So a model that is saved has fused operators without importing a newer set. Those that mean just the same are tabled here; what
    has no such name is not made where the set is to stay.

    Cost: O(nodes).
    """

    name = "write_older"

    def run(self, model: Model, context: Context) -> bool:
        """Rename; whether any node was."""
        imported = model.opset_imports.get("", 0)
        newer = [node for node in all_nodes(model) if node.version > imported and not node.domain]
        renamed = [node for node in newer if node.op_type in _WRITERS]
        for node in renamed:
            node.version = imported
            _WRITERS[node.op_type](node)
        rewritten = [node for node in newer if node.op_type in _CAN_WRITE]
        _rewrite(model, rewritten, imported)
        return bool(renamed or rewritten)


def _rewrite(model: Model, nodes: Sequence[Node], imported: int) -> None:
    """Put others in the place of nodes that need more than another name."""
    names = Names.of(model)
    writers = {"Attention": AttentionWriter(imported).write, "RotaryEmbedding": RotaryWriter().write}
    for node in nodes:
        node.version = imported
        builder = Builder(node, model.opset_imports, names.fresh)
        replaced = writers[node.op_type](builder, node)
        for old, new in replaced:
            take_over(old, new, imported)
        inherit_metadata([node], builder.nodes)
        remove_dead([node, *(old.producer for old, _ in replaced if old.producer is not None)])


def _write_gelu(node: Node) -> None:
    is_fast = node.text("approximate", "none") == "tanh"
    node.attributes.pop("approximate", None)
    _move(node, "FastGelu" if is_fast else "Gelu")


def _write_swish(node: Node) -> None:
    node.attributes["alpha"] = Attribute.of(node.number("alpha", 1.0))
    _move(node, "QuickGelu")


def _move(node: Node, op_type: str) -> None:
    node.domain, node.op_type, node.version = _MICROSOFT, op_type, 1


def _write_rms(node: Node) -> None:
    node.op_type = "SimplifiedLayerNormalization"


def _keep_name(node: Node) -> None:
    """Change nothing but the version."""


_WRITERS: Mapping[str, Callable[[Node], None]] = {
    "Gelu": _write_gelu,
    "LayerNormalization": _keep_name,
    "RMSNormalization": _write_rms,
    "Swish": _write_swish,
}
_CAN_WRITE: Mapping[str, Callable[[Node, int], bool]] = {"Attention": can_write_attention, "RotaryEmbedding": can_write_rotary}
"""Those that are written as other nodes."""

WRITE_OLDER = WriteOlder()
