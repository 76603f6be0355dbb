"""Shape functions of com.microsoft by family; importing this package registers them all."""

from sardonyx.ops.shapes.contrib import array as array
from sardonyx.ops.shapes.contrib import attention as attention
from sardonyx.ops.shapes.contrib import elementwise as elementwise
from sardonyx.ops.shapes.contrib import experimental as experimental
from sardonyx.ops.shapes.contrib import gated_delta_net as gated_delta_net
from sardonyx.ops.shapes.contrib import generation as generation
from sardonyx.ops.shapes.contrib import hashing as hashing
from sardonyx.ops.shapes.contrib import hyper_connection as hyper_connection
from sardonyx.ops.shapes.contrib import matmul as matmul
from sardonyx.ops.shapes.contrib import moe as moe
from sardonyx.ops.shapes.contrib import normalize as normalize
from sardonyx.ops.shapes.contrib import packed_conv as packed_conv
from sardonyx.ops.shapes.contrib import projection as projection
from sardonyx.ops.shapes.contrib import qlinear as qlinear
from sardonyx.ops.shapes.contrib import quantize as quantize
from sardonyx.ops.shapes.contrib import rnn as rnn
from sardonyx.ops.shapes.contrib import string as string
from sardonyx.ops.shapes.contrib import text as text
from sardonyx.ops.shapes.contrib import vision as vision
