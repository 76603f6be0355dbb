"""The modules that code written for `onnxruntime.capi` imports: the same names, of the same objects as the package's own."""
