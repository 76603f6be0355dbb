"""ONNX Runtime's C interface as custom operator libraries see it: OrtApi, OrtCustomOp and the objects behind their handles."""
