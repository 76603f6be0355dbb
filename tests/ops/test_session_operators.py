"""Operators that only one session knows."""

from __future__ import annotations

import threading

from sardonyx.dtypes import DataType
from sardonyx.ir import Node, TensorType, Value
from sardonyx.ops.fact import tensor
from sardonyx.ops.infer import infer_node
from sardonyx.ops.schema import OpSchema
from sardonyx.ops.schemas import find_schema
from sardonyx.ops.session_operators import SessionOperator, find_session_operator, session_operators

SCHEMA = OpSchema("mine", "Op", 1, (), (), {}, {}, 0, 9, 0, 9, is_open=True, owner="libx")
OPERATOR = SessionOperator(SCHEMA, lambda node, facts: (tensor(DataType.INT64, (7,)),))


def _lookup(domain: str, op_type: str, version: int) -> SessionOperator | None:
    return OPERATOR if (domain, op_type) == ("mine", "Op") else None


def test_they_are_known_within_the_block_only() -> None:
    """Checks find their schemas, inference their shapes."""
    node = Node("Op", [Value("x", TensorType(DataType.FLOAT))], 1, domain="mine", version=1)
    assert find_schema("mine", "Op", 1) is None
    with session_operators(_lookup):
        assert find_schema("mine", "Op", 1) is SCHEMA
        assert find_schema("", "Relu", 14) is not None
        assert infer_node(node)[0].shape == (7,)
    assert find_schema("mine", "Op", 1) is None
    assert infer_node(node)[0].shape is None


def test_other_threads_do_not_know_them() -> None:
    """Sessions may be built at the same time."""
    found: list[SessionOperator | None] = []
    with session_operators(_lookup):
        thread = threading.Thread(target=lambda: found.append(find_session_operator("mine", "Op", 1)))
        thread.start()
        thread.join()
    assert found == [None]


def test_no_lookup_changes_nothing() -> None:
    """As in sessions without custom operators."""
    with session_operators(None):
        assert find_session_operator("mine", "Op", 1) is None


def test_messages_name_the_owner() -> None:
    """By the schema's label."""
    assert SCHEMA.label == "mine.Op-1 of libx"
