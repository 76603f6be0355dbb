"""Compare two configurations of a model: the first node that differs, by how much, and a small model that shows it."""

from sardonyx.diff.compare import diff_model
from sardonyx.diff.configuration import Configuration, parse_configuration
from sardonyx.diff.recorded import diff_recorded, values_of_model
from sardonyx.diff.report import Difference, Finding, NotFinite
from sardonyx.diff.tensor_error import TensorError

__all__ = [
    "Configuration",
    "Difference",
    "Finding",
    "NotFinite",
    "TensorError",
    "diff_model",
    "diff_recorded",
    "parse_configuration",
    "values_of_model",
]
