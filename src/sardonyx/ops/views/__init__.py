"""What a node says, read once: a view for each operator that more than one layer reads.

    view = Softmax.of(node)        defaults filled in, the versions' differences resolved; InvalidGraph for what is invalid
    view.axis                      as the node gives it
    view.row(rank)                 counted from the front

A view is a named tuple. `of` takes a node, or the call that a shape function or a reference kernel gets. What newer versions
of an operator take as an input and older ones as an attribute is one field; `inputs` (`ops/views/inputs.py`) says which inputs
are constants, and where the numbers are computed the field is COMPUTED.

Nothing outside `ops/` compares `node.version`, except to ask whether two versions are the same or to rewrite a node for another.
"""
