"""How the CPU provider lowers operators, by family; importing this package registers them all."""

import sardonyx.providers.cpu.kernels.attention
import sardonyx.providers.cpu.kernels.batch_norm
import sardonyx.providers.cpu.kernels.constant
import sardonyx.providers.cpu.kernels.conv
import sardonyx.providers.cpu.kernels.conv_transpose
import sardonyx.providers.cpu.kernels.elementwise
import sardonyx.providers.cpu.kernels.gather
import sardonyx.providers.cpu.kernels.grid
import sardonyx.providers.cpu.kernels.group_norm
import sardonyx.providers.cpu.kernels.group_query
import sardonyx.providers.cpu.kernels.matmul
import sardonyx.providers.cpu.kernels.nbits
import sardonyx.providers.cpu.kernels.normalize
import sardonyx.providers.cpu.kernels.pool
import sardonyx.providers.cpu.kernels.reduce
import sardonyx.providers.cpu.kernels.reshape
import sardonyx.providers.cpu.kernels.resize
import sardonyx.providers.cpu.kernels.reverse
import sardonyx.providers.cpu.kernels.roi
import sardonyx.providers.cpu.kernels.rotary
import sardonyx.providers.cpu.kernels.rows
import sardonyx.providers.cpu.kernels.select
import sardonyx.providers.cpu.kernels.slice
import sardonyx.providers.cpu.kernels.softmax
import sardonyx.providers.cpu.kernels.sort
import sardonyx.providers.cpu.kernels.top_k
