"""Tensor files of dumps → files that other programs read."""
