"""What scripts import beside the runtime: the equals of onnxruntime.tools and onnxruntime.transformers, thin over our own passes.

symbolic_shape_infer     types and shapes of every value, in symbols
float16                  float32 to float16
mixed_precision          float16 but for the nodes that need float32
optimizer                fusions of transformers, saved to a file
fusion_options           which of them
onnx_model               what the optimizer returns
onnx_model_utils         fixed dimensions and input shapes, opsets, levels
make_dynamic_shape_fixed, update_onnx_opset, optimize_onnx_model      commands over these

With `import sardonyx.as_onnxruntime`, and where no onnxruntime is installed, they are found as `onnxruntime.tools.…` and
`onnxruntime.transformers.…` too.
"""
