"""The kernels, each written by a function of this package."""
