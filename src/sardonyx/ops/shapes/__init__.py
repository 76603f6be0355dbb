"""The shape functions of all operators, one file per family; importing this registers them."""

from sardonyx.ops.shapes import activation as activation
from sardonyx.ops.shapes import attention as attention
from sardonyx.ops.shapes import binary as binary
from sardonyx.ops.shapes import cast as cast
from sardonyx.ops.shapes import constant as constant
from sardonyx.ops.shapes import contrib as contrib
from sardonyx.ops.shapes import control_flow as control_flow
from sardonyx.ops.shapes import conv as conv
from sardonyx.ops.shapes import gather as gather
from sardonyx.ops.shapes import image as image
from sardonyx.ops.shapes import loss as loss
from sardonyx.ops.shapes import matmul as matmul
from sardonyx.ops.shapes import ml_feature as ml_feature
from sardonyx.ops.shapes import ml_linear as ml_linear
from sardonyx.ops.shapes import ml_tree as ml_tree
from sardonyx.ops.shapes import nhwc as nhwc
from sardonyx.ops.shapes import normalize as normalize
from sardonyx.ops.shapes import pool as pool
from sardonyx.ops.shapes import quantize as quantize
from sardonyx.ops.shapes import random as random
from sardonyx.ops.shapes import reduce as reduce
from sardonyx.ops.shapes import reshape as reshape
from sardonyx.ops.shapes import resize as resize
from sardonyx.ops.shapes import rnn as rnn
from sardonyx.ops.shapes import sequence as sequence
from sardonyx.ops.shapes import signal as signal
from sardonyx.ops.shapes import slice as slice  # noqa: A004  the stem of the family
from sardonyx.ops.shapes import softmax as softmax
from sardonyx.ops.shapes import sort as sort
from sardonyx.ops.shapes import string as string
from sardonyx.ops.shapes import tflite as tflite
from sardonyx.ops.shapes import training as training
from sardonyx.ops.shapes import unary as unary
