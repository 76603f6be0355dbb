"""Custom operators: a neutral definition, the provider that runs them, and libraries compiled for ONNX Runtime's C interface."""
