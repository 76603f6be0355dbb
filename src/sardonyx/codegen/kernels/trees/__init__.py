"""Kernels of tree ensembles, one file each."""
