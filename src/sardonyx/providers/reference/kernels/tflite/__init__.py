"""Reference kernels of sardonyx.tflite by family."""
