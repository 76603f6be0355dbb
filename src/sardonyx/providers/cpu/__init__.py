"""The CPU provider: compiles its partitions to machine code with the kernel compiler of `codegen`."""
