"""The text form of the IR: one node per line, readable, complete, and parsed back to an equal model.

    ir_version 10
    opset 21, com.microsoft 1
    graph main(x: float[batch, 3, 224, 224]) -> (y: float[batch, 8]) {
        w: float[8, 3, 3, 3] = ... 7                             a constant, elided: normally distributed, seed 7 (`...`: zeros)
        b: float[2] = [0.5, -1.0]                                a constant with its elements
        c: float[?, 8, ?, ?] = Conv(x, w, _) {strides = [2, 2]} @conv1
        low, high = Split(c) {axis = 1}                          several outputs; `_` in place of one left out
        g = com.microsoft.Gelu(low)                              domain and operator
        s = Softmax:11(g) {axis = 1}                             a version other than the import's
        y = If(cond) {then_branch = graph() -> (t) {
            t = Identity(s)                                      values of graphs around are captured by name
        }, else_branch = graph() -> (high) {
        }}
    }
    function local.Scale(x) {factor, bias = 0.0} -> (y) {
        opset 21
        k = Constant() {value_float: float = @factor}            an attribute of the calling node
        y = Mul(x, k)
    }

Attributes show their kind by their value - 1, 1.5, "text", lists of these, graphs - or by an annotation: `value: float[2] = [1, 2]`
for a tensor, `axes: ints = []`, `t: type = seq(float)`, `ts: tensors = [float[] 1.0]`,
`s: sparse_tensor = [9] float[1] [2.0] at int64[1] [4]`. Names and symbols that are no identifiers, and strings, are in double
quotes with JSON's escapes. A value without a name is `%0`, `%1` … .
What follows `#` on a line is a comment. Documentation and metadata of graphs, nodes and values are left out.
"""

from sardonyx.ir.text_parse import DEFAULT_OPSET, parse_graph, parse_model
from sardonyx.ir.text_print import print_graph, print_model

__all__ = ["DEFAULT_OPSET", "parse_graph", "parse_model", "print_graph", "print_model"]
