"""Families of kernels of images, one file each."""
