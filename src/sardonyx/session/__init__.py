"""The face: sessions, options and values, named as in the onnxruntime package."""
