"""sardonyx: an ONNX inference engine in Python."""
