"""Rules about the operators of ai.onnx.ml, in the order in which they are tried at one node."""

from sardonyx.optimize.rule import Rule
from sardonyx.optimize.rules.ml.expand_columns import (
    EXPAND_ARRAY_FEATURE_EXTRACTOR,
    EXPAND_FEATURE_VECTORIZER,
    EXPAND_ONE_HOT_ENCODER,
)
from sardonyx.optimize.rules.ml.expand_linear_models import EXPAND_LINEAR_CLASSIFIER, EXPAND_LINEAR_REGRESSOR
from sardonyx.optimize.rules.ml.expand_scaling import EXPAND_BINARIZER, EXPAND_IMPUTER, EXPAND_SCALER
from sardonyx.optimize.rules.ml.expand_svm_scores import EXPAND_SVM_CLASSIFIER, EXPAND_SVM_REGRESSOR
from sardonyx.optimize.rules.ml.expand_tree_labels import EXPAND_TREE_LABELS

__all__ = ["DECOMPOSITIONS"]

DECOMPOSITIONS: tuple[Rule, ...] = (
    EXPAND_SCALER,
    EXPAND_BINARIZER,
    EXPAND_IMPUTER,
    EXPAND_LINEAR_REGRESSOR,
    EXPAND_LINEAR_CLASSIFIER,
    EXPAND_ARRAY_FEATURE_EXTRACTOR,
    EXPAND_FEATURE_VECTORIZER,
    EXPAND_ONE_HOT_ENCODER,
    EXPAND_SVM_REGRESSOR,
    EXPAND_SVM_CLASSIFIER,
    EXPAND_TREE_LABELS,
)
"""Rules that take the operators apart, at level BASIC."""
