"""TensorFlow Lite and Circle models as ordinary models of ONNX operators."""
