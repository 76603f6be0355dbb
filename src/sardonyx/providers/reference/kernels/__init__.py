"""Reference kernels by family; importing this package registers them all."""
