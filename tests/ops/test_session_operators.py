"""Operators that only one session knows."""

from __future__ import annotations

import threading

from sardonyx.dtypes import DataType
from sardonyx.ir import Node, TensorType, Value
from sardonyx.ops.fact import tensor
from sardonyx.ops.infer import infer_node
from sardonyx.ops.schema import OpSchema
from sardonyx.ops.schemas import find_schema, unknown_operator
from sardonyx.ops.session_operators import (
    SessionOperator,
    find_session_operator,
    session_operator_names,
    session_operators,
)

SCHEMA = OpSchema("mine", "Op", 1, (), (), {}, {}, 0, 9, 0, 9, is_open=True, owner="libx")
OPERATOR = SessionOperator(SCHEMA, lambda node, facts: (tensor(DataType.INT64, (7,)),))


class _Lookup:
    def find_operator(self, domain: str, op_type: str, version: int) -> SessionOperator | None:
        return OPERATOR if (domain, op_type) == ("mine", "Op") and version >= 1 else None

    def names(self) -> dict[tuple[str, str], str]:
        return {("mine", "Op"): "from 1 on"}


_lookup = _Lookup()


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


def test_messages_name_what_the_session_knows() -> None:
    """The nearest operator of a domain, the versions of one that exists, and a domain that was not added."""
    assert "the domain 'mine' is unknown" in unknown_operator("mine", "Opp", 1)
    with session_operators(_lookup):
        assert session_operator_names() == {("mine", "Op"): "from 1 on"}
        assert "did you mean Op? It has Op of 'mine'; add it by SessionOptions.add_operator" in unknown_operator("mine", "Opp", 1)
        assert "exists in versions from 1 on of its domain, the model imports 0" in unknown_operator("mine", "Op", 0)
        assert "sardonyx.tflite, mine; add it" in unknown_operator("other", "Op", 1)
    assert not session_operator_names()


def test_messages_name_the_owner() -> None:
    """By the schema's label."""
    assert SCHEMA.label == "mine.Op-1 of libx"
