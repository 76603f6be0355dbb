"""What is wrong with a node or with its inputs is said in words that name the node; and nothing else happens."""

from __future__ import annotations

import time
import warnings

import onnx
import pytest
from onnx import helper
from support.bad_input import BadCase, bad_cases, operators, samples_of
from support.conformance import LEVELS
from support.random_nodes import random_cases

import sardonyx as ort
import sardonyx.providers.reference.kernels
from sardonyx import errors
from sardonyx.errors import InvalidArgument, InvalidGraph, SardonyxError
from sardonyx.ops.schema import OpSchema
from sardonyx.ops.schemas import find_schema
from sardonyx.providers.reference.registry import registered_operators
from sardonyx.session.providers import REFERENCE

LIMIT_S = 10
"""A bad case that takes longer hangs."""
DRAWS = 8
UNFORESEEN = "check them against the operator's documentation"
"""What the reference provider says where a kernel raised what is no error of ours."""
WITH_GRAPHS = {"If", "Loop", "Scan", "SequenceMap", "FlexAttention", "Gradient"}


def newest(domain: str, op_type: str) -> tuple[OpSchema, int] | None:
    """The newest schema of an operator and the opset that it is read under; None for one without schema or dropped."""
    opset = onnx.defs.onnx_opset_version() if not domain else 1 << 20
    schema = find_schema(domain, op_type, opset)
    if schema is None or schema.is_deprecated:
        return None
    return schema, opset if not domain else schema.since_version


SCHEMAS = {f"{domain or 'ai.onnx'}.{name}": found for domain, name in registered_operators() if (found := newest(domain, name))}


def attempt(case: BadCase) -> SardonyxError | None:
    """Run a bad case without optimization; the error that it gets, or None where it passes. Other errors pass through."""
    options = ort.SessionOptions()
    options.graph_optimization_level = LEVELS["off"]
    start = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ort.InferenceSession(case.model, options, providers=[REFERENCE]).run(None, case.feed)
        except SardonyxError as error:
            return error
        finally:
            assert time.monotonic() - start < LIMIT_S, case.change
    return None


def fault_of(error: SardonyxError | None, *, own: bool) -> str | None:
    """What is wrong with the way an error was said: the class, the place or, if `own`, that the kernel did not foresee it."""
    if error is None:
        return None
    if not isinstance(error, (InvalidArgument, InvalidGraph, errors.NotImplemented)):
        return f"{type(error).__name__}: {error}"
    if "the node" not in str(error):
        return f"the node is not named: {error}"
    root: BaseException = error
    while root.__cause__ is not None:
        root = root.__cause__
    return f"{error}, because of {root!r}" if own and UNFORESEEN in str(error) else None


@pytest.mark.parametrize(("domain", "op_type"), operators())
def test_a_changed_case_passes_or_is_refused_in_our_words(domain: str, op_type: str) -> None:
    """Every rank, size, index, type and attribute of two cases, changed one at a time."""
    wrong = []
    for case in samples_of(domain, op_type):
        for bad in bad_cases(case):
            fault = fault_of(attempt(bad), own=True)
            wrong += [] if fault is None else [f"{case.name}, {bad.change}: {fault}"]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_random_node_passes_or_is_refused(name: str) -> None:
    """Types as the schema lists them, with shapes and attributes that seldom fit; in our words for operators of the standard."""
    schema, opset = SCHEMAS[name]
    wrong = []
    for bad in random_cases(schema, opset, DRAWS if schema.name not in WITH_GRAPHS else 0):
        fault = fault_of(attempt(bad), own=not schema.is_open)
        wrong += [] if fault is None else [f"{bad.change}: {fault}"]
    assert not wrong, "\n".join(wrong)


def node_case(schema: OpSchema, opset: int, inputs: list[str], outputs: int, **attributes: object) -> BadCase:
    """A node on float inputs that nobody will feed: it is refused before."""
    names = [f"y{index}" for index in range(outputs)]
    node = helper.make_node(schema.name, inputs, names, "the node", domain=schema.domain, **attributes)
    values = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in dict.fromkeys(inputs) if name]
    graph = helper.make_graph([node], "bad", values, [helper.make_empty_tensor_value_info(name) for name in names])
    imports = [helper.make_opsetid(schema.domain, opset)]
    return BadCase("", helper.make_model(graph, opset_imports=imports, ir_version=10), {})


@pytest.mark.parametrize("name", SCHEMAS)
def test_wrong_numbers_of_inputs_and_outputs_are_refused(name: str) -> None:
    """One input less than the schema needs, one more than it takes, one output more than it gives."""
    schema, opset = SCHEMAS[name]
    cases = [node_case(schema, opset, ["x"] * (schema.min_inputs - 1), schema.min_outputs)] if schema.min_inputs else []
    if schema.max_inputs < 1 << 20:
        cases.append(node_case(schema, opset, ["x"] * (schema.max_inputs + 1), schema.min_outputs))
    if schema.max_outputs < 1 << 20:
        cases.append(node_case(schema, opset, ["x"] * schema.min_inputs, schema.max_outputs + 1))
    for case in cases:
        error = attempt(case)
        assert isinstance(error, InvalidGraph)
        assert '"the node"' in str(error)


@pytest.mark.parametrize("name", SCHEMAS)
def test_wrong_attributes_are_refused(name: str) -> None:
    """A number where the schema wants something else, and, in the standard's own domains, a name that it does not list."""
    schema, opset = SCHEMAS[name]
    known = [item for item in schema.attributes.values() if item.kind.name != "INT"][:1]
    cases = [node_case(schema, opset, ["x"] * schema.min_inputs, schema.min_outputs, **{item.name: 7}) for item in known]
    if not schema.is_open:
        cases.append(node_case(schema, opset, ["x"] * schema.min_inputs, schema.min_outputs, no_such_attribute=7))
    for case in cases:
        error = attempt(case)
        assert isinstance(error, InvalidGraph)
        assert '"the node"' in str(error)
