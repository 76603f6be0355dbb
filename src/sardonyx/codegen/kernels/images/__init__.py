"""Kernels of images, one file each."""
