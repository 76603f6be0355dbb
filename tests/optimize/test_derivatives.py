"""Derivatives against differences of the function itself, in double."""

from __future__ import annotations

import numpy as np
import pytest
from support.evaluate import evaluate_graph

from sardonyx.dtypes import DataType
from sardonyx.ir import Graph, Node, TensorType, Value
from sardonyx.optimize.derivatives import Make, derivative_of, differentiable_operators

GENERATOR = np.random.default_rng(7)
X = GENERATOR.uniform(0.3, 2.0, (2, 3))
ROW = GENERATOR.uniform(0.3, 2.0, (3,))
SQUARE = GENERATOR.uniform(0.3, 2.0, (3, 4))
INTEGERS = np.array([1])

CASES = [
    *(
        (name, [X - 1.1], {})
        for name in ("Abs", "Cos", "Cosh", "Erf", "Exp", "Identity", "Neg", "Relu", "Sigmoid", "Sin", "Sinh", "Softplus", "Tanh")
    ),
    *((name, [X], {}) for name in ("Log", "Reciprocal", "Sqrt", "Softmax", "LogSoftmax")),
    *((name, [X, ROW], {}) for name in ("Add", "Sub", "Mul", "Div", "Pow", "Sum")),
    *((name, [X[:, :1], ROW], {}) for name in ("Add", "Sub", "Mul", "Div")),
    ("Softmax", [X], {"axis": 0}),
    ("LogSoftmax", [X], {"axis": 0}),
    ("MatMul", [X, SQUARE], {}),
    ("MatMul", [ROW, SQUARE], {}),
    ("MatMul", [X, ROW], {}),
    ("MatMul", [np.stack([X, X]), SQUARE], {}),
    *(
        ("Gemm", [a, b, SQUARE[0]], {"transA": s, "transB": t, "alpha": 0.5, "beta": 2.0})
        for s, a in enumerate([X, X.T])
        for t, b in enumerate([SQUARE, SQUARE.T])
    ),
    *((name, [X, INTEGERS], {"keepdims": keepdims}) for name in ("ReduceSum", "ReduceMean") for keepdims in (0, 1)),
    ("ReduceSum", [X], {"keepdims": 0}),
    ("Reshape", [X, np.array([3, 2])], {}),
    ("Flatten", [X], {}),
    ("Unsqueeze", [X, INTEGERS], {}),
    ("Squeeze", [X[:, :1], INTEGERS], {}),
    ("Expand", [ROW, np.array([2, 3])], {}),
    ("Transpose", [np.stack([X, X])], {"perm": [1, 2, 0]}),
    ("Transpose", [X], {}),
    ("Cast", [X], {"to": int(DataType.DOUBLE)}),
    ("CastLike", [X, ROW], {}),
    ("Where", [X > 1, X, ROW], {}),
]


def value_of(name, array):
    return Value(name, TensorType(DataType.from_numpy(array.dtype), array.shape))


@pytest.mark.parametrize(("op_type", "arrays", "attributes"), CASES, ids=[case[0] for case in CASES])
def test_gradients_are_the_limits_of_differences(op_type, arrays, attributes):
    """For each input of type double: what moving an element by 1e-6 changes in a weighted sum of the outputs, per 1e-6."""
    inputs = [value_of(f"x{index}", array) for index, array in enumerate(arrays)]
    node = Node(op_type, inputs, 1, attributes, version=21)
    seed = Value("g")
    derivative = derivative_of(node)
    assert derivative is not None
    make = Make()
    gradients = derivative(make, node, seed)
    graph = Graph("g", [*inputs, seed])
    for item in (node, *make.nodes):
        graph.append(item)
    graph.add_output(node.output)
    wanted = [index for index, array in enumerate(arrays) if array.dtype == np.float64 and index < len(gradients)]
    for index in wanted:
        graph.add_output(gradients[index])

    def outputs(given, weights):
        return evaluate_graph(graph, {**dict(zip(inputs, given, strict=True)), seed: weights})

    (y,) = evaluate_graph(_only(node, inputs), dict(zip(inputs, arrays, strict=True)))
    weights = np.random.default_rng(1).uniform(0.5, 1.5, y.shape)
    found = outputs(arrays, weights)[1:]
    for index, gradient in zip(wanted, found, strict=True):
        assert gradient.shape == arrays[index].shape
        expected = np.empty(gradient.shape)
        for place in np.ndindex(gradient.shape):
            moved = [[array.copy() for array in arrays] for _ in range(2)]
            moved[0][index][place] += 1e-6
            moved[1][index][place] -= 1e-6
            high, low = (np.sum(outputs(item, weights)[0] * weights) for item in moved)
            expected[place] = (high - low) / 2e-6
        np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-7)


def _only(node, inputs):
    graph = Graph("only", inputs)
    graph.append(Node(node.op_type, inputs, 1, node.attributes, version=node.version))
    graph.add_output(next(iter(graph)).output)
    return graph


def test_no_derivative_for_other_meanings():
    """Operators without a table entry, of other domains, and old meanings of broadcasting and softmax have none."""
    x = Value("x")
    assert derivative_of(Node("Conv", [x, x], 1, version=21)) is None
    assert derivative_of(Node("Add", [x, x], 1, version=1, domain="local")) is None
    assert derivative_of(Node("Add", [x, x], 1, {"broadcast": 1}, version=6)) is None
    assert derivative_of(Node("Softmax", [x], 1, version=11)) is None


def test_known_operators_are_listed():
    """The list names every operator tested here."""
    assert {case[0] for case in CASES} <= set(differentiable_operators())
