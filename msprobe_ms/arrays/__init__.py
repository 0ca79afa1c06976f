"""Arithmetic on arrays, and their files: statistics, metrics, dtypes, npy and PyTorch files. Knows no dump."""
