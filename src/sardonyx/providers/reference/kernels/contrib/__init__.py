"""Reference kernels of com.microsoft by family; importing this package registers them all."""

from sardonyx.providers.reference.kernels.contrib import array as array
from sardonyx.providers.reference.kernels.contrib import attention as attention
from sardonyx.providers.reference.kernels.contrib import attention_rnn as attention_rnn
from sardonyx.providers.reference.kernels.contrib import block_weights as block_weights
from sardonyx.providers.reference.kernels.contrib import conv as conv
from sardonyx.providers.reference.kernels.contrib import decoder_attention as decoder_attention
from sardonyx.providers.reference.kernels.contrib import elementwise as elementwise
from sardonyx.providers.reference.kernels.contrib import experimental as experimental
from sardonyx.providers.reference.kernels.contrib import generation as generation
from sardonyx.providers.reference.kernels.contrib import group_query_attention as group_query_attention
from sardonyx.providers.reference.kernels.contrib import linear_attention as linear_attention
from sardonyx.providers.reference.kernels.contrib import matmul as matmul
from sardonyx.providers.reference.kernels.contrib import matmul_bnb4 as matmul_bnb4
from sardonyx.providers.reference.kernels.contrib import moe as moe
from sardonyx.providers.reference.kernels.contrib import normalize as normalize
from sardonyx.providers.reference.kernels.contrib import paged_attention as paged_attention
from sardonyx.providers.reference.kernels.contrib import projection as projection
from sardonyx.providers.reference.kernels.contrib import qlinear as qlinear
from sardonyx.providers.reference.kernels.contrib import quantize as quantize
from sardonyx.providers.reference.kernels.contrib import rnn as rnn
from sardonyx.providers.reference.kernels.contrib import rotary as rotary
from sardonyx.providers.reference.kernels.contrib import string as string
from sardonyx.providers.reference.kernels.contrib import text as text
from sardonyx.providers.reference.kernels.contrib import vision as vision
