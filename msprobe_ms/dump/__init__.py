"""The dump format: names of entries, what an entry holds, writing, reading, kernels."""
