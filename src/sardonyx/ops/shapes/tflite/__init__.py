"""Shape functions of sardonyx.tflite by family; importing this package registers them all."""

from sardonyx.ops.shapes.tflite import detection as detection
from sardonyx.ops.shapes.tflite import hashing as hashing
from sardonyx.ops.shapes.tflite import numbers as numbers
