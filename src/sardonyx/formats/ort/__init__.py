"""ONNX Runtime's own format: a FlatBuffer of the same parts as an ONNX model has."""
