"""What is wrong with a node or with its inputs is said in words that name the node; and nothing else happens."""

from __future__ import annotations

import resource
import time
import warnings

import onnx
import pytest
from onnx import helper
from support.bad_input import BadCase, bad_cases, operators, samples_of
from support.conformance import LEVELS
from support.contrib_cases import contrib_cases
from support.random_nodes import newest_schemas, random_cases

import sardonyx as ort
from sardonyx import errors
from sardonyx.errors import InvalidArgument, InvalidGraph, SardonyxError
from sardonyx.ops.schema import OpSchema
from sardonyx.session.providers import REFERENCE

LIMIT_S = 10
"""A bad case that takes longer hangs."""
LIMIT_BYTES = 256 << 20
"""One that takes more memory than this takes it for a number, not for what it was fed."""
DRAWS = 8
UNFORESEEN = "check them against the operator's documentation"
"""What the reference provider says where a kernel raised what is no error of ours."""
CONTRIB = {case.name: case for case in contrib_cases()}
PROVIDERS = {"reference": REFERENCE, "cpu": "CPUExecutionProvider"}
SCHEMAS = newest_schemas()


def peak_bytes() -> int:
    """The most memory that this process has had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def attempt(case: BadCase, provider: str = REFERENCE) -> SardonyxError | None:
    """Run a bad case without optimization; the error that it gets, or None where it passes. Other errors pass through."""
    options = ort.SessionOptions()
    options.graph_optimization_level = LEVELS["off"]
    start, before = time.process_time(), peak_bytes()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ort.InferenceSession(case.model, options, providers=[provider]).run(None, case.feed)
        except SardonyxError as error:
            return error
        finally:
            assert peak_bytes() - before < LIMIT_BYTES, case.change
            assert time.process_time() - start < LIMIT_S, case.change
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


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(("domain", "op_type"), operators())
def test_a_changed_case_passes_or_is_refused_in_our_words(domain: str, op_type: str, provider: str) -> None:
    """Every rank, size, index, type and attribute of two cases, changed one at a time, on either provider."""
    wrong = []
    for case in samples_of(domain, op_type):
        for bad in bad_cases(case):
            fault = fault_of(attempt(bad, PROVIDERS[provider]), own=True)
            wrong += [] if fault is None else [f"{case.name}, {bad.change}: {fault}"]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("name", CONTRIB)
def test_a_changed_node_outside_the_suite_passes_or_is_refused_in_our_words(name: str, provider: str) -> None:
    """The same for com.microsoft, ai.onnx.ml and sardonyx.tflite, of which the suite has few or none; the node itself runs."""
    case = CONTRIB[name]
    names = [item.name for item in case.model.graph.input]
    assert attempt(BadCase("as it is", case.model, dict(zip(names, case.data_sets[0][0], strict=True)))) is None
    faults = {bad.change: fault_of(attempt(bad, PROVIDERS[provider]), own=True) for bad in bad_cases(case)}
    wrong = [f"{change}: {fault}" for change, fault in faults.items() if fault is not None]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("name", SCHEMAS)
def test_a_random_node_passes_or_is_refused(name: str, provider: str) -> None:
    """Types as the schema lists them, with shapes and attributes that seldom fit, on either provider."""
    schema, opset = SCHEMAS[name]
    wrong = []
    for bad in random_cases(schema, opset, DRAWS):
        fault = fault_of(attempt(bad, PROVIDERS[provider]), own=True)
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
