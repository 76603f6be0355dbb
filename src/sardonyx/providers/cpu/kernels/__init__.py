"""How the CPU provider lowers operators, by family; importing this package registers them all."""

import sardonyx.providers.cpu.kernels.elementwise
import sardonyx.providers.cpu.kernels.gather
import sardonyx.providers.cpu.kernels.matmul
import sardonyx.providers.cpu.kernels.reshape
import sardonyx.providers.cpu.kernels.slice
