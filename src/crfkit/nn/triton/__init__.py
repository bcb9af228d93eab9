"""Backends of Triton kernels for GPUs; nothing here is imported before it is needed."""
