"""The OpenVINO provider: partitions compiled and run by OpenVINO."""
