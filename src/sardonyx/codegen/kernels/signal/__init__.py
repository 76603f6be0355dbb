"""Kernels of signal processing, one file each."""
