"""TensorFlow Lite and Circle models as ordinary models of ONNX operators.

What ONNX has no place for is in the model's metadata, as JSON: signatures, and which inputs and outputs are variables.

    sardonyx.signatures    {signature: {"subgraph": number, "inputs": {name: input of the graph}, "outputs": {name: output}}}
    sardonyx.states        [[variable, input, output], …], either of which may be ""
"""

__all__ = ["SIGNATURES", "STATES"]

SIGNATURES = "sardonyx.signatures"
"""The key of a model's metadata that has its signatures."""
STATES = "sardonyx.states"
"""The key of a model's metadata that has its variables."""
