"""What a file outside the package needs to write a kernel of the CPU provider for an operator of its own.

    @sardonyx.op("my.domain", "RunningSum", outputs=["x"], shape=lambda x: x, cpu_kernel=CpuKernel(claim, lower))

See docs/how-to/write-a-cpu-kernel.md. The names come from the packages below; only those listed here are kept from version to
version.
"""

from sardonyx.codegen.emit import mathlib
from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import F32, F64, I32, I64
from sardonyx.codegen.emit.values import Pointer, Register
from sardonyx.codegen.target import Target
from sardonyx.dtypes import DataType
from sardonyx.ir import Node
from sardonyx.ir.shape import product
from sardonyx.providers.cpu.fuse import Group
from sardonyx.providers.cpu.lowering import Lowering
from sardonyx.providers.cpu.operands import shape_of
from sardonyx.providers.cpu.sizes import Sizes
from sardonyx.providers.user_kernels import CpuKernel, UserKernel

__all__ = [
    "F32",
    "F64",
    "I32",
    "I64",
    "CpuKernel",
    "DataType",
    "Group",
    "Kernel",
    "Lowering",
    "Module",
    "Node",
    "Pointer",
    "Register",
    "Sizes",
    "Target",
    "UserKernel",
    "mathlib",
    "product",
    "shape_of",
]
